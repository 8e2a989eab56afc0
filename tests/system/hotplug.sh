#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A CPU that goes offline during a session and comes back is sampled again, the books of every CPU close, with
# the time that it was away in `offline_ns`; programs that run meanwhile have their own names. Again and again,
# nothing is left behind; and in whatever state the session is. The CPU is online again however this ends.
. "${0%/*}/lib.sh"
# shellcheck source=tests/system/machine_settings.sh
. "${0%/*}/machine_settings.sh"
require_perf

# The last one that can be turned off; the first of most machines cannot.
cpu=$(lscpu --online --parse=CPU | grep -v '^#' | while read -r number; do
    [ -w "/sys/devices/system/cpu/cpu$number/online" ] && echo "$number"
done | tail -n 1)
online=/sys/devices/system/cpu/cpu$cpu/online
if [ -z "$cpu" ] || [ "$(lscpu --online --parse=CPU | grep -vc '^#')" -lt 2 ] || ! echo 1 2>/dev/null >"$online"; then
    echo "SKIP: no CPU of this machine can be taken offline"
    [ "${CPU_PROFILERD_REQUIRE_HOTPLUG:-0}" != 1 ] || fail "CPU_PROFILERD_REQUIRE_HOTPLUG=1 allows no skipping"
    exit 77
fi
keep_settings "$online" || fail "the CPU would not be online again"
trap finish_restored EXIT

# play STORY: see hotplug.py.
play() {
    python3 "$SOURCE_DIR/tests/system/hotplug.py" "$1" "$CPU_PROFILERD_SOCKET" "$daemon_pid" "$cpu" || fail "$1"
}

use_build release
start_daemon
# One more than there are CPUs, on any of them: when one goes, what is pinned to it is set free for good.
for ((i = 0; i <= $(nproc); i++)); do
    run_in_background "$WORKLOADS/busy" --seconds 60 >/dev/null
done
play returns
play states

echo "== names"
for program in chain_a chain_b; do
    cp "$WORKLOADS/turn" "$WORK/$program"
done
: >"$WORK/chain.log"
run_in_background profctl record --native --no-kernel -F 4000 -a -o "$WORK/names.fxt" >"$WORK/names.out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/names.out")"
run_in_background "$WORK/chain_a" "$WORK/chain.log" 3000 400 "$WORK/chain_b"
chain=$BACKGROUND_PID
for _ in 1 2 3; do
    echo 0 >"$online"
    echo 1 >"$online"
    sleep 0.2
done
wait "$chain" || fail "the programs"
kill -TERM "$recorder"
wait "$recorder" || fail "record: $(cat "$WORK/names.out")"
profctl dump --json "$WORK/names.fxt" >"$WORK/names.json" || fail "dump"
python3 "$SOURCE_DIR/tests/system/timeline.py" programs "$WORK/chain.log" <"$WORK/names.json" || fail "names"

kill "${background_pids[@]}" 2>/dev/null
wait "${background_pids[@]}" 2>/dev/null
# One alone: what it is not on is idle.
run_in_background "$WORKLOADS/busy" --seconds 60 >/dev/null
play others
play storm
play refused
grep -q "CPU $cpu is online, and goes without: no file descriptor" "$WORK/daemon.log" || fail "not said: $(cat "$WORK/daemon.log")"

stop_daemon || fail "the daemon"
use_build dev
start_daemon
play races
