#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A process that holds its mmap lock for ever, as any user's can: who reads its /proc/PID/maps waits as long.
# With one of them, and with more than the daemon has threads to lose, other programs are named, Stop and Close
# answer, and the daemon ends by SIGTERM.
. "${0%/*}/lib.sh"
require_perf
use_build release
mkdir "$WORK/mnt"
chmod 711 "$WORK" # the stuck ones are of another user

# stick NAME: another stuck process, whose pid is in STUCK_PID.
stick() {
    run_in_background "$WORKLOADS/stuck_process" "$WORK/mnt" 12345 >"$WORK/$1.out" 2>&1
    wait_until 5 grep -q '^stuck' "$WORK/$1.out" || skip "no process can be stuck here: $(cat "$WORK/$1.out")"
    STUCK_PID=$(awk '$1 == "stuck" { print $2 }' "$WORK/$1.out")
    timeout 1 cat "/proc/$STUCK_PID/maps" >/dev/null # which dies of a signal, unlike some readers
    [ $? -eq 124 ] || skip "this kernel shows /proc/PID/maps whatever the process does"
}

# in_time SECONDS COMMAND...
in_time() {
    timeout "$@" >"$WORK/in_time.out" 2>&1 ||
        fail "$2 $3 ended with status $?, or did not within $1 s: $(cat "$WORK/in_time.out")"
}

# expect_spinners REPORT: the program beside them has its functions' names.
expect_spinners() {
    local function
    for function in alpha_spin bravo_spin charlie_spin; do
        expect_json "$1" "sum(r['self'] for r in d['rows'] if r['name'] == '$function') > 100" \
            "the samples of $function have no name"
    done
}

start_daemon
stick first
run_in_background "$WORKLOADS/threads" --seconds 280 >/dev/null
in_time 12 profctl record -F 1000 -a -d 4 -o "$WORK/p.fxt"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
profctl report --json -n 0 --by process "$WORK/p.fxt" >"$WORK/p.processes.json" || fail "report by process"
expect_spinners "$WORK/p.json"
expect_json "$WORK/p.processes.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'stuck_process') > 100" \
    "the stuck process has no name"
expect_json "$WORK/p.json" "d['books']['proc_unread'] > 0" "the books do not tell of the stuck process"
expect_json "$WORK/p.json" "d['books']['total']['unexplained'] * 50 < d['books']['total']['expected']" \
    "the books do not close"
[ "$(grep -c "/proc/$STUCK_PID/maps does not answer" "$WORK/daemon.log")" -eq 1 ] || fail "the log does not tell of it once"

# Five more: the uid has two threads and no more, of all sessions together.
for name in second third fourth fifth sixth; do
    stick "$name"
done
for session in {1..6}; do
    in_time 5 profctl record -F 1000 -a -d 0.5 -o "$WORK/short.fxt" # it ends before anything is given up
done
for session in one two; do
    in_time 5 profctl start -F 1000
    sleep 3
    in_time 5 profctl status
    in_time 5 profctl stop
    in_time 5 profctl read -o "$WORK/$session.fxt"
    in_time 5 profctl close
    profctl report --json -n 0 "$WORK/$session.fxt" >"$WORK/$session.json" || fail "report"
    expect_spinners "$WORK/$session.json"
    threads=$(grep -lx proc-reader "/proc/$daemon_pid/task/"*/comm | wc -l)
    [ "$threads" -le 2 ] || fail "$threads threads are lost after session $session"
done
in_time 5 profctl start -F 1000
stop_daemon || exit 1
