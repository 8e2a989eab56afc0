#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a recording takes to be named, with inlined functions and lines and without, on what ours and perf recorded
# at the same time: 4000 Hz on all CPUs, which are busy with clang compiling and with a C++ program that has debugging
# information (clang has it where its debug file is installed). SECONDS_EACH=10, ROUNDS=3. Goals: names in 1 s cold and
# 0.1 s warm; `profctl report --lines`, which has inlined functions as well, at least 20 times faster a sample than
# `perf script` with lines, and than `perf script` with inlined functions. Exit status 1 when one is missed.
#
# perf 6.1 has lines from a run of addr2line for each module, and inlined functions only of what it unwinds by DWARF:
# so it records twice, by frame pointers at 4000 Hz for names and lines, and the C++ program alone with DWARF stacks at
# 999 Hz (more would be lost) for inlined functions. Lines are asked of perf for the C++ program alone: with clang, which
# has no debugging information, each address takes addr2line 40 ms or more, and with a module that is gone perf script
# ends by SIGPIPE. All of that is in perf's favour. A run of perf is ended after LIMIT_SECONDS=60 and divided by the
# samples that it has printed. Cold means that recordings, modules and debug files have left the page cache, as far as
# nobody runs them.
. "${0%/*}/lib.sh"

hz=4000
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-10}
limit=${LIMIT_SECONDS:-60}
trace=$BENCH_WORK/ours.fxt
data=$BENCH_WORK/perf.data
stacks=$BENCH_WORK/stacks.data
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

# timed NAME COUNT COMMAND...: `NAME_s`, the whole, and `NAME_us` a sample. COUNT 0: the samples are what it prints.
timed() {
    local name=$1 count=$2
    shift 2
    python3 - "$name" "$count" "$limit" "$@" <<'PYTHON'
import subprocess, sys, tempfile, threading, time
name, count, limit, command = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
with tempfile.TemporaryFile() as output:
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
    # wait(timeout) looks every 50 ms only.
    end = threading.Timer(limit, process.kill)
    end.start()
    status = process.wait()
    took = time.monotonic() - begin
    end.cancel()
    if took >= limit:
        print(f"{name}: ended after {limit:g} s", file=sys.stderr)
    elif status != 0:
        sys.exit(f"{name}: ended with status {status}")
    output.seek(0)
    count = count or sum(line[:1] not in b"\t \n" for line in output)
print(f"{name}_s {took:.3f}\n{name}_us {took * 1e6 / max(count, 1):.3f}")
PYTHON
}

profctl_names() {
    timed "$1names" "$our_count" "$BIN/profctl" report -n 0 "$trace"
    [ -z "$1" ] || forget
    timed "$1lines" "$our_count" "$BIN/profctl" report --lines -n 0 "$trace"
}
perf_names() {
    timed "$1names" "$perf_count" perf report -i "$data" --stdio --no-inline
    [ -z "$1" ] || return 0
    timed lines 0 perf script -i "$data" --comms templates -F comm,tid,time,ip,sym,dso,srcline
    timed inline 0 perf script -i "$stacks" --comms templates -F comm,tid,time,ip,sym,dso
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
"$BIN/profctl" record --no-kernel -F "$hz" -d "$seconds" -o "$trace" >"$BENCH_WORK/record.log"
wait "$perf_pid" || true
end_load
daemon_stop
perf record -q -e cpu-clock -F 999 --call-graph dwarf,16384 -o "$stacks" -- "$program" 2000 >/dev/null 2>&1
our_count=$("$BIN/profctl" report --json "$trace" | python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])')
perf_count=$(perf script -i "$data" --no-inline -F time 2>/dev/null | grep -c .)
echo "samples: ours $our_count, perf $perf_count"
"$BIN/profctl" report --lines --json -n 0 "$trace" | python3 -c 'import json, sys
d = json.load(sys.stdin)
inlined = sum(row["self_inlined"] for row in d["rows"])
states = [f["state"] for f in d["debug_files"]]
print("of ours", inlined, "are in inlined functions; modules with debugging information:", states.count("found"), "of", len(states))'
bench_interleave 1 ours_cold perf_cold
bench_interleave "$rounds" ours perf_run
bench_table "cold_names_s" ours_cold perf_cold
bench_table "names_s lines_us" ours perf_run
python3 - "$(bench_median ours_cold cold_names_s)" "$(bench_median ours names_s)" "$(bench_median ours lines_us)" \
    "$(bench_median perf_run lines_us)" "$(bench_median perf_run inline_us)" <<'PYTHON'
import sys
cold, warm, ours, lines, inline = map(float, sys.argv[1:])
rows = ((cold <= 1, f"names cold {cold:.2f} s, at most 1"), (warm <= 0.1, f"names warm {warm:.2f} s, at most 0.1"),
        (lines >= 20 * ours, f"perf script with lines: {lines:.0f} us a sample, {lines / ours:.0f} times ours, at least 20"),
        (inline >= 20 * ours, f"perf script with inlined functions: {inline:.0f} us a sample, {inline / ours:.0f} times ours, at least 20"))
for reached, text in rows:
    print("reached" if reached else "MISSED ", text)
sys.exit(not all(reached for reached, _ in rows))
PYTHON
