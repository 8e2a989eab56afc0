#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the packets for Perfetto cost in a recording at 4000 Hz: bytes a sample in the file, plain and compressed, and CPU
# time of `profctl record` a sample, in turn with the same recording without them (--native). A hot loop, python3 and
# gcc's cc1, as many of each as there are CPUs. There is no goal. ROUNDS=3 SECONDS_EACH=10.
. "${0%/*}/lib.sh"

hz=4000
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-10}
programs=(hot_loop python3 cc1)

bench_need "$BIN/cpu-profilerd" "$BIN/profctl" "$BIN/workloads/busy" python3 gcc gzip

# run_program NAME: until it is killed.
run_program() {
    case $1 in
    hot_loop) exec "$BIN/workloads/busy" --seconds 1000 ;;
    python3) exec /usr/bin/python3 "$SOURCE_DIR/tests/oracle/programs/mixed.py" ;;
    cc1) while "$(gcc -print-prog-name=cc1)" -quiet -O2 "$BENCH_WORK/big.c" -o /dev/null; do :; done ;;
    esac
}

# record_one PROGRAM OPTION...
record_one() {
    local program=$1 cpu
    shift
    for cpu in $(bench_online_cpus); do
        run_program "$program" >/dev/null 2>&1 &
        bench_pids+=("$!")
    done
    local target=(-p "$(IFS=,; echo "${bench_pids[*]}")")
    [ "$program" != cc1 ] || target=(--comm cc1)
    sleep 1
    TIMEFORMAT='%U %S'
    { time "$BIN/profctl" record --json --no-kernel -F "$hz" -d "$seconds" "${target[@]}" -o "$BENCH_WORK/p.fxt" "$@" \
        >"$BENCH_WORK/p.json" 2>"$BENCH_WORK/p.log" || cat "$BENCH_WORK/p.log" >&3; } 3>&2 2>"$BENCH_WORK/time"
    bench_stop_load
    bench_pids=()
    python3 -c 'import gzip, json, os, sys
name, path, told, times = sys.argv[1:]
samples = json.load(open(told))["samples"]
print(name, os.path.getsize(path) / samples)
print(name + "_gz", len(gzip.compress(open(path, "rb").read(), 6)) / samples)
print(name + "_us", sum(map(float, open(times).read().split())) * 1e6 / samples)' \
        "$program" "$BENCH_WORK/p.fxt" "$BENCH_WORK/p.json" "$BENCH_WORK/time"
}

# record_each OPTION...
record_each() {
    local program
    for program in "${programs[@]}"; do
        record_one "$program" "$@"
    done
}

packets() { record_each; }
native() { record_each --native; }

bench_machine
"$SOURCE_DIR/tests/oracle/programs/big.sh" c 2000 >"$BENCH_WORK/big.c"
daemon_start "$BIN" "$BENCH_WORK"
bench_interleave "$rounds" packets native
bench_table "$(for program in "${programs[@]}"; do echo "$program ${program}_gz ${program}_us"; done | xargs)" packets native
