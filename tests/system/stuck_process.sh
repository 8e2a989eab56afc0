#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A process that holds its mmap lock for ever, as any user's can: a reader of its /proc/PID/maps waits as long.
# With one of them, and with more than the daemon has threads to lose, other programs are named, Stop and Close
# answer, and the daemon ends by SIGTERM.
. "${0%/*}/lib.sh"
require_perf
use_build release
mkdir "$WORK/mnt"
chmod 711 "$WORK" # the stuck ones are of another user

# shows_maps PID: status 124 when nothing is read within a second. cat dies of a signal, unlike some readers.
shows_maps() {
    timeout 1 cat "/proc/$1/maps" >/dev/null
}

# stick NAME...: more stuck processes, all at once; their pids are in STUCK_PIDS.
stick() {
    local name pid readers=()
    STUCK_PIDS=()
    for name in "$@"; do
        run_in_background "$WORKLOADS/stuck_process" "$WORK/mnt" 12345 "$WORKLOADS/stuck_process" >"$WORK/$name.out" 2>&1
    done
    for name in "$@"; do
        wait_until 5 grep -q '^stuck' "$WORK/$name.out" || skip "no process can be stuck here: $(cat "$WORK/$name.out")"
        pid=$(awk '$1 == "stuck" { print $2 }' "$WORK/$name.out")
        STUCK_PIDS+=("$pid")
        shows_maps "$pid" &
        readers+=("$!")
    done
    for pid in "${readers[@]}"; do
        wait "$pid"
        [ $? -eq 124 ] || skip "this kernel shows /proc/PID/maps whatever the process does"
    done
}

# in_time SECONDS COMMAND...
in_time() {
    timeout "$@" >"$WORK/in_time.out" 2>&1 ||
        fail "$2 $3 ended with status $?, or did not within $1 s: $(cat "$WORK/in_time.out")"
}

# expect_spinners REPORT: the program beside them has its functions' names.
expect_spinners() {
    expect_json "$1" "all(sum(r['self'] for r in d['rows'] if r['name'] == f'{name}_spin') > 100
        for name in ('alpha', 'bravo', 'charlie'))" "the samples of a function have no name"
}

start_daemon
stick first
run_in_background "$WORKLOADS/threads" --seconds 280 >/dev/null
in_time 12 profctl record --native --no-kernel -F 1000 -a -d 4 -o "$WORK/p.fxt"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
profctl report --json -n 0 --by process "$WORK/p.fxt" >"$WORK/p.processes.json" || fail "report by process"
expect_spinners "$WORK/p.json"
expect_json "$WORK/p.processes.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'stuck_process') > 100" \
    "the stuck process has no name"
expect_json "$WORK/p.json" "d['books']['proc_unread'] > 0" "the books do not tell of the stuck process"
expect_json "$WORK/p.json" "d['books']['total']['unexplained'] * 50 < d['books']['total']['expected']" \
    "the books do not close"
[ "$(grep -c "/proc/${STUCK_PIDS[0]}/maps does not answer" "$WORK/daemon.log")" -eq 1 ] || fail "the log does not tell of it once"

# Five more: the uid has two threads and no more, of all sessions together.
stick second third fourth fifth sixth
renice -n 19 -p "${STUCK_PIDS[@]}" >/dev/null # they spin as well, and have nothing to say
for session in {1..6}; do
    in_time 5 profctl record --native --no-kernel -F 1000 -a -d 0.5 -o "$WORK/short.fxt" # it ends before anything is given up
done
for session in one two; do
    in_time 5 profctl start -F 1000
    sleep 3
    in_time 5 profctl status
    in_time 5 profctl stop
    in_time 5 profctl read --native -o "$WORK/$session.fxt"
    in_time 5 profctl close
    profctl report --json -n 0 "$WORK/$session.fxt" >"$WORK/$session.json" || fail "report"
    expect_spinners "$WORK/$session.json"
    threads=$(grep -lx proc-reader "/proc/$daemon_pid/task/"*/comm | wc -l)
    [ "$threads" -le 2 ] || fail "$threads threads are lost after session $session"
done
in_time 5 profctl start -F 1000
stop_daemon || exit 1
