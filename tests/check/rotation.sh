#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What systemd/rotate.sh leaves of a schedule's folder: the newest recordings, beside them the newest of those that
# failed half-way, all readable for the group, and what is not the schedule's.
. "${0%/*}/lib.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
touch "$folder"/rotated-2026010{1..5}T000000Z.fxt.gz "$folder"/rotated-2026010{6..9}T000000Z.fxt.gz.partial-{aaaaaa,bbbbbb} \
    "$folder"/{other-20200101T000000Z.fxt.gz,rotated.txt}
chmod 600 "$folder"/*
STATE_DIRECTORY=$folder KEEP=3 sh systemd/rotate.sh rotated || complain "rotate.sh: status $?"
left=$(cd "$folder" && stat -c '%a %n' -- *)
expected='600 other-20200101T000000Z.fxt.gz
640 rotated-20260103T000000Z.fxt.gz
640 rotated-20260104T000000Z.fxt.gz
640 rotated-20260105T000000Z.fxt.gz
640 rotated-20260108T000000Z.fxt.gz.partial-bbbbbb
640 rotated-20260109T000000Z.fxt.gz.partial-aaaaaa
640 rotated-20260109T000000Z.fxt.gz.partial-bbbbbb
600 rotated.txt'
[ "$left" = "$expected" ] || complain "rotate.sh leaves: $left"
exit "$failed"
