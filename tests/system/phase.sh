#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program whose work begins with each tick of 1, 4 and 10 ms is sampled at rates whose exact periods divide
# these: each of its handlers must be found with the share of CPU time that the program measured. A period that is in
# step with the tick finds it never, or far too often, the same for the whole run.
#
# The bound: n independent samples estimate a share p with a standard deviation of sqrt(p(1-p)/n). Samples
# that sweep all phases of the tick again and again are less scattered than that, but for the last sweep,
# which may be half done: of a handler of 2.6 % a sweep of m samples finds 0.026 m, and n is at least three
# sweeps, since 0.1 % of a rate is a sweep of 1 ms each second. So an error is at most 0.026 n / 6, below 5
# standard deviations at up to 33,000 samples. 5 of them are exceeded once in 1.7 million cases. A handler that
# is never found is more than 5 of them away from 1,000 samples on, and the fewest are 3,000. Where the kernel's ticks
# take a part of its time it has less: of 1 % it is from 2,500 on.
. "${0%/*}/lib.sh"
require_perf
use_build release
seconds=3 ticks_us=1000,4000,10000
cpu=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')

start_daemon
for rate in 999 1000 4000; do
    profctl record --native --no-kernel -F "$rate" -o "$WORK/phase.fxt" -- \
        nice -n -20 "$WORKLOADS/in_step" "$ticks_us" --seconds "$seconds" --cpu "$cpu" >"$WORK/truth" 2>"$WORK/record.out" ||
        fail "record: $(cat "$WORK/record.out")"
    profctl report --json -n 0 "$WORK/phase.fxt" >"$WORK/report.json" || fail "report failed"
    python3 "$SOURCE_DIR/scripts/phase.py" "$rate" "$ticks_us" "$WORK/truth" "$WORK/report.json" ||
        fail "$rate Hz does not find the share of a handler in step with a tick"
done

# An exact period that divides a tick is what was asked for, and is remarked on: by the daemon and by check.
echo '{"sample_period_ns": 1000000}' >"$WORK/exact.json"
run_in_background "$WORKLOADS/busy" --seconds 280 >/dev/null
profctl record --native --config "$WORK/exact.json" -d 0.1 -o "$WORK/exact.fxt" >"$WORK/exact.out" 2>"$WORK/exact.err" || fail "exact: $(cat "$WORK/exact.err")"
grep -q '^profctl: note: sample_period_ns: is in step with kernel ticks of 1 ms: ' "$WORK/exact.err" ||
    fail "record says nothing of a period in step: $(cat "$WORK/exact.err")"
grep -q ', one every 1.000000 ms of a CPU (1000.0 Hz), ' "$WORK/exact.out" || fail "record shows another rate: $(cat "$WORK/exact.out")"
profctl dump --json "$WORK/exact.fxt" >"$WORK/exact.json.dump" || fail "dump failed"
grep -q '"notes":\["sample_period_ns: is in step' "$WORK/exact.json.dump" || fail "the file does not say it"
profctl check "$WORK/exact.json" >/dev/null 2>"$WORK/check.err" || fail "check refuses an exact period"
grep -q 'sample_period_ns: warning: is in step with kernel ticks of 1 ms: ' "$WORK/check.err" ||
    fail "check says nothing of a period in step: $(cat "$WORK/check.err")"
profctl record --native --no-kernel -F 1000 -d 0.1 -o "$WORK/rate.fxt" >"$WORK/rate.out" 2>"$WORK/rate.err" || fail "rate: $(cat "$WORK/rate.err")"
! grep -q note: "$WORK/rate.err" || fail "1000 Hz is remarked on: $(cat "$WORK/rate.err")"
grep -q ', one every 1.001000 ms of a CPU (999.0 Hz), ' "$WORK/rate.out" || fail "the summary has no true rate: $(cat "$WORK/rate.out")"
