#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a recording of waits costs: two threads of one CPU hand a byte to and fro, some 100,000 switches a second, and
# their pace says what each switch costs, without a profiler, with switch records alone, and with a sample of each.
# perf record does the same in the same run: -e context-switches -c 1 with 8 KiB of stack, and --switch-events.
# RUNS=5, SECONDS_EACH=4. The collector's own CPU time is beside it.
. "${0%/*}/lib.sh"

runs=${RUNS:-5}
seconds=${SECONDS_EACH:-4}
bench_need "$BIN/cpu-profilerd" "$BIN/profctl" perf taskset
tick_us=$((1000000 / $(getconf CLK_TCK)))
cpu=$(bench_online_cpus | tail -1)

# pace: switches a second of the two, on a CPU of their own.
pace() {
    taskset -c "$cpu" "$BIN/workloads/ping_pong" "$seconds"
}

cpu_us() {
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk -v tick="$tick_us" '{ print ($12 + $13) * tick }'
}

# tell RATE BASE_FILE [SPENT_US]: ns a switch.
tell() {
    awk -v rate="$1" -v spent="${2:-0}" -v seconds="$seconds" \
        'BEGIN { printf "ns_per_switch %.0f\nswitches_per_s %.0f\nprofiler_ns_per_switch %.0f\n", 1e9 / rate, rate, spent * 1000 / (rate * seconds) }'
}

nothing() {
    tell "$(pace)"
}

# ours CONFIG
ours() {
    local rate before_us
    echo "$1" >"$BENCH_WORK/config.json"
    daemon_start "$BIN" "$BENCH_WORK" >/dev/null
    "$BIN/profctl" start --config "$BENCH_WORK/config.json" -F 99 >/dev/null
    before_us=$(cpu_us "$daemon_pid")
    rate=$(pace)
    tell "$rate" $(($(cpu_us "$daemon_pid") - before_us))
    "$BIN/profctl" close >/dev/null
    daemon_stop
}
ours_samples() { ours '{"off_cpu": {"max_cost_percent": 100}, "max_duration_s": 60, "kernel_stacks": true}'; }
ours_default() { ours '{"off_cpu": {}, "max_duration_s": 60, "kernel_stacks": true}'; }
ours_clock() { ours '{"max_duration_s": 60, "kernel_stacks": true}'; }

# perf_record OPTION...
perf_record() {
    local rate before_us pid
    perf record -q -a -o "$BENCH_WORK/perf.data" "$@" >/dev/null 2>&1 &
    pid=$!
    sleep 1
    before_us=$(cpu_us "$pid")
    rate=$(pace)
    tell "$rate" $(($(cpu_us "$pid") - before_us))
    kill -INT "$pid"
    wait "$pid" || true
    rm -f "$BENCH_WORK/perf.data"
}
perf_records() { perf_record -e dummy --switch-events; }
perf_samples() { perf_record -e context-switches -c 1 --call-graph dwarf,8192; }

bench_machine
bench_interleave "$runs" nothing ours_clock ours_default ours_samples perf_records perf_samples
bench_table "switches_per_s ns_per_switch profiler_ns_per_switch" nothing ours_clock ours_default ours_samples perf_records perf_samples
