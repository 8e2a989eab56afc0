#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a real perf source delivers agrees with the kernel's own counts, and its registers and copies of
# stacks with what the sampled processes know of themselves. A kernel that refuses perf events skips the
# test, unless CPU_PROFILERD_REQUIRE_PERF is 1.
set -u

for probe in perf_source_probe perf_stacks_probe; do
    "$BUILD_DIR/bin/$probe"
    status=$?
    if [ "$status" -eq 77 ] && [ "${CPU_PROFILERD_REQUIRE_PERF:-0}" = 1 ]; then
        echo "perf events are required here"
        exit 1
    fi
    [ "$status" -eq 0 ] || exit "$status"
done
