#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The sandbox of the installed service costs no name, no container's file and no stack: earlier tests, to the letter,
# with the service as their daemon. Two services at one time, each in a systemd of its own, and each with half of
# the work.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
at_once left right
use_build release
require_lab
start_service_lab

case $STORY in
left) names=(deep_stacks forged_library namespaces processes) ;;
right) names=(groups hostile_elf) ;;
esac
for name in "${names[@]}"; do
    began=$SECONDS
    lab env CPU_PROFILERD_SERVICE="$UNIT" CPU_PROFILERD_REQUIRE_PERF=1 SOURCE_DIR="$SOURCE_DIR" BUILD_DIR="$BUILD_DIR" \
        RELEASE_DIR="$RELEASE_DIR" "$SOURCE_DIR/tests/system/$name.sh" >"$WORK/$name.out" 2>&1 ||
        fail "$name, through the service: $(cat "$WORK/$name.out")"
    echo "$name: passed, $((SECONDS - began)) s"
done
