#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Allocations of the daemon fail at random while sessions are created, record, are read, stopped and closed. It goes on,
# the books add up, nothing is left behind, and sessions afterwards are whole: see failing_memory.py. The dev build, with
# sanitizers, would tell of what is used that is not there; the release build has twice the sessions in that time. Both at one
# time.
. "${0%/*}/lib.sh"
require_perf
at_once dev release
truncate -s 4096 "$WORK/plan"
export WORKLOADS
programs=$WORK/bin
mkdir "$programs"

declare -A seeds=([dev]=1 [release]=1000)
use_build "$STORY"
# Nothing of this for the shell, or for profctl.
cat >"$programs/cpu-profilerd" <<DAEMON
#!/bin/sh
export FAILING_MEMORY='$WORK/plan' LD_PRELOAD='$BUILD_DIR/lib/failing_memory.so' ASAN_OPTIONS=verify_asan_link_order=0
exec '$BIN/cpu-profilerd' "\$@"
DAEMON
chmod +x "$programs/cpu-profilerd"
BIN=$programs
start_daemon
# Sessions for 8 s.
PATH=$RELEASE_DIR/bin:$search_path python3 "${0%.sh}.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" "$WORK/plan" "$WORK" 8 "${seeds[$STORY]}" ||
    fail "memory that is not there"
stop_daemon || exit 1
