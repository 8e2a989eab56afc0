#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Stacks deeper than the copy: one program that recurses to all depths in turn, as few bytes as can be asked
# for. Most stacks are cut, most of these are completed from shallower ones, and each that is says what it
# is and ends as every stack of this program must. Only this program is recorded: the stacks of others would take the
# place of its own among those that are remembered.
. "${0%/*}/lib.sh"
require_perf
start_daemon
run_in_background "$WORKLOADS/odd_stacks" wave 280
wave_pid=$BACKGROUND_PID
echo '{"frequency_hz": 3999, "stack_copy_bytes": 1024}' >"$WORK/config.json"
record_while_run 300 "$wave_pid" "$WORK/cold.fxt" --no-kernel --config "$WORK/config.json" -p "$wave_pid"
record_while_run 2000 "$wave_pid" "$WORK/wave.fxt" --no-kernel --config "$WORK/config.json" -p "$wave_pid"
stop_background
profctl dump --json "$WORK/wave.fxt" >"$WORK/dump" || fail "dump failed"
profctl export --format folded "$WORK/cold.fxt" >"$WORK/cold" || fail "export failed"
profctl export --format folded "$WORK/wave.fxt" >"$WORK/folded" || fail "export failed"
profctl report --json "$WORK/wave.fxt" >"$WORK/report" || fail "report failed"

python3 - "$WORK" <<'PYTHON' || fail "a stack is not what it must be"
import json, re, sys

WHOLE = r"_start;__libc_start_main[^;]*;[^;]*;main;run_wave;(?:recurse;)+odd_spin"
folder = sys.argv[1]


def stacks_of(name):
    found = {}
    for line in open(f"{folder}/{name}", encoding="utf-8"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        comm, _, frames = stack.partition(";")
        if comm == "wave" and frames.endswith("odd_spin"):
            found[frames] = int(count)
    return found


def wrong_of(found):
    return {frames: count for frames, count in found.items()
            if not frames.startswith("[truncated]") and not re.fullmatch(WHOLE, frames)}


# While the tables come, fewer stacks are whole, and none may be wrong.
cold = stacks_of("cold")
assert cold and not wrong_of(cold), wrong_of(cold)
wave = stacks_of("folded")
wrong = wrong_of(wave)
depths = [frames.count("recurse;") for frames in wave if not frames.startswith("[truncated]")]

whole = {frames: count for frames, count in wave.items() if not frames.startswith("[truncated]")}
deep = sum(count for frames, count in whole.items() if frames.count("recurse;") >= 50)
books = next(record["value"] for record in map(json.loads, open(f"{folder}/dump", encoding="utf-8"))
             if record.get("name") == "cpu-profilerd.books")
stacks = json.load(open(f"{folder}/report", encoding="utf-8"))["stacks"]
print("rooted", sum(whole.values()), "of them deeper than the copy", deep, "deepest", max(depths),
      "cut", sum(wave.values()) - sum(whole.values()), "wrong", sum(wrong.values()), stacks)
assert not wrong, wrong
# 1,024 bytes hold fewer than 50 of the 100 levels, so what is deeper was completed; half of the time is there.
assert max(depths) > 90 and deep > sum(wave.values()) / 4, (max(depths), deep)
assert stacks["stitched"] == books["stitched_stacks"] >= deep, (stacks, books)
assert stacks["truncated"] == books["truncated_stacks"] >= stacks["stitched"], (stacks, books)
PYTHON
