#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The sampler's interface keeps its rules: sampler_api.py calls a real daemon in every state, as several
# users, and by clients that are killed. A daemon that is asked to end stops its session, and takes its
# socket along.
. "${0%/*}/lib.sh"
require_perf
start_daemon
chmod 666 "$CPU_PROFILERD_SOCKET" # for the other users
chmod 755 "$WORK"
run_in_background "$WORKLOADS/busy" --seconds 120 --rest 3 >/dev/null

python3 "${0%/*}/sampler_api.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" || fail "the interface breaks a rule"
for event in "created for pid [0-9]* uid $(id -u)" "attached to by pid [0-9]* uid $(id -u)" "stopped by max_duration"; do
    grep -q "session [0-9a-f]*: $event" "$WORK/daemon.log" || fail "the log does not say '$event'"
done

"$BIN/small_buffer_probe" >"$WORK/small.fxt" || fail "a buffer that is too small costs more than a second call"
profctl report --json "$WORK/small.fxt" >"$WORK/small.json" || fail "what was read in small steps is no recording"
python3 - "$WORK/small.json" <<'PYTHON' || fail "what did not fit was lost"
import json, sys
report = json.load(open(sys.argv[1]))
print("read after refusals:", report["samples"], "kept:", report["books"]["total"]["kept"])
sys.exit(report["samples"] == 0 or report["samples"] != report["books"]["total"]["kept"])
PYTHON

profctl record --native -d 60 -o "$WORK/p.fxt" >/dev/null 2>&1 &
recording=$!
wait_until 10 grep -q "session [0-9a-f]*: created for pid $recording" "$WORK/daemon.log" || fail "no recording began"
stop_daemon || exit 1
grep -q "session [0-9a-f]*: closed, the daemon ends\|closed, its connection has ended" "$WORK/daemon.log" ||
    fail "the daemon ended without closing the session"
wait "$recording" # whatever it says of a daemon that has gone
[ ! -e "$CPU_PROFILERD_SOCKET" ] || fail "the socket stays behind"
