#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGTERM ends sampling, and what was recorded can still be read: a reader that is there gets all of it, and so
# does one that comes within 5 s; without one the daemon leaves then, and says how many samples were not read
# read. Nothing new begins meanwhile. A second signal ends it at once. Four stories at one time, each with a daemon.
. "${0%/*}/lib.sh"
require_perf
at_once attached detached unread twice
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null

now_ms() {
    date +%s%3N
}

# send_signal NAME: and remembers when.
send_signal() {
    signalled_ms=$(now_ms)
    kill "-$1" "$daemon_pid" || fail "no daemon is there for a SIG$1"
}

# expect_end LEAST_MS MOST_MS WHY: the daemon ends, with status 0, so long after the signal.
expect_end() {
    local status=0
    wait "$daemon_pid" || status=$?
    daemon_pid=
    local took_ms=$(($(now_ms) - signalled_ms))
    [ "$status" -eq 0 ] || fail "$3: the daemon ended with status $status"
    [ "$took_ms" -ge "$1" ] && [ "$took_ms" -le "$2" ] || fail "$3: the daemon took $took_ms ms, not $1 to $2"
    echo "$3: $took_ms ms"
}

# expect_whole FILE: it has every sample that its books call kept.
expect_whole() {
    profctl report --json "$1" >"$WORK/report.json" || fail "$1 is no recording"
    expect_json "$WORK/report.json" "d['samples'] == d['books']['total']['kept'] > 100" "$1 is not all that was kept"
}

says() {
    grep -q "$1" "$WORK/daemon.log" || fail "the daemon does not say '$1'"
}

case $STORY in
attached)
    start_daemon
    profctl record --native -d 60 -o "$WORK/attached.fxt" >"$WORK/out" 2>&1 &
    reader=$!
    wait_until 10 grep -q 'created for' "$WORK/daemon.log" || fail "no session for profctl record"
    sleep 1
    send_signal TERM
    expect_end 0 5500 "an attached reader gets all of it"
    wait "$reader"
    [ $? -eq 1 ] || fail "a recording that was cut short ends well: $(cat "$WORK/out")"
    expect_whole "$WORK/attached.fxt"
    grep -q '^profctl: warning: sampling ended by itself after [0-9.]* s: the daemon is ending' "$WORK/out" ||
        fail "profctl record does not say why it ended: $(cat "$WORK/out")"
    says 'stopped by shutdown'
    ! grep -q 'were not read' "$WORK/daemon.log" || fail "the daemon says that something was not read"
    ;;
detached)
    start_daemon
    profctl start >/dev/null || fail "start"
    sleep 1
    send_signal TERM
    wait_until 5 grep -q 'stopped by shutdown' "$WORK/daemon.log" || fail "sampling goes on after SIGTERM"
    expect_status 1 profctl start >"$WORK/out" 2>&1
    grep -q 'the daemon is ending' "$WORK/out" || fail "start while the daemon ends: $(cat "$WORK/out")"
    profctl read --native -o "$WORK/detached.fxt" >"$WORK/out" 2>&1 || fail "read while the daemon ends: $(cat "$WORK/out")"
    expect_end 0 5500 "a reader that comes meanwhile gets all of it"
    expect_whole "$WORK/detached.fxt"
    ;;
unread)
    start_daemon
    profctl start >/dev/null || fail "start"
    sleep 1
    send_signal TERM
    wait_until 5 grep -q 'stopped by shutdown' "$WORK/daemon.log" || fail "sampling goes on after SIGTERM"
    profctl status --json >"$WORK/status.json" || fail "status while the daemon ends"
    expect_end 4500 8000 "without a reader it leaves after 5 s"
    kept=$(json "$WORK/status.json" "d['session']['books']['total']['kept']")
    [ "$kept" -gt 100 ] || fail "only $kept samples were kept"
    says "the daemon ends; $kept samples of it were not read"
    ;;
twice)
    start_daemon
    profctl start >/dev/null || fail "start"
    sleep 0.5
    send_signal TERM
    wait_until 5 grep -q 'sampling ends' "$WORK/daemon.log" || fail "no word of the first signal"
    send_signal INT
    expect_end 0 2000 "a second signal ends it at once"
    says 'samples of it were not read'

    start_daemon
    send_signal TERM
    expect_end 0 2000 "without a session it ends at once"
    ;;
esac
