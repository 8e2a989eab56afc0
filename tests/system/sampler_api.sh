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
run_in_background "$WORKLOADS/busy" --seconds 120 >/dev/null

python3 "${0%/*}/sampler_api.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" || fail "the interface breaks a rule"
for event in "created for pid [0-9]* uid $(id -u)" "attached to by pid [0-9]* uid $(id -u)" "stopped by max_duration"; do
    grep -q "session [0-9a-f]*: $event" "$WORK/daemon.log" || fail "the log does not say '$event'"
done

profctl record -d 60 -o "$WORK/p.fxt" >/dev/null 2>&1 &
recording=$!
wait_until 10 grep -q "session [0-9a-f]*: created for pid $recording" "$WORK/daemon.log" || fail "no recording began"
stop_daemon || exit 1
grep -q "session [0-9a-f]*: closed, the daemon ends\|closed, its connection has ended" "$WORK/daemon.log" ||
    fail "the daemon ended without closing the session"
wait "$recording" # whatever it says of a daemon that has gone
[ ! -e "$CPU_PROFILERD_SOCKET" ] || fail "the socket stays behind"
