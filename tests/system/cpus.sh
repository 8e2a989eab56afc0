#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A session of one CPU: samples come from it alone, the books have it alone, and what was started and mapped on
# another CPU has its names all the same when it comes over. A CPU that is not there is refused by its number.
. "${0%/*}/lib.sh"
require_perf
mapfile -t cpus < <(lscpu --online --parse=CPU | grep -v '^#')
[ ${#cpus[@]} -ge 2 ] || skip "this machine has one CPU"
use_build release
start_daemon
here=${cpus[0]}
there=${cpus[1]}

echo "{\"frequency_hz\": 2000, \"cpus\": \"$here\"}" >"$WORK/one.json"
began_ms=$(date +%s%3N)
profctl start --config "$WORK/one.json" >/dev/null || fail "start"
# It starts and maps its files there, and runs on here.
run_in_background taskset -c "$there" "$WORKLOADS/busy" --seconds 1.5 >/dev/null
mover=$BACKGROUND_PID
wait_until 10 grep -qx busy "/proc/$mover/comm" || fail "the workload does not begin"
sleep 0.5
taskset -cp "$here" "$mover" >/dev/null || fail "the workload cannot be moved"
wait "$mover" || fail "the workload"
taskset -c "$there" "$WORKLOADS/busy" --seconds 0.5 >/dev/null
profctl stop --json >"$WORK/stop.json" || fail "stop"
ended_ms=$(date +%s%3N)
expect_json "$WORK/stop.json" "[c['cpu'] for c in d['books']['cpus']] == [$here]" "the books have other CPUs"
expect_json "$WORK/stop.json" "3000 < d['books']['total']['expected'] <= 2 * $((ended_ms - began_ms))" "one CPU has two ticks a millisecond"
profctl read --native -o "$WORK/p.fxt" >"$WORK/read.out" || fail "read"
profctl close >/dev/null
profctl dump --json "$WORK/p.fxt" >"$WORK/dump.json" || fail "dump"
sampled=$(PYTHONPATH=$SOURCE_DIR/scripts python3 -c 'import sys
from samples import whole_samples
print(*{sample["cpu"] for sample in whole_samples(sys.stdin)})' <"$WORK/dump.json")
[ "$sampled" = "$here" ] || fail "samples come from the CPUs $sampled"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/report.json" || fail "report"

expect_json "$WORK/report.json" "[r for r in d['rows'] if r['name'] == 'spin_three_fifths']" "what came over has no names"

for list in "$here,4000" 4000; do
    echo "{\"cpus\": \"$list\"}" >"$WORK/absent.json"
    expect_status 1 profctl record --native --config "$WORK/absent.json" -d 1 -o "$WORK/none.fxt" 2>"$WORK/err"
    grep -q 'cpus: CPU 4000 is none that this machine has' "$WORK/err" || fail "refused with: $(cat "$WORK/err")"
done
