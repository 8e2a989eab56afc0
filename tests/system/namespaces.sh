#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program in a pid namespace of its own, below the daemon's, is named like any other; so is what exits
# while it is sampled: its own name until its last tick, then the mark of a process without one.
. "${0%/*}/lib.sh"
require_perf
use_build release
unshare --pid --fork true 2>/dev/null || skip "no pid namespace can be made"
start_daemon
cp "$WORKLOADS/turn" "$WORK/inside"
: >"$WORK/log"

run_in_background profctl record --native --no-kernel -F 4000 -a -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
# shellcheck disable=SC2016 # for the shell inside
unshare --pid --fork sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$1" "$2" 100000; done' sh "$WORK/inside" "$WORK/log"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
profctl dump --json "$WORK/p.fxt" >"$WORK/p.json" || fail "dump"
grep -q ' [1-9]$' "$WORK/log" || fail "the program was in no namespace: $(cat "$WORK/log")"

python3 - "$SOURCE_DIR/tests/system" "$WORK" <<'PYTHON' || fail "not as it was"
import collections, sys
sys.path.insert(0, sys.argv[1])
import timeline
recording = timeline.Timeline(open(sys.argv[2] + "/p.json"))
turns = timeline.Turns(sys.argv[2] + "/log")
counts = collections.Counter()
for sample in recording.samples:
    process, pid = recording.process(sample), sample["pid"]
    if pid in (0, -1):
        counts["[outside]" if pid == 0 else "[exited]"] += 1
        counts["wrong"] += process != ("[outside]" if pid == 0 else "[exited]")
    elif process == "inside" and sample["stack"]:
        modules = recording.modules(sample)
        # In the program, or on its way into it or out of it.
        counts["right" if "inside" in modules or turns.at(sample["time_ns"]) is None else "elsewhere"] += 1
    elif "inside" in recording.modules(sample):
        counts["wrong"] += 1
timeline.judge("namespace", counts, turns.least)
PYTHON
stop_daemon || exit 1

# In a time namespace our clock is not that of the kernel's records: everything would be named and counted wrongly.
if unshare --time --boottime 1000 --fork true 2>/dev/null; then
    export CPU_PROFILERD_SOCKET=$WORK/elsewhere.sock
    run_in_background unshare --time --boottime 1000 --fork --kill-child=TERM cpu-profilerd >"$WORK/elsewhere.log" 2>&1
    wait_until 10 grep -q listening "$WORK/elsewhere.log" || fail "no daemon: $(cat "$WORK/elsewhere.log")"
    expect_status 1 profctl record --native --no-kernel -d 1 -o "$WORK/elsewhere.fxt" >"$WORK/elsewhere.out" 2>&1
    kill -KILL "$BACKGROUND_PID" # unshare hears nothing else; the daemon is sent SIGTERM
    grep -q 'time namespace whose boot clock is 1000 s off' "$WORK/elsewhere.out" || fail "not said: $(cat "$WORK/elsewhere.out")"
fi
