#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whether work in step with a tick is found with the share of CPU time that it had, ours and perf's: RUNS=10 runs at
# each of RATES, 97 from 49 to 20,000 Hz. Goal: none of ours is wrong: a share more than 5 standard deviations of as
# many independent samples away from the program's own measure. Exit status 1 when one is, 3 when runs are left to do.
#   bench/phase.sh     RUNS=10 RATES="999 1000" RESULTS=FILE LIMIT_SECONDS=240 ALONE_HZ=5000
#
# One program has handlers in step with 1, 4 and 10 ms at the same time (tests/workloads/in_step.c). It runs on each of
# two CPUs, which is two runs. `perf record` of all CPUs records the same seconds: each recorder has timers of its own,
# and the last columns have the samples of each in percent of what its rate gives in the program's CPU time. Above
# ALONE_HZ perf records after ours instead: its interrupts are in step with the tick, and at 10,000 Hz and more they take
# so much of some handlers' time that the program's own measure is off by more than the bound. A run is as long as its
# rate needs (bench/phase_plan.py derives it): 26 s at 49 Hz, 2 s from 639 Hz on, 524 s for one run at each rate, 1 h
# 10 min for the whole.
#
# RESULTS is a file of one line a run and tick. What it has is not run again, so the whole can be made in slices of
# LIMIT_SECONDS. Runs go round all rates, highest first, so an unfinished table has something of each.
# RATES="999 1000 4000" RUNS=2 takes 10 s.
#
# The rates are evenly spread on a scale of logarithms, and the nearest of them are moved to what is usual: 49, 97,
# 100, 250, 500, 999, 1000, 2000, 4000, 10000, 20000.
. "${0%/*}/lib.sh"

[ $# -eq 0 ] || { echo "usage: RUNS=10 RATES=... RESULTS=FILE LIMIT_SECONDS=S $0" >&2 && exit 2; }
runs=${RUNS:-10}
results=${RESULTS:-$BENCH_RESULTS}
limit=${LIMIT_SECONDS:-86400}
alone_hz=${ALONE_HZ:-5000}
ticks_us=1000,4000,10000
rates=${RATES:-$(python3 -c '
usual = [49, 97, 100, 250, 500, 999, 1000, 2000, 4000, 10000, 20000]
rates = [round(49 * (20000 / 49) ** (i / 96)) for i in range(97)]
for hz in usual:
    i = min((i for i in range(97) if rates[i] not in usual), key=lambda i: abs(rates[i] / hz - 1)) if hz not in rates else None
    if i is not None:
        rates[i] = hz
print(*sorted(rates, reverse=True))')}
mapfile -t cpus < <(bench_online_cpus | tail -n 2)
program=$BIN/workloads/in_step
bench_need "$BIN/cpu-profilerd" "$BIN/profctl" "$program" perf python3

# The programs are told apart by their names.
for cpu in "${cpus[@]}"; do
    ln -s "$program" "$BENCH_WORK/on_$cpu"
done
cat >"$BENCH_WORK/run" <<'SHELL'
#!/bin/bash
# run FOLDER SECONDS TICKS CPU...: the program on each CPU, to its end.
folder=$1 seconds=$2 ticks=$3
shift 3
for cpu in "$@"; do
    nice -n -20 "$folder/on_$cpu" "$ticks" --seconds "$seconds" --cpu "$cpu" >"$folder/truth_$cpu" &
done
wait
SHELL
chmod 755 "$BENCH_WORK/run"

with_ours() {
    "$BIN/profctl" record --no-kernel -F "$1" -o "$BENCH_WORK/ours.fxt" -- "${@:2}" >"$BENCH_WORK/ours.out" 2>&1
}

# Of all CPUs, as ours: an event of the process would be switched on and off with it.
with_perf() {
    perf record -q -e cpu-clock -F "$1" -a -o "$BENCH_WORK/perf.data" -- "${@:2}" >"$BENCH_WORK/perf.out" 2>&1
}

# judge CONTENDER RATE CPU: adds a line for each tick to the results, from lines `PROGRAM FUNCTION` of the samples.
judge() {
    awk -v program="on_$3" '$1 == program { print $2 }' "$BENCH_WORK/$1.samples" >"$BENCH_WORK/counts"
    "$SOURCE_DIR/scripts/phase.py" "$2" "$ticks_us" "$BENCH_WORK/truth_$3" "$BENCH_WORK/counts" >"$BENCH_WORK/lines" || true
    awk -v who="$1" -v cpu_ns="$(awk '{ sum += $2 } END { printf "%.0f", sum }' "$BENCH_WORK/truth_$3")" \
        '{ print who, cpu_ns, $0 }' "$BENCH_WORK/lines" >>"$BENCH_WORK/new_lines"
}

ours_samples() {
    "$BIN/profctl" export --format folded -o "$BENCH_WORK/folded" "$BENCH_WORK/ours.fxt"
    awk '{ count = $NF; sub(/ [0-9]+$/, ""); parts = split($0, frames, ";")
        for (i = 0; i < count; i++) print frames[1], frames[parts] }' "$BENCH_WORK/folded" >"$BENCH_WORK/ours.samples"
}

perf_samples() {
    perf script -i "$BENCH_WORK/perf.data" -F comm,ip,sym 2>/dev/null | awk '{ print $1, $3 }' >"$BENCH_WORK/perf.samples"
}

# one_run RATE SECONDS: a run on each CPU, with both recorders.
one_run() {
    local program=("$BENCH_WORK/run" "$BENCH_WORK" "$2" "$ticks_us" "${cpus[@]}") cpu
    : >"$BENCH_WORK/new_lines"
    if [ "$1" -gt "$alone_hz" ]; then
        with_ours "$1" "${program[@]}"
        ours_samples
        for cpu in "${cpus[@]}"; do judge ours "$1" "$cpu"; done
        with_perf "$1" "${program[@]}"
    else
        with_perf "$1" "$BIN/profctl" record --no-kernel -F "$1" -o "$BENCH_WORK/ours.fxt" -- "${program[@]}"
        ours_samples
        for cpu in "${cpus[@]}"; do judge ours "$1" "$cpu"; done
    fi
    perf_samples
    for cpu in "${cpus[@]}"; do judge perf "$1" "$cpu"; done
    cat "$BENCH_WORK/new_lines" >>"$results" # at once, so that a run is there whole or not at all
}

runs_of() {
    awk -v rate="$1" '$1 == "ours" && $3 == rate { lines++ } END { print lines / 3 }' "$results"
}

touch "$results"
bench_machine
# shellcheck disable=SC2086
"$SOURCE_DIR/bench/phase_plan.py" "$BIN/profctl" $rates >"$BENCH_WORK/plan"
daemon_start "$BIN" "$BENCH_WORK"
left=0
for ((round = 1; round <= runs; round += ${#cpus[@]})); do
    while read -r rate seconds; do
        [ "$(runs_of "$rate")" -lt "$round" ] || continue
        if [ $((SECONDS + 2 * seconds + 10)) -gt "$limit" ]; then
            left=1
        else
            one_run "$rate" "$seconds" </dev/null
        fi
    done <"$BENCH_WORK/plan"
done

status=0
python3 - "$results" <<'PYTHON' || status=$?
import collections, re, sys
rows, wrong = {}, collections.Counter()
pattern = re.compile(r"(\S+) (\d+) +(\d+) Hz, tick (\S+) ms: truth (\S+) sampled (\S+) \(n (\d+), bound (\S+)\)")
for line in open(sys.argv[1], encoding="utf-8"):
    who, cpu_ns, rate, tick, truth, found, count, bound = pattern.match(line).groups()
    bad = line.rstrip().endswith("WRONG")
    rows.setdefault((int(rate), tick), {}).setdefault(who, []).append(
        (float(truth), float(found), float(bound), bad, 100 * int(count) / (int(cpu_ns) / 1e9 * int(rate))))
    wrong[who] += bad
print("| rate, Hz | tick, ms | truth, % | ours, % | worst / bound | wrong | perf, % | worst / bound | wrong | of the rate, %: ours | perf |")
print("|" + "---|" * 11)
for (rate, tick), cells in sorted(rows.items(), key=lambda row: (row[0][0], float(row[0][1]))):
    columns, shares = [], []
    for who in ("ours", "perf"):
        runs = cells.get(who, [])
        worst = max((abs(found - truth) / bound if bound else 9.99 for truth, found, bound, _, _ in runs), default=0)
        columns += [" ".join(f"{100 * run[1]:.2f}" for run in runs), f"{worst:.2f}", str(sum(run[3] for run in runs))]
        shares.append(f"{sum(run[4] for run in runs) / max(1, len(runs)):.1f}")
    truth = " ".join(f"{100 * run[0]:.2f}" for run in cells.get("ours", []))
    print("|", " | ".join([str(rate), tick, truth, *columns, *shares]), "|")
total = sum(len(cells.get("ours", [])) for cells in rows.values())
print(f"\nof {total} shares each: ours wrong {wrong['ours']}, perf wrong {wrong['perf']}")
print("MISSED " if wrong["ours"] else "reached", "goal: none of ours is wrong")
sys.exit(1 if wrong["ours"] else 0)
PYTHON
[ "$left" -eq 0 ] || { echo "runs are left: run it again with the same RESULTS" && exit 3; }
exit "$status"
