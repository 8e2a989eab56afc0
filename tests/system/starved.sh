#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Many more busy threads than CPUs, and programs that begin, load libraries and end all the while: the daemon's threads
# that open files and read /proc get a CPU now and then only. The thread that drains the rings waits for none of them, so
# no tick is lost, unless a CPU stood still for so long that it had to be.
. "${0%/*}/lib.sh"
require_perf
use_build release
SECONDS_RECORDED=4

# begin_and_end PROGRAM: short programs, one after another, each with libraries of its own.
begin_and_end() {
    local i=0
    while [ ! -e "$WORK/enough" ]; do
        cp "$1" "$WORK/short-$BASHPID-$((i % 20))"
        "$WORK/short-$BASHPID-$((i % 20))" --seconds 0.002 >/dev/null
        i=$((i + 1))
    done
}

# table_size: how many descriptors the kernel's table of the daemon has room for. A thread that makes it grow waits.
table_size() {
    awk '$1 == "FDSize:" { print $2 }' "/proc/$daemon_pid/status"
}

watch_cpus
start_daemon
size=$(table_size)
for _ in $(seq $(($(nproc) * 30))); do
    run_in_background "$WORKLOADS/busy" --seconds $((SECONDS_RECORDED + 20))
done
for _ in $(seq $(($(nproc) * 3))); do
    begin_and_end "$WORKLOADS/busy" &
    background_pids+=("$!")
done
profctl record --native --no-kernel -F 4000 -a -d "$SECONDS_RECORDED" -o "$WORK/all.fxt" >"$WORK/record.out" 2>&1 ||
    fail "record: $(cat "$WORK/record.out")"
touch "$WORK/enough"
[ "$(table_size)" -eq "$size" ] || fail "the table of descriptors grew from $size to $(table_size)"
stop_background
profctl report --json -n 0 "$WORK/all.fxt" >"$WORK/report.json" || fail "report"
json "$WORK/report.json" "{k: d['books']['total'][k] for k in ('expected', 'received', 'missed', 'lost', 'dropped')}"
expected=$(json "$WORK/report.json" "d['books']['total']['expected']")
[ "$expected" -gt $((SECONDS_RECORDED * 2000)) ] || fail "hardly a tick is expected"
expect_none_lost "$WORK/report.json"
