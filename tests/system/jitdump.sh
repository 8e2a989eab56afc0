#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runtimes that use addresses again every few ms, and say so in a jitdump, beside a perf map that says something wrong:
# one of root, one of uid 4711, and one of each that moves functions. The function of each sample is known by its
# callers: whatever name it has must be that one's, and all but a few have it.
#
# The bound: a function is told of before it runs, and the last reading begins after the last sample. So all samples
# have a name but those of which there is no room to keep note. Four processes that note all they can have x notes
# each, where x is a fourth of what the three others leave of 524,288: 74,898. A sample makes four at most: itself, its
# function, the span of that, and its piece. Samples beyond these 18,724 may have no name, and one in a thousand for
# stacks that were cut.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can run programs of other users"
program=${JITREUSE:-$WORKLOADS/jitreuse}
pids=()
remove_files() {
    local pid
    for pid in "${pids[@]}"; do
        rm -f "/tmp/perf-$pid.map" "/tmp/jit-$pid.dump"
    done
}
at_end remove_files
chmod 755 "$WORK"

start_daemon
run_in_background profctl record --native --no-kernel -F 4000 -a -o "$WORK/all.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
names=()
for how in dump move; do
    for uid in 0 4711; do
        names+=("$how-$uid")
        cp "$program" "$WORK/$how-$uid"
        run_in_background setpriv --reuid="$uid" --regid="$uid" --clear-groups "$WORK/$how-$uid" "$how" --seconds 6
        pids+=("$BACKGROUND_PID")
    done
done
wait "${pids[@]}" || fail "a program ended with status $?"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/all.fxt" >"$WORK/folded" || fail "export"
python3 - "$WORK/folded" "${names[@]}" <<'PYTHON' || fail "made code has another's name, or too little of it has one"
import re, sys
ROOM = 524288 // 7 // 4
bad = False
ways = {how: {"right": 0, "unnamed": 0, "wrong": 0, "functions": set()} for how in sys.argv[2:]}
for line in open(sys.argv[1], encoding="utf-8"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    how, _, rest = stack.partition(";")
    callers = re.search(r"digit_(.);run;digit_(.);run;digit_(.);run;run_made;([^;]*)$", rest)
    if how not in ways or callers is None:
        continue
    true, name = "made_" + "".join(callers.groups()[:3]), callers[4]
    kind = "right" if name == true else "wrong" if name.startswith("made_") else "unnamed"
    ways[how][kind] += int(count)
    if kind == "right":
        ways[how]["functions"].add(true)
    if kind == "wrong":
        print(f"{how}: {true} is called {name} ({count} samples)")
for how, found in ways.items():
    functions = len(found.pop("functions"))
    print(how, found, functions, "functions named")
    total = sum(found.values())
    bad |= found["wrong"] > 0 or functions < 50
    bad |= found["unnamed"] > max(0, total - ROOM) + total / 1000
sys.exit(bad)
PYTHON
