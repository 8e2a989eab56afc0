# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by every bench/NAME.sh. A bench compares contenders; a contender is a shell function that runs
# once and prints lines `METRIC VALUE`. They run in turn (A B A B ...), so that whatever else the machine
# does meets both alike, and medians are compared, never single runs.
#   . "${0%/*}/lib.sh"
#   bench_interleave 5 ours perf
#   bench_table "received_percent bytes_per_sample" ours perf
set -euo pipefail

SOURCE_DIR=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
RELEASE_DIR=${RELEASE_DIR:-$SOURCE_DIR/build/release}
BIN=$RELEASE_DIR/bin
BENCH_WORK=$(mktemp -d)
BENCH_RESULTS=$BENCH_WORK/results # lines `CONTENDER METRIC VALUE`
bench_pids=()

# shellcheck source=scripts/daemon.sh
. "$SOURCE_DIR/scripts/daemon.sh"

bench_finish() {
    local status=$?
    bench_stop_load
    daemon_stop || status=1
    rm -rf "$BENCH_WORK"
    exit "$status"
}
trap bench_finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# bench_need FILE...: ends the bench unless these can be run.
bench_need() {
    local program
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "$0 needs $program (scripts/install-deps.sh --bench; cmake --build --preset release)" >&2
            exit 1
        fi
    done
}

bench_online_cpus() {
    lscpu --online --parse=CPU | grep -v '^#'
}

# bench_load SECONDS: one busy program pinned to each online CPU, until bench_stop_load.
bench_load() {
    local cpu
    for cpu in $(bench_online_cpus); do
        "$BIN/workloads/busy" --seconds "$1" --cpu "$cpu" >/dev/null &
        bench_pids+=("$!")
    done
}

bench_stop_load() {
    if [ ${#bench_pids[@]} -gt 0 ]; then
        kill "${bench_pids[@]}" 2>/dev/null || true
        wait "${bench_pids[@]}" 2>/dev/null || true
        bench_pids=()
    fi
}

# bench_interleave ROUNDS CONTENDER...: prints every value as it comes, on stderr.
bench_interleave() {
    local rounds=$1 round contender
    shift
    for ((round = 1; round <= rounds; round++)); do
        for contender in "$@"; do
            "$contender" >"$BENCH_WORK/run"
            sed "s/^/$contender /" "$BENCH_WORK/run" | tee -a "$BENCH_RESULTS" |
                sed "s/^/round $round: /" >&2
        done
    done
}

# bench_table METRICS CONTENDER...: the median of each with its range, and the first contender's median as
# a ratio of each other's.
bench_table() {
    python3 - "$BENCH_RESULTS" "$@" <<'PYTHON'
import statistics, sys
values = {}
for line in open(sys.argv[1], encoding="utf-8"):
    contender, metric, value = line.split()
    values.setdefault((contender, metric), []).append(float(value))
metrics, contenders = sys.argv[2].split(), sys.argv[3:]
rows = [["median (least - most)", *contenders, *(f"{contenders[0]}/{c}" for c in contenders[1:])]]
for metric in metrics:
    row, medians = [metric], []
    for contender in contenders:
        runs = values.get((contender, metric))
        if runs is None:
            medians.append(0)
            row.append("-")
            continue
        medians.append(statistics.median(runs))
        row.append(f"{medians[-1]:.5g} ({min(runs):.5g} - {max(runs):.5g})")
    row += [f"{medians[0] / other:.3f}" if other else "-" for other in medians[1:]]
    rows.append(row)
widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
for row in rows:
    print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
PYTHON
}

# bench_median CONTENDER METRIC: for a bench that ends with a verdict.
bench_median() {
    awk -v c="$1" -v m="$2" '$1 == c && $2 == m { print $3 }' "$BENCH_RESULTS" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# bench_machine: one line that every published number needs beside it.
bench_machine() {
    printf '%s, %s CPUs, Linux %s, %s\n' \
        "$(lscpu | sed -n 's/^Model name:[[:space:]]*//p' | head -n 1)" \
        "$(bench_online_cpus | wc -l)" "$(uname -r)" "$(date -u +%Y-%m-%d)"
}
