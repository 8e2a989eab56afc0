#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Stacks of odd and of hostile kinds, all at once. Under a daemon with sanitizers the session goes on; under
# one at a user's speed each stack has the mark that it must have: of the samples in the function in which a
# program spends its time at least 99.5 % are the known chain of functions, and complete where they must be.
. "${0%/*}/lib.sh"
require_perf
kinds=(deep shallow tail alloca altstack trap coroutine vfork tiny hostilebp hostilesp)
programs=() # nice ones: whatever runs beside this test goes before them; they stand still where nothing is recorded
for kind in "${kinds[@]}"; do
    run_in_background nice -n 15 "$WORKLOADS/odd_stacks" "$kind" 280
    programs+=("$BACKGROUND_PID")
    kill -STOP "$BACKGROUND_PID"
done

# record_odd BUILD MS FILE: until each program has run for so long; the daemon outlives the session and answers.
record_odd() {
    kill -CONT "${programs[@]}"
    record_while_run "$2" "${programs[*]}" "$3" --no-kernel -F 3999 -a
    kill -STOP "${programs[@]}"
    kill -0 "$daemon_pid" || fail "the daemon ($1) has died"
    profctl status --json >"$WORK/status.json" || fail "the daemon ($1) does not answer any more"
}

use_build dev
start_daemon
record_odd dev 60 "$WORK/sanitized.fxt"
stop_daemon || exit 1

use_build release
start_daemon
record_odd release 50 "$WORK/cold.fxt" # which brings the tables
record_odd release 120 "$WORK/odd.fxt" # 480 ticks each at least, of which 200 must be in the function
stop_background
profctl export --format folded "$WORK/odd.fxt" >"$WORK/folded" || fail "export failed"

python3 - "$WORK/folded" <<'PYTHON' || fail "a stack is not what it must be"
import collections, re, sys

ROOT = r"_start;__libc_start_main[^;]*;[^;]*;main;"
THREAD = r"[^;]*;[^;]*;"  # clone3 and start_thread, of which a stripped libc has no names
KNOWN = {
    "shallow": ROOT + r"run_shallow;(?:recurse;){61}odd_spin",
    "tail": ROOT + r"run_tail;odd_spin",
    "alloca": ROOT + r"run_alloca;use_room;odd_spin",
    "vfork": ROOT + r"run_vfork;odd_spin",
    "tiny": THREAD + r"tiny_thread;odd_spin",
    # The instruction that was interrupted is its function's first, and no call stands before it.
    "trap": ROOT + r"run_trap;trapped;[^;]*;on_trap;odd_spin",
    # Marked: too long; a caller whose stack is in no copy.
    "deep": r"\[truncated\];(?:recurse;){126}odd_spin",
    "altstack": r"\[truncated\];(?:[^;]*;)*on_signal;odd_spin",
    # Whether makecontext's trampoline is known to be a root is for others to say.
    "coroutine": r"(?:\[truncated\];)?(?:[^;]*;)?coroutine_body;odd_spin",
    # Its instructions say where its caller is, whatever rbp holds; of a stack pointer that is none nothing is known.
    "hostilebp": ROOT + r"run_hostilebp;hostile_spin",
    "hostilesp": r"\[truncated\];(?:[^;]*;)*hostile_spin",
}
known = collections.Counter()
other = collections.defaultdict(collections.Counter)
for line in open(sys.argv[1], encoding="utf-8"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    comm, _, frames = stack.partition(";")
    if comm not in KNOWN or not frames.endswith("_spin"):
        continue
    if re.fullmatch(KNOWN[comm], frames):
        known[comm] += int(count)
    else:
        other[comm][frames[:300]] += int(count)
failed = False
for comm in KNOWN:
    total = known[comm] + other[comm].total()
    share = 100 * known[comm] / max(total, 1)
    print(f"{comm}: {total} samples, {share:.2f} % as known")
    if total < 200 or share < 99.5:
        failed = True
        for frames, count in other[comm].most_common(5):
            print(f"    {count} {frames}")
sys.exit(failed)
PYTHON
