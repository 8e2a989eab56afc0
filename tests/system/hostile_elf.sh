#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs whose call-frame information is broken in as many ways run, and are sampled. At the worst the
# worker dies over one; the session goes on, in bounded time and memory, and the stacks of programs that came
# after them are complete.
. "${0%/*}/lib.sh"
require_perf
use_build release
python3 "${0%/*}/hostile_frames.py" "$WORKLOADS/odd_stacks" "$WORK" >"$WORK/bad" || fail "no hostile files"
mapfile -t bad <"$WORK/bad"
for program in "${bad[@]}"; do
    "$program" tail 0.01 || fail "$program does not run, so it tests nothing"
done
for kind in shallow alloca; do
    cp "$WORKLOADS/odd_stacks" "$WORK/good_$kind"
done
# A session of its own, as a service has: the scheduler weighs sessions against each other (sched_autogroup), so the
# workers do not share what a dozen spinning programs of this session leave to one another.
daemon_starter=(setsid)
start_daemon

# These programs alone: tables of other large programs that start meanwhile, as a build has them, would take their turn.
targets=()
for comm in "bad_*" tail "good_*" shallow alloca; do
    targets+=(--comm "$comm")
done
run_in_background profctl record --native --no-kernel -F 999 "${targets[@]}" -o "$WORK/hostile.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
for program in "${bad[@]}"; do
    run_in_background "$program" tail 250 19
done
sleep 2
whole=()
for kind in shallow alloca; do
    run_in_background "$WORK/good_$kind" "$kind" 250
    whole+=("$BACKGROUND_PID")
done
# 500 samples of each.
expect_run 500 "${whole[@]}"
profctl status --json >"$WORK/status.json" || fail "the daemon does not answer"
expect_json "$WORK/status.json" "d['session']['state'] == 'running'" "the session does not run any more"
expect_json "$WORK/status.json" "d['session']['worker_restarts'] <= ${#bad[@]}" "the worker died more than once over a file"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
# A worker that takes 10 s for one file is killed; all of them, and all else, take less than that.
cpu_ms=0
for pid in "$daemon_pid" $(pgrep -P "$daemon_pid"); do
    read_cpu_ms "$pid" && cpu_ms=$((cpu_ms + CPU_MS))
done
[ "$cpu_ms" -le 10000 ] || fail "the daemon and its workers ran for $cpu_ms ms"
resident_kb=$(awk '/^VmHWM:/ { print $2 }' "/proc/$daemon_pid/status")
[ "$resident_kb" -le 262144 ] || fail "the daemon took $resident_kb KiB of memory"

stop_background
profctl export --format folded "$WORK/hostile.fxt" >"$WORK/folded" || fail "export failed"
for kind in shallow alloca; do
    awk -v kind="$kind" '$0 ~ "^" kind ";" && / / {
        split($1, frames, ";")
        if ($0 !~ /odd_spin [0-9]+$/) next
        all += $NF
        if (frames[2] == "_start" && $0 ~ ";main;run_" kind ";") complete += $NF
    } END {
        printf "%s: %d samples, %d complete\n", kind, all, complete
        exit !(all >= 300 && complete >= 0.995 * all)
    }' "$WORK/folded" || fail "stacks of a program that is whole are not complete: $(grep "^$kind;" "$WORK/folded" | head -n 5)"
done
samples=$(awk '/^tail;.*odd_spin [0-9]+$/ { sum += $NF } END { print sum + 0 }' "$WORK/folded")
[ "$samples" -ge 300 ] || fail "only $samples samples of the hostile programs"
echo "worker restarts: $(json "$WORK/status.json" "d['session']['worker_restarts']"), daemon: $resident_kb KiB, $cpu_ms ms with its workers, hostile samples: $samples"
