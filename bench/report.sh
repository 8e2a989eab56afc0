#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long `profctl report` takes for each of its views, and how much memory: of 4,800,000 samples of 360,000 different
# stacks (bench/many_stacks.c), which is ten minutes of two busy CPUs at 4000 Hz with few stacks alike, and of 40,000 samples
# of 3,000 stacks; beside them `perf report` of the same samples, as `profctl export --format perf-data` gives them.
# SAMPLES=4800000, STACKS=360000, ROUNDS=3, LIMIT_SECONDS=120 for a run of perf.
# Goals: each view in 2 s and 500 MB, and in 0.1 s of the small recording. Exit status 1 when one is missed.
#
# What counts is the CPU's time (user and system), the least of all rounds: views take one thread, and other programs can
# only add to it. The files are in the page cache.
. "${0%/*}/lib.sh"

samples=${SAMPLES:-4800000}
stacks=${STACKS:-360000}
rounds=${ROUNDS:-3}
limit=${LIMIT_SECONDS:-120}
views=("list: -n 20" "module: --by module" "command: --by command" "thread: --by thread" "per_second: --per-second" "tree: --tree"
    "inverted: --tree --inverted" "callers: --callers function_7" "callees: --callees function_7" "json: --json -n 0")

bench_need "$BIN/profctl" perf
many=$BIN/bench/many_stacks
[ -x "$many" ] || { echo "$0 needs $many (cmake --build --preset release --target many_stacks)" >&2; exit 1; }

# timed NAME COMMAND...: adds "NAME SECONDS MIB" to the results, or "NAME - -" where the limit ended the run.
timed() {
    local name=$1
    shift
    if timeout "$limit" /usr/bin/time -f '%U %S %M' -o "$BENCH_WORK/time" "$@" >/dev/null 2>"$BENCH_WORK/err"; then
        awk -v name="$name" 'END { printf "%s %.2f %.0f\n", name, $1 + $2, $3 / 1024 }' "$BENCH_WORK/time"
    else
        echo "$name - -"
    fi >>"$BENCH_WORK/times"
    tail -n 1 "$BENCH_WORK/times" >&2
}

run_views() {
    local size=$1 view
    for view in "${views[@]}"; do
        # shellcheck disable=SC2086
        timed "$size.${view%%:*}" "$BIN/profctl" report ${view#*: } "$BENCH_WORK/$size.fxt"
    done
}

"$many" "$samples" "$stacks" >"$BENCH_WORK/large.fxt"
"$many" 40000 3000 >"$BENCH_WORK/small.fxt"
for size in large small; do
    "$BIN/profctl" export --format perf-data -o "$BENCH_WORK/$size.data" "$BENCH_WORK/$size.fxt"
done
for ((round = 1; round <= rounds; round++)); do
    run_views large
    run_views small
    timed small.perf perf report -f --stdio -i "$BENCH_WORK/small.data"
done
timed large.perf perf report -f --stdio -i "$BENCH_WORK/large.data"

# The least of each, as a table; status 1 when a goal is missed.
awk -v samples="$samples" -v stacks="$stacks" -v limit="$limit" '
    !($1 in least) { least[$1] = $2; most[$1] = $3; order[++count] = $1 }
    $2 != "-" && ($2 < least[$1] || least[$1] == "-") { least[$1] = $2 }
    $3 > most[$1] { most[$1] = $3 }
    function judge(name, goal) {
        missed += least[name] == "-" || least[name] > goal || most[name] > 500
        return least[name] == "-" || least[name] > goal || most[name] > 500 ? "missed" : "met"
    }
    END {
        printf "\n%d samples of %d stacks: goal 2 s, 500 MiB; 40000 samples of 3000 stacks: goal 0.1 s\n\n", samples, stacks
        print "| view | s | MiB | goal | s, 40000 samples | goal |\n|---|---|---|---|---|---|"
        for (i = 1; i <= count; i++) {
            name = order[i]
            if (name !~ /^large/ || name ~ /perf$/) continue
            view = substr(name, 7)
            printf "| %s | %s | %s | %s | %s | %s |\n", view, least[name], most[name], judge(name, 2), least["small." view],
                judge("small." view, 0.1)
        }
        printf "| perf report | %s | %s | - | %s | - |\n", least["large.perf"] == "-" ? "over " limit : least["large.perf"],
            most["large.perf"], least["small.perf"]
        exit missed > 0
    }' "$BENCH_WORK/times"
