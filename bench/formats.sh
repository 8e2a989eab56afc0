#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long `profctl export` takes for each of its formats, how much memory, and how long the output is: of 4,800,000
# samples of 360,000 different stacks (bench/many_stacks.c). Beside them `perf script` of the same samples, as `profctl
# export --format perf-data` gives them, to its limit. There is no goal. SAMPLES=4800000, STACKS=360000,
# LIMIT_SECONDS=120 for perf.
#
# What counts is the CPU's time (user and system): formats take one thread, and other programs can only add to it.
. "${0%/*}/lib.sh"

samples=${SAMPLES:-4800000}
stacks=${STACKS:-360000}
limit=${LIMIT_SECONDS:-120}

bench_need "$BIN/profctl" perf
many=$BIN/bench/many_stacks
[ -x "$many" ] || { echo "$0 needs $many (cmake --build --preset release --target many_stacks)" >&2; exit 1; }

# timed NAME COMMAND...: a row of the table; one that the limit ended says so.
timed() {
    local name=$1 bytes
    shift
    bytes=$(timeout "$limit" /usr/bin/time -f '%U %S %M' -o "$BENCH_WORK/time" "$@" 2>/dev/null | wc -c) || bytes=
    awk -v name="$name" -v bytes="$bytes" -v limit="$limit" 'END {
        if (NF != 3) printf "| %s | over %s | - | - |\n", name, limit
        else printf "| %s | %.1f | %.0f | %.0f |\n", name, $1 + $2, $3 / 1024, bytes / 1048576
    }' "$BENCH_WORK/time"
}

bench_machine
"$many" "$samples" "$stacks" >"$BENCH_WORK/p.fxt"
echo "$samples samples of $stacks stacks, $(($(stat -c %s "$BENCH_WORK/p.fxt") / 1048576)) MiB"
echo
printf '| format | s | MiB of memory | MiB of output |\n|---|---|---|---|\n'
"$BIN/profctl" export --help | sed -n '/^Formats:/,$s/^  \([a-z-]*\) .*/\1/p' | while read -r format; do
    : >"$BENCH_WORK/time"
    timed "$format" "$BIN/profctl" export --format "$format" --addresses "$BENCH_WORK/p.fxt"
done
"$BIN/profctl" export --format perf-data -o "$BENCH_WORK/p.data" "$BENCH_WORK/p.fxt"
: >"$BENCH_WORK/time"
timed "perf script" perf script -f -i "$BENCH_WORK/p.data"
