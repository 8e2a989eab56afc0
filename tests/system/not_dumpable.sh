#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Neither the daemon nor its worker is dumpable: no core file is made of them, and a process of the same user cannot look
# into their memory. The kernel is asked by gdb within each of them; a program that is dumpable shows that gdb can tell.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "only root can look into the daemon"
use_build release

# dumpable PID: prctl(PR_GET_DUMPABLE) of it, without which the kernel lets its own user in.
dumpable() {
    gdb -p "$1" -batch -ex 'print (int)prctl(3, 0, 0, 0, 0)' 2>/dev/null | sed -n 's/^\$1 = //p'
}

run_in_background sleep 600
[ "$(dumpable "$BACKGROUND_PID")" = 1 ] || skip "gdb cannot look into a program here"
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 4 >/dev/null
profctl start -F 99 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
# A worker that has just been started is root until it has given that up, and each is replaced after some files.
worker() {
    worker_pid=$(pgrep -P "$daemon_pid" | head -n 1)
    [ -n "$worker_pid" ] && uid=$(awk '/^Uid:/ { print $2 }' "/proc/$worker_pid/status" 2>/dev/null) && [ "${uid:-0}" -ne 0 ]
}
wait_until 30 worker || fail "there is no worker that is not root"
[ "$(dumpable "$daemon_pid")" = 0 ] || fail "the daemon is dumpable: $(dumpable "$daemon_pid")"

# prctl() is none of the calls that the worker may make: what the kernel does of it to others is looked at instead.
run_in_background setpriv --reuid "$uid" --clear-groups sleep 600
wait_until 5 setpriv --reuid "$uid" --clear-groups cat "/proc/$BACKGROUND_PID/environ" >/dev/null 2>&1 ||
    fail "its user cannot look into a program of its own, so nothing is proved"
# One that has ended meanwhile proves nothing.
refused() {
    worker || return 1
    setpriv --reuid "$uid" --clear-groups cat "/proc/$worker_pid/environ" >/dev/null 2>&1 && fail "its user looks into the worker"
    [ -e "/proc/$worker_pid/environ" ]
}
wait_until 30 refused || fail "no worker lives long enough"
profctl close >/dev/null || fail "close"
