#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What systemd/rotate.sh leaves of a schedule's folder: the newest recordings, beside them the newest of those that
# failed half-way, all readable for the group, and what is not the schedule's.
. "${0%/*}/lib.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# left_of NAME: what is left of its folder.
left_of() {
    rm -f "$folder"/*
    touch "$folder/$1"-2026010{1..5}T000000Z.fxt.gz "$folder/$1"-2026010{6..9}T000000Z.fxt.gz.partial-{aaaaaa,bbbbbb} \
        "$folder"/{other-20200101T000000Z.fxt.gz,"$1".txt}
    chmod 600 "$folder"/*
    STATE_DIRECTORY=$folder KEEP=3 sh systemd/rotate.sh "$1" || complain "rotate.sh: status $?"
    (cd "$folder" && stat -c '%a %n' -- *)
}
left=$(left_of rotated)
expected='600 other-20200101T000000Z.fxt.gz
640 rotated-20260103T000000Z.fxt.gz
640 rotated-20260104T000000Z.fxt.gz
640 rotated-20260105T000000Z.fxt.gz
640 rotated-20260108T000000Z.fxt.gz.partial-bbbbbb
640 rotated-20260109T000000Z.fxt.gz.partial-aaaaaa
640 rotated-20260109T000000Z.fxt.gz.partial-bbbbbb
600 rotated.txt'
[ "$left" = "$expected" ] || complain "rotate.sh leaves: $left"
# As systemd-escape has it.
left=$(left_of 'my\x20app')
[ "$(sort -k 2 <<<"${left//my\\x20app/rotated}")" = "$(sort -k 2 <<<"$expected")" ] || complain "rotate.sh leaves of an escaped name: $left"
exit "$failed"
