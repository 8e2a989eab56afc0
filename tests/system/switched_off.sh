#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Where a CPU has more switches than may be recorded, their records are off for a second at a time. Two threads on each CPU
# hand a byte to and fro, with a tenth of the time that this needs; a program that knows its own waits says how long each
# was at the most. No wait that is written is longer, and the time is in the books: see switched_off.py.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

run_in_background python3 "$SOURCE_DIR/tests/system/switched_off.py" nap >"$WORK/truth"
naps=$BACKGROUND_PID
wait_until 60 grep -q napping "$WORK/truth" || fail "the program that naps does not begin"
# Waits of 40 ms and more are written. The program has one now and then; a second without records would be one, too.
echo '{"off_cpu": {"max_cost_percent": 1, "min_wait_us": 40000}}' >"$WORK/few.json"
run_in_background profctl record --native --config "$WORK/few.json" -p "$naps" -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
hurried=()
for cpu in $(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'); do
    run_in_background taskset -c "$cpu" "$WORKLOADS/ping_pong" 4 >"$WORK/rate.$cpu"
    hurried+=("$BACKGROUND_PID")
done
wait "${hurried[@]}" || fail "a pair of threads failed"
# Between two such seconds there is a tenth of one with records. Whatever else runs, some wait falls into it.
has_waits() {
    profctl status --json >"$WORK/status.json" &&
        [ "$(json "$WORK/status.json" "any(e['event'] == 'off-cpu' and e['total']['kept'] > 0 for e in d['session']['books']['events'])")" = true ]
}
wait_until 60 has_waits || fail "no wait of the program is written: $(cat "$WORK/status.json")"
kill -USR1 "$naps"
wait_until 60 grep -q ended "$WORK/truth" || fail "a thread does not end"
kill -TERM "$recorder"
wait "$recorder" || fail "record: $(cat "$WORK/record.out")"
kill -TERM "$naps"
wait "$naps" || fail "the program that naps"
for file in "$WORK"/rate.*; do
    echo "${file##*.} $(cat "$file")"
done >"$WORK/rates"
profctl dump --json "$WORK/p.fxt" >"$WORK/dump" || fail "dump"
python3 "$SOURCE_DIR/tests/system/switched_off.py" judge "$WORK/truth" "$WORK/dump" "$WORK/rates" 2>"$WORK/err" ||
    fail "$(tail -n 3 "$WORK/err" | tr '\n' ' ')"
