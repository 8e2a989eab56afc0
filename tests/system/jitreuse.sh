#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runtimes that use addresses again, and that say so in a perf map: by lines that are added, by a map that is written
# anew, by another file of that name. The function of each sample is known by its callers, which are of the program
# itself: whatever name it has must be that one's. Nothing is said of how many have a name, but that the last two have
# one, after which nothing changes: what is left of their maps when they have ended is a proof.
. "${0%/*}/lib.sh"
require_perf
use_build release
program=${JITREUSE:-$WORKLOADS/jitreuse}
map_pids=()
remove_maps() {
    local pid
    for pid in "${map_pids[@]}"; do
        rm -f "/tmp/perf-$pid.map" "/tmp/perf-$pid.map.new"
    done
}
at_end remove_maps
ways=(append protect two rewrite rename leave)

start_daemon
# The files of other programs of the same user, as large as a compiler's, would be read between the maps.
targets=()
for how in "${ways[@]}"; do
    targets+=(--comm "$how")
done
run_in_background profctl record --native --no-kernel -F 4000 "${targets[@]}" -o "$WORK/all.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
programs=()
for how in "${ways[@]}"; do
    cp "$program" "$WORK/$how"
    run_in_background "$WORK/$how" "$how" --seconds 8
    programs+=("$BACKGROUND_PID")
    map_pids+=("$BACKGROUND_PID")
done
wait "${programs[@]}" || fail "a program ended with status $?"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/all.fxt" >"$WORK/folded" || fail "export"
python3 - "$WORK/folded" "${ways[@]}" <<'PYTHON' || fail "made code has another's name"
import re, sys
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
    bad |= found["wrong"] > 0 or (functions < 2 and how != "leave")
sys.exit(bad)
PYTHON
