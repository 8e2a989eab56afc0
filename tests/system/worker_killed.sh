#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The ELF worker is killed twice during a session. The session goes on, the status says how often the worker
# was started anew, and what is met afterwards still gets its name.
. "${0%/*}/lib.sh"
require_perf
start_daemon

# Only what these programs run is read: what other programs bring might kill the worker as well.
cp "$WORKLOADS/busy" "$WORK/wk-before"
cp "$WORKLOADS/brief" "$WORK/wk-newcomer"
run_in_background "$WORK/wk-before" --seconds 280 >/dev/null
run_in_background profctl record --native --no-kernel -F 4000 --comm 'wk-*' -o "$WORK/killed.fxt"
record_pid=$BACKGROUND_PID
sleep 1
# One that has only just begun may be ended by the daemon itself, for the file of another author, and is no restart then.
kill_worker() {
    pid=$(pgrep -o -f -P "$daemon_pid" -- --elf-worker) && sleep 0.3 && [ "$(pgrep -o -f -P "$daemon_pid" -- --elf-worker)" = "$pid" ] &&
        kill -KILL "$pid" 2>/dev/null
}
restarts_told() {
    profctl status --json >"$WORK/status.json" && [ "$(json "$WORK/status.json" "d['session']['worker_restarts']")" = "$1" ]
}
for time in 1 2; do
    # Where that one was being ended all the same, the next one dies.
    for _ in 1 2 3 4 5; do
        wait_until 5 kill_worker || fail "there is no worker to kill"
        wait_until 5 restarts_told "$time" && break
    done
    restarts_told "$time" || fail "the status does not tell of $time restarts: $(cat "$WORK/status.json")"
done
expect_json "$WORK/status.json" "d['session']['state'] == 'running'" "the session does not run any more"
"$WORK/wk-newcomer" --seconds 1 >/dev/null
kill -TERM "$record_pid"
wait "$record_pid" || fail "the recording failed"
profctl report --json -n 0 "$WORK/killed.fxt" >"$WORK/killed.json" || fail "report failed"
expect_json "$WORK/killed.json" "[r for r in d['rows'] if r['name'] == 'brief_spin' and r['module'].endswith('wk-newcomer')]" \
    "what came after the worker's death has no name"
expect_json "$WORK/killed.json" "[r for r in d['rows'] if r['name'] == 'spin_three_fifths']" "what came before has lost its name"
