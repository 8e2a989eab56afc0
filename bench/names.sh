#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a recording takes to be named, with inlined functions and without: `profctl report` and `profctl report
# --inline` against `perf report --stdio` and `perf script` (which expands inlined functions of its own accord), on
# what both recorded at the same time: 4000 Hz on all CPUs, which are busy with clang compiling and with a C++
# program that has debugging information (clang has it where its debug file is installed). SECONDS_EACH=10,
# ROUNDS=3. Goal: profctl report --inline is at least 20 times faster a sample than perf script; exit status 1 when it
# is missed.
#
# perf records by frame pointers: `--call-graph dwarf` at this rate loses most samples, and its unwinding would be on
# perf's bill. So perf has fewer frames to name than ours, which prints both. A run of perf is ended after
# LIMIT_SECONDS=120 and counts with that. Cold means that recordings, modules and debug files have left the page
# cache, as far as nobody runs them.
. "${0%/*}/lib.sh"

hz=4000
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-10}
limit=${LIMIT_SECONDS:-120}
trace=$BENCH_WORK/ours.fxt
data=$BENCH_WORK/perf.data
program=$BENCH_WORK/templates

bench_need "$BIN/cpu-profilerd" "$BIN/profctl" perf python3 clang g++ pgrep

again() {
    while "$@"; do :; done
}

begin_load() {
    awk 'BEGIN { for (i = 0; i < 6000; i++) {
        printf "int f%d(int *p, int n) { int s = n; for (int i = 0; i < n; i++) { s += p[i] * %d;", i, i
        printf " if (s %% %d == 3) s ^= p[s & 7]; else p[i & 3] = s; } return s; }\n", i + 2 } }' >"$BENCH_WORK/big.c"
    g++ -O2 -g -fno-omit-frame-pointer -o "$program" "$SOURCE_DIR/tests/oracle/programs/templates.cc"
    local cpu
    for cpu in $(bench_online_cpus); do
        again taskset -c "$cpu" clang -O2 -c "$BENCH_WORK/big.c" -o "$BENCH_WORK/big.$cpu.o" >/dev/null 2>&1 &
        bench_pids+=("$!")
        again taskset -c "$cpu" "$program" 100 >/dev/null &
        bench_pids+=("$!")
    done
}

end_load() {
    local pid
    for pid in "${bench_pids[@]}"; do
        pkill -KILL -P "$pid" 2>/dev/null || true
    done
    bench_stop_load
}

# forget: recordings, and what they name, leave the page cache; nothing else of the machine does.
forget() {
    local file
    sync
    for file in "$trace" "$data" "$program" "$(readlink -f "$(command -v clang)")" \
        $(ldd "$(command -v clang)" | awk '$3 ~ "^/" { print $3 }') /usr/lib/debug/.build-id/*/*.debug; do
        [ -e "$file" ] && dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none 2>/dev/null
    done
    return 0
}

# timed NAME COMMAND...: `NAME_us` a sample, `NAME_s` the whole, and its peak of memory.
timed() {
    local name=$1 count=$2
    shift 2
    python3 - "$name" "$count" "$limit" "$@" <<'PYTHON'
import resource, subprocess, sys, time
name, count, limit, command = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
begin = time.monotonic()
try:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit)
except subprocess.TimeoutExpired:
    print(f"{name}: ended after {limit:g} s", file=sys.stderr)
took = time.monotonic() - begin
print(f"{name}_s {took:.3f}\n{name}_us {took * 1e6 / count:.3f}")
print(f"{name}_MiB {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f}")
PYTHON
}

profctl_names() {
    timed "$1names" "$our_count" "$BIN/profctl" report -n 0 "$trace"
    [ -z "$1" ] || forget
    timed "$1inline" "$our_count" "$BIN/profctl" report --inline -n 0 "$trace"
}
perf_names() {
    timed "$1names" "$perf_count" perf report -i "$data" --stdio --no-inline
    [ -z "$1" ] || forget
    timed "$1inline" "$perf_count" perf script -i "$data" -F comm,tid,time,ip,sym,dso,srcline
}
ours() { profctl_names ""; }
perf_run() { perf_names ""; }
ours_cold() { forget && profctl_names cold_; }
perf_cold() { forget && perf_names cold_; }

bench_machine
daemon_start "$BIN" "$BENCH_WORK"
begin_load
sleep 1
perf record -q -e cpu-clock -F "$hz" -a --call-graph fp -o "$data" -- sleep "$seconds" >/dev/null 2>&1 &
perf_pid=$!
"$BIN/profctl" record -F "$hz" -d "$seconds" -o "$trace" >"$BENCH_WORK/record.log"
wait "$perf_pid" || true
end_load
daemon_stop
our_count=$("$BIN/profctl" report --json "$trace" | python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])')
perf_count=$(perf script -i "$data" --no-inline -F time 2>/dev/null | grep -c .)
echo "samples: ours $our_count, perf $perf_count"
"$BIN/profctl" report --inline --json -n 0 "$trace" | python3 -c 'import json, sys
d = json.load(sys.stdin)
inlined = sum(row["self_inlined"] for row in d["rows"])
states = [f["state"] for f in d["debug_files"]]
print("of ours", inlined, "are in inlined functions; modules with debugging information:", states.count("found"), "of", len(states))'
bench_interleave 1 ours_cold perf_cold
bench_interleave "$rounds" ours perf_run
bench_table "cold_names_s cold_inline_s cold_inline_us" ours_cold perf_cold
bench_table "names_s names_us inline_s inline_us inline_MiB" ours perf_run
python3 - "$(bench_median ours inline_us)" "$(bench_median perf_run inline_us)" <<'PYTHON'
import sys
ours, perf = map(float, sys.argv[1:])
reached = perf >= 20 * ours
print("reached" if reached else "MISSED ", f"perf script takes {perf / ours:.1f} times as long a sample, at least 20 times")
sys.exit(not reached)
PYTHON
