#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a sample takes in the file, plain and compressed, at 4000 Hz: a hot loop, python3, gcc's cc1, and 200
# threads; perf record's two ways in turn with ours. Goals, in bytes a sample: 64, 140, 220, 140, and 40 each
# when compressed. Exit status 1 when one is missed. ROUNDS=3 SECONDS_EACH=5.
#
# Every byte of the file counts: what is written once (the beginning, the session, the books), names, modules,
# mappings and symbols, which become less a sample the longer a recording is, and the samples. Our files are
# what `profctl record --native` writes; bench/packets.sh has what the packets for Perfetto add. perf's are perf.data as they are, without symbols, divided by the samples in
# them. Beside the bytes stands what they buy: frames a sample, which with frame pointers alone are few.
. "${0%/*}/lib.sh"

hz=4000
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-5}
programs=(hot_loop python3 cc1 threads_200)
declare -A goals=([hot_loop]=64 [python3]=140 [cc1]=220 [threads_200]=140)
compressed_goal=40

bench_need "$BIN/cpu-profilerd" "$BIN/profctl" "$BIN/workloads/busy" perf python3 gcc gzip

# run_program NAME SECONDS
run_program() {
    case $1 in
    hot_loop) "$BIN/workloads/busy" --seconds "$2" >/dev/null ;;
    python3) timeout "$2" /usr/bin/python3 "$SOURCE_DIR/tests/oracle/programs/mixed.py" ;;
    cc1) timeout "$2" bash -c 'while "$(gcc -print-prog-name=cc1)" -quiet -O2 "$1" -o /dev/null; do :; done' \
        bash "$BENCH_WORK/big.c" ;;
    threads_200) timeout "$2" "$BENCH_WORK/threads" ;;
    esac
}
export -f run_program
export BIN SOURCE_DIR BENCH_WORK

make_programs() {
    "$SOURCE_DIR/tests/oracle/programs/big.sh" c 2000 >"$BENCH_WORK/big.c"
    gcc -O1 -pthread -x c -o "$BENCH_WORK/threads" - <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
/* Threads that sort, each its own numbers. */
static int compare(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}
static void *sort_for_ever(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    for (;;) {
        int numbers[1000];
        for (int i = 0; i < 1000; i++) {
            numbers[i] = rand_r(&state);
        }
        qsort(numbers, 1000, sizeof numbers[0], compare);
    }
}
int main(void)
{
    for (size_t i = 0; i < 200; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, sort_for_ever, (void *)i) != 0) {
            return 1;
        }
    }
    pause();
}
C
}

# tell_bytes PROGRAM FILE SAMPLES
tell_bytes() {
    awk -v name="$1" -v size="$(stat -c %s "$2")" -v packed="$(gzip -c "$2" | wc -c)" -v count="$3" \
        'BEGIN { print name, size / count; print name "_gz", packed / count }'
}

# record_each COMMAND...: COMMAND PROGRAM, while the program runs.
record_each() {
    local program
    for program in "${programs[@]}"; do
        "$@" "$program"
    done
}

# ours_samples FILE: samples, and frames a sample.
ours_samples() {
    "$BIN/profctl" dump --json "$1" | PYTHONPATH=$SOURCE_DIR/scripts python3 -c 'import sys
from samples import whole_samples
depths = [len(sample["user_stack"]) for sample in whole_samples(sys.stdin)]
print(len(depths), sum(depths) / len(depths))'
}

ours_one() {
    local samples frames
    "$BIN/profctl" record --native --no-kernel -F "$hz" -o "$BENCH_WORK/ours.fxt" -- \
        bash -c "run_program $1 $seconds" >"$BENCH_WORK/ours.log" 2>&1 || true # timeout's own status
    read -r samples frames < <(ours_samples "$BENCH_WORK/ours.fxt")
    tell_bytes "$1" "$BENCH_WORK/ours.fxt" "$samples"
    echo "${1}_frames $frames"
}

# perf_one PROGRAM SECONDS OPTION...
perf_one() {
    local program=$1 duration=$2
    shift 2
    perf record -q -e cpu-clock -F "$hz" "$@" -o "$BENCH_WORK/perf.data" -- \
        bash -c "run_program $program $duration" >/dev/null 2>&1 || true
    tell_bytes "$program" "$BENCH_WORK/perf.data" \
        "$(perf script -i "$BENCH_WORK/perf.data" -G -F time 2>/dev/null | wc -l)"
}

perf_fp_one() {
    perf_one "$1" "$seconds" -g
    echo "${1}_frames $(perf script -i "$BENCH_WORK/perf.data" -F ip 2>/dev/null |
        awk 'NF > 0 { frames++; empty = 0 } NF == 0 { samples += !empty; empty = 1 } END { print frames / samples }')"
}

# Its files are so large that a second tells as much.
perf_dwarf_one() {
    perf_one "$1" 1 --call-graph dwarf,16384
}

ours() { record_each ours_one; }
perf_fp() { record_each perf_fp_one; }
perf_dwarf() { record_each perf_dwarf_one; }

bench_machine
make_programs
daemon_start "$BIN" "$BENCH_WORK"
bench_interleave "$rounds" ours perf_fp perf_dwarf
bench_table "$(for program in "${programs[@]}"; do echo "$program ${program}_gz ${program}_frames"; done | xargs)" \
    ours perf_fp perf_dwarf

missed=0
check_goal() { # METRIC GOAL
    if awk -v value="$(bench_median ours "$1")" -v goal="$2" 'BEGIN { exit !(value > 0 && value <= goal) }'; then
        echo "reached $1: at most $2 bytes a sample"
    else
        echo "MISSED  $1: at most $2 bytes a sample"
        missed=1
    fi
}
for program in "${programs[@]}"; do
    check_goal "$program" "${goals[$program]}"
    check_goal "${program}_gz" "$compressed_goal"
done
exit "$missed"
