#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a real perf source delivers agrees with the kernel's own counts. A kernel that refuses perf
# events skips the test, unless CPU_PROFILERD_REQUIRE_PERF is 1.
set -u

"$BUILD_DIR/bin/perf_source_probe"
status=$?
if [ "$status" -eq 77 ] && [ "${CPU_PROFILERD_REQUIRE_PERF:-0}" = 1 ]; then
    echo "perf events are required here"
    exit 1
fi
exit "$status"
