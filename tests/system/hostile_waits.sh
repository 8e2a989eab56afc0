#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a user without rights does to the waits of others' recordings, or to its own as a member of the group. A thread that
# executes a program in its leader's place is no ghost from then on; processes that exit as a session begins do not wait
# until its end in do_task_dead; a timer for each nanosecond is refused before it is tried; and 600 threads that nap do not
# fill the recording with waits that are long. The programs are in hostile_waits.py; each attack has a daemon of its own, all at
# one time.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "being other users takes root"
at_once exec exit naps
user=4711 group=4712
rate_hz=200
chmod 755 "$WORK"
cp "$BIN/profctl" "$WORKLOADS/napper" "$WORK"

# begin KIND [ARGUMENT...]: an attacker, whose output is in $WORK/KIND.
begin() {
    run_in_background python3 "$SOURCE_DIR/tests/system/hostile_waits.py" "$@" >"$WORK/$1" 2>"$WORK/err"
    wait_until 60 grep -q ready "$WORK/$1" || fail "the attack itself went wrong: $(cat "$WORK/err")"
}

play_exec() {
    start_daemon
    chgrp "$group" "$CPU_PROFILERD_SOCKET" && chmod 660 "$CPU_PROFILERD_SOCKET" || fail "the socket cannot be given to a group"

    echo "== a timer for each nanosecond"
    expect_status 2 setpriv --reuid="$user" --regid="$group" --clear-groups "$WORK/profctl" record -e task-clock:1 -o - -- true 2>"$WORK/out" >/dev/null
    cat "$WORK/out"
    grep -q "'task-clock' with a period of 1 ns; at least 10000 is allowed" "$WORK/out" || fail "profctl does not name the limit"
    python3 "$SOURCE_DIR/tests/system/hostile_waits.py" ask_timer "$CPU_PROFILERD_SOCKET" 2>"$WORK/err" || fail "$(tail -n 1 "$WORK/err")"

    echo "== a thread that executes in its leader's place"
    echo '{"off_cpu": {"max_cost_percent": 100}}' >"$WORK/all.json"
    begin exec "$WORK/napper"
    run_in_background profctl record --native --config "$WORK/all.json" -a -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
    has_executed() {
        [ "$(grep -c '^exec' "$WORK/exec")" -ge "$1" ]
    }
    wait_until 60 has_executed $(($(grep -c '^exec' "$WORK/exec") + 8)) || fail "nothing executes: $(cat "$WORK/err")"
    cp "$WORK/exec" "$WORK/truth" # what is over before the recording ends
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat "$WORK/record.out")"
    stop_background
    profctl dump --json "$WORK/p.fxt" >"$WORK/dump" || fail "dump"
    python3 "$SOURCE_DIR/tests/system/hostile_waits.py" judge_exec "$WORK/truth" "$WORK/dump" 2>"$WORK/err" || fail "$(tail -n 1 "$WORK/err")"
}

play_exit() {
    echo "== processes that exit as a session begins"
    start_daemon
    begin exit
    for run in 1 2 3 4 5 6 7 8; do
        profctl record --native --wall --kernel -a -d 0.5 -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"
        profctl report --json -n 0 --event off-cpu "$WORK/p.fxt" >"$WORK/report.json" || fail "report"
        expect_json "$WORK/report.json" "d['rows'] and not any(row['name'] == 'do_task_dead' for row in d['rows'])" "run $run: the dead wait"
    done
    stop_background
}

play_naps() {
    echo "== 600 threads that nap"
    echo "{\"max_event_rate_hz\": $rate_hz}" >"$WORK/daemon.json"
    start_daemon --config "$WORK/daemon.json"
    begin naps 600
    echo '{"off_cpu": {"max_cost_percent": 100}, "kernel_stacks": true}' >"$WORK/naps.json"
    profctl start --config "$WORK/naps.json" -F 99 >/dev/null || fail "start"
    own=$(pgrep -P "$daemon_pid" || true)
    sleep 10.5 # two seconds in which lengths are found, eight that are judged, and one that ends early
    profctl stop >/dev/null || fail "stop"
    profctl read -o "$WORK/naps.fxt" >/dev/null || fail "read"
    own="$daemon_pid $own $(pgrep -P "$daemon_pid" || true)"
    profctl close || fail "close"
    stop_background
    profctl dump --json "$WORK/naps.fxt" >"$WORK/dump" || fail "dump"
    # shellcheck disable=SC2086
    python3 "$SOURCE_DIR/tests/system/hostile_waits.py" judge_naps "$WORK/dump" "$rate_hz" $own 2>"$WORK/err" || fail "$(tail -n 1 "$WORK/err")"
}

"play_$STORY"
