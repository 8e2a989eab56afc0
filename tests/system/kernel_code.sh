#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that are given to the kernel while it is watched, one after another, often at the same address: each has its
# own name, and the one that was there before has it until it goes. A caller in the program that runs them says which
# one runs. Two daemons look at once: the kernel tells the second event of a CPU in longer records. In the second story
# the daemon's workers stand still meanwhile, so the kernel's list of symbols is read when some have come and gone; for
# want of tables some stacks are cut then, and do not say which program runs.
. "${0%/*}/lib.sh"
require_perf
use_build release
grep -q '^0*[1-9a-f][0-9a-f]* [tT] ' /proc/kallsyms || skip "the kernel's addresses are not shown (kernel.kptr_restrict)"
at_once list_read list_late
cp "${BPF_TURNS:-$WORKLOADS/bpf_turns}" "$WORK/bpf_turns"
run_in_background "$WORK/bpf_turns" 400 "$WORK/go" >"$WORK/turns"
turns_pid=$BACKGROUND_PID
has_begun() {
    process_ended "$turns_pid" || grep -q ready "$WORK/turns"
}
wait_until 10 has_begun || fail "bpf_turns does not begin"
grep -q ready "$WORK/turns" || skip "no BPF program can be loaded: $(cat "$WORK/turns")"

start_daemon
echo '{"frequency_hz": 4000, "kernel_stacks": true}' >"$WORK/config.json"
# to_workers SIGNAL: to those that read files.
to_workers() {
    pkill -"$1" -P "$daemon_pid" || fail "the daemon has no workers"
}
[ "$STORY" = list_read ] || to_workers STOP
run_in_background profctl record --native --config "$WORK/config.json" -p "$turns_pid" -o "$WORK/turns.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
touch "$WORK/go"
if [ "$STORY" = list_late ]; then
    # Of the programs' 3.6 s. Samples of the first one, which runs for 0.4 s, wait for tables for 2 s.
    sleep 1.2
    to_workers CONT
fi
wait "$turns_pid" || fail "bpf_turns ended with status $?"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/turns.fxt" >"$WORK/folded" || fail "export"
python3 - "$WORK/folded" "$STORY" <<'PYTHON' || fail "a program of the kernel has another's name, or none"
import re, sys
found = {}
for line in open(sys.argv[1], encoding="utf-8"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    turn = re.search(r";call_(\d);run;", stack)
    # What the test run calls is the program, if it is no function of the kernel's own.
    frame = re.search(r";bpf_test_run(?:_\[k\])?;(bpf_prog_[0-9a-f]{16}[^;]*|\[[^;]*)", stack)
    if turn is None or frame is None:
        continue
    name = re.fullmatch(r"bpf_prog_[0-9a-f]{16}_turn_(\d) \[bpf\](?:_\[k\])?", frame[1])
    kind = "unnamed" if name is None else "right" if name[1] == turn[1] else "wrong"
    numbers = found.setdefault(turn[1], {"right": 0, "wrong": 0, "unnamed": 0})
    numbers[kind] += int(count)
    if kind != "right":
        print(f"turn_{turn[1]} is named {frame[1]} in {count} samples")
for turn, numbers in sorted(found.items()):
    print(f"turn_{turn}", numbers)
wanted = "012345678" if sys.argv[2] == "list_read" else "08"
assert set(wanted) <= set(found), f"the programs {sorted(found)} were sampled"
sys.exit(any(numbers["wrong"] + numbers["unnamed"] > 0 for numbers in found.values()))
PYTHON
