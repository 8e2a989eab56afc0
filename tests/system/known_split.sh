#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two busy programs, each alone on its CPU, split their time between two functions in a known proportion.
# Four seconds at 4000 Hz: nothing is lost, the books close, and each function has its share.
#
# The bound: a share p that n independent samples estimate has a standard deviation of sqrt(p(1-p)/n).
# 5 of them are exceeded once in 1.7 million cases. Periodic sampling of turns of random length is less
# scattered than independent samples, never more. What is compared with is the CPU time that the program
# measured around its calls, so the clock's own calls (under 0.1 % of the time) are on neither side.
. "${0%/*}/lib.sh"
require_perf
use_build release
read -ra cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
[ "${#cpus[@]}" -eq 2 ] || skip "two CPUs are needed"

start_daemon
busy_pids=()
i=0
for name in busy_a busy_b; do
    cp "$WORKLOADS/busy" "$WORK/$name"
    run_in_background "$WORK/$name" --seconds 5 --cpu "${cpus[i]}" >"$WORK/$name.truth"
    busy_pids+=("$BACKGROUND_PID")
    i=$((i + 1))
done
sleep 0.5
profctl record --native --no-kernel -F 4000 -d 4 -o "$WORK/split.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
wait "${busy_pids[@]}"
profctl report --json -n 0 "$WORK/split.fxt" >"$WORK/report.json" || fail "report failed"
python3 - "$WORK" <<'PYTHON' || fail "the shares or the books are wrong"
import json, math, sys
work = sys.argv[1]
report = json.load(open(work + "/report.json"))
bad = False
functions = ("spin_three_fifths", "spin_two_fifths")
for letter in "ab":
    truth = dict((n, int(v)) for n, v in (l.split() for l in open(f"{work}/busy_{letter}.truth")))
    program = "busy_" + letter
    ours = {row["name"]: row["self"] for row in report["rows"]
            if (row["module"] or "").endswith(program) and row["name"] in functions}
    count = sum(ours.values())
    for name in functions:
        p = truth[name] / sum(truth.values())
        share = ours.get(name, 0) / max(count, 1)
        bound = 5 * math.sqrt(p * (1 - p) / max(count, 1))
        print(f"{program} {name}: truth {p:.4f} ours {share:.4f} (n {count}, bound {bound:.4f})")
        bad |= abs(share - p) > bound or count < 1000
for cpu in report["books"]["cpus"] + [report["books"]["total"]]:
    unexplained = cpu["unexplained"] / cpu["expected"]
    print(f"cpu {cpu.get('cpu', 'total')}: expected {cpu['expected']} received {cpu['received']} lost {cpu['lost']} "
          f"idle {cpu['idle']} unexplained {cpu['unexplained']} ({100 * unexplained:.2f} %) steal {cpu['steal_ns'] / 1e6:.0f} ms")
    # books.sh says why.
    bad |= cpu["lost"] != 0 or abs(cpu["unexplained"]) > max(cpu["expected"] / 1000, 2 * len(report["books"]["cpus"]))
    bad |= cpu["received"] != cpu["kept"] + cpu["filtered"] + cpu["dropped"]
sys.exit(bad)
PYTHON
