#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two busy programs, each alone on its CPU, split their time between two functions in a known proportion.
# Ten seconds at 4000 Hz: nothing is lost, the books close, and each function has its share. Then perf
# record looks at the same, and its shares are printed beside ours.
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

# start_busy: both programs, for long enough; their truth goes to $WORK/busy_a.truth and busy_b.truth.
start_busy() {
    local i=0 name
    for name in busy_a busy_b; do
        cp "$WORKLOADS/busy" "$WORK/$name"
        "$WORK/$name" --seconds 12 --cpu "${cpus[i]}" >"$WORK/$name.truth" &
        busy_pids[i]=$!
        i=$((i + 1))
    done
    sleep 0.5
}

start_daemon
busy_pids=()
start_busy
profctl record -F 4000 -d 10 -o "$WORK/split.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
wait "${busy_pids[@]}"
profctl report --json -n 0 "$WORK/split.fxt" >"$WORK/report.json" || fail "report failed"
cp "$WORK/busy_a.truth" "$WORK/truth_a"
cp "$WORK/busy_b.truth" "$WORK/truth_b"

start_busy
perf record -q -e cpu-clock -F 4000 -a -g -o "$WORK/perf.data" -- sleep 10 >/dev/null 2>&1 || fail "perf record failed"
wait "${busy_pids[@]}"
perf report -i "$WORK/perf.data" --stdio --no-children -g none --sort comm,sym -F sample,comm,sym \
    2>/dev/null >"$WORK/perf.txt" || fail "perf report failed"

python3 - "$WORK" <<'PYTHON' || fail "the shares or the books are wrong"
import json, math, re, sys
work = sys.argv[1]
report = json.load(open(work + "/report.json"))
perf = {}
for line in open(work + "/perf.txt"):
    match = re.match(r"\s*(\d+)\s+(busy_[ab])\s+\[\.\]\s+(\w+)", line)
    if match:
        perf[match.group(2), match.group(3)] = int(match.group(1))
bad = False
functions = ("spin_three_fifths", "spin_two_fifths")
for letter in "ab":
    truth = dict((n, int(v)) for n, v in (l.split() for l in open(f"{work}/truth_{letter}")))
    program = "busy_" + letter
    ours = {row["name"]: row["self"] for row in report["rows"]
            if (row["module"] or "").endswith(program) and row["name"] in functions}
    count = sum(ours.values())
    for name in functions:
        p = truth[name] / sum(truth.values())
        share = ours.get(name, 0) / max(count, 1)
        bound = 5 * math.sqrt(p * (1 - p) / max(count, 1))
        theirs = perf.get((program, name), 0) / max(1, sum(perf.get((program, f), 0) for f in functions))
        print(f"{program} {name}: truth {p:.4f} ours {share:.4f} (n {count}, bound {bound:.4f}) perf {theirs:.4f}")
        bad |= abs(share - p) > bound or count < 1000
for cpu in report["books"]["cpus"] + [report["books"]["total"]]:
    unexplained = cpu["unexplained"] / cpu["expected"]
    print(f"cpu {cpu.get('cpu', 'total')}: expected {cpu['expected']} received {cpu['received']} lost {cpu['lost']} "
          f"idle {cpu['idle']} unexplained {cpu['unexplained']} ({100 * unexplained:.2f} %) steal {cpu['steal_ns'] / 1e6:.0f} ms")
    bad |= cpu["lost"] != 0 or abs(unexplained) > 0.02
    bad |= cpu["received"] != cpu["kept"] + cpu["filtered"] + cpu["dropped"]
sys.exit(bad)
PYTHON
