#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What record does besides a file of its own: standard output under its other names, and a word about
# targets that were never seen.
. "${0%/*}/lib.sh"
require_perf
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 20 >/dev/null
busy=$BACKGROUND_PID
run_in_background sleep 60
idle=$BACKGROUND_PID

for path in - /dev/stdout /dev/fd/1; do
    profctl record -d 0.5 -o "$path" 2>"$WORK/err" | profctl report --json - >"$WORK/report.json" ||
        fail "record -o $path: $(cat "$WORK/err")"
    expect_json "$WORK/report.json" "d['samples'] > 100" "record -o $path: too few samples"
    grep -q 'samples in' "$WORK/err" || fail "record -o $path: no summary on standard error"
done

echo "{\"targets\": {\"pids\": [$busy, $idle]}}" >"$WORK/targets.json"
profctl record -d 0.5 --config "$WORK/targets.json" -o "$WORK/targets.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
[ "$(cat "$WORK/err")" = "profctl: pid $idle: is a target and has no sample: it did not run, or there is no such process" ] ||
    fail "record says of its targets: $(cat "$WORK/err")"
