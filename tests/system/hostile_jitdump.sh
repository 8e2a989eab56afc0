#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of uid 4711 lie in their jitdumps: about the programs' own code, with files of another user, of another pid,
# with two names, that are replaced, too large, rewritten, grow without end, or have times of another clock. Beside them
# runs a runtime of uid 4712, which says the truth. No function has a false name, but the one that `greedy` made itself,
# which calls none; the true names of `honest`, `unordered` and of uid 4712 are all there, and no tick is lost, unless a
# CPU stood still for so long that it had to be.
#
# The bound: a function is in its dump before it runs, and the last reading begins after the last sample. So each sample
# has the name, but where the stack was cut or came before the program mapped the dump: at most one in a hundred.
# A dump is known to be rewritten only if it was read before: the recording so far shows when it was.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can run programs of other users"
lies=(honest unordered tsc greedy many huge replaced fifo link named twice owned rewritten growing)
chmod 755 "$WORK"
mkdir -m 1777 "$WORK/dumps"
liar=(setpriv --reuid=4711 --regid=4711 --clear-groups)
other=(setpriv --reuid=4712 --regid=4712 --clear-groups)
victim_pid=
remove_files() {
    [ -z "$victim_pid" ] || rm -f "/tmp/perf-$victim_pid.map" "/tmp/jit-$victim_pid.dump"
}
at_end remove_files
cp "$WORKLOADS/jitreuse" "$WORK/victim"

# owned_dump PID ADDRESS: a dump that all may read, of uid 4712.
owned_dump() {
    python3 - "$WORK/dumps/jit-$1.dump" "$1" "$2" <<'PYTHON'
import os, struct, sys, time
path, pid, start = sys.argv[1], int(sys.argv[2]), int(sys.argv[3], 16)
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
name = b"made_false\0"
load = struct.pack("<IIQIIQQQQ", 0, 56 + len(name), now, pid, pid, start, start, 4096, 1) + name
fd = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.fchown(fd, 4712, 4712)
os.write(fd, struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, now, 0) + load)
os.rename(path + ".new", path)
PYTHON
}

watch_cpus
start_daemon
run_in_background profctl record --native --no-kernel -F 4000 -a -o "$WORK/all.fxt" >"$WORK/record.out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
run_in_background "${other[@]}" "$WORK/victim" dump --seconds 8
victim_pid=$BACKGROUND_PID
pids=("$victim_pid")
for lie in "${lies[@]}"; do
    cp "${LIAR:-$WORKLOADS/dump_liar}" "$WORK/liar-$lie"
    run_in_background "${liar[@]}" "$WORK/liar-$lie" "$lie" 8 "$WORK/dumps" >"$WORK/$lie.address"
    pids+=("$BACKGROUND_PID")
    if [ "$lie" = owned ]; then
        wait_until 10 test -s "$WORK/owned.address" || fail "the liar did not begin"
        owned_dump "$BACKGROUND_PID" "$(cat "$WORK/owned.address")" || fail "no dump of another user"
    fi
done
# was_read: the dumps of those that rewrite them have given their names.
was_read() {
    profctl export --format folded "$WORK"/all.fxt.partial-* >"$WORK/so_far" 2>/dev/null
    grep -q '^liar-rewritten;.*;call_made;made_true ' "$WORK/so_far" &&
        grep -q '^liar-growing;.*;call_made;made_true ' "$WORK/so_far"
}
wait_until 60 was_read || fail "the dumps are not read"
touch "$WORK/dumps/go"
wait "${pids[@]}" || fail "a program ended with status $?"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/all.fxt" >"$WORK/folded" || fail "export"
profctl report --json -n 0 "$WORK/all.fxt" >"$WORK/report.json" || fail "report"
python3 - "$WORK/folded" "$WORK/report.json" "${lies[@]}" <<'PYTHON' || fail "a lie is believed, or costs the truth"
import json, re, sys
found = {lie: {"true": 0, "false": 0, "none": 0} for lie in sys.argv[3:]}
victim = {"right": 0, "wrong": 0, "none": 0}
rewritten, bad = {}, False
for line in open(sys.argv[1], encoding="utf-8"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    comm, *frames = stack.split(";")
    digits = re.search(r"digit_(.);run;digit_(.);run;digit_(.);run;run_made;([^;]*)$", stack)
    if comm == "victim" and digits is not None:
        true = "made_" + "".join(digits.groups()[:3])
        victim["right" if digits[4] == true else "wrong" if digits[4].startswith("made_") else "none"] += int(count)
    lie = comm.removeprefix("liar-")
    is_made = len(frames) > 1 and frames[-2] == "call_made"
    if lie in found and is_made:
        found[lie]["true" if frames[-1] == "made_true" else "false" if frames[-1] == "made_false" else "none"] += int(count)
    if "call_rewritten" in frames:
        rewritten[lie] = rewritten.get(lie, 0) + int(count)
        bad |= frames[-1].startswith("made_")
    if "made_false" in (frames[:-1] if lie == "greedy" else frames):
        print(f"believed: {line.rstrip()}")
        bad = True
for lie, names in found.items():
    print(lie, names)
    bad |= sum(names.values()) < 100
    bad |= lie in ("honest", "unordered") and names["none"] * 100 > names["true"]
print("victim", victim, "rewritten", rewritten)
bad |= len(rewritten) != 2 or min(rewritten.values()) < 100
bad |= victim["wrong"] > 0 or victim["none"] * 100 > victim["right"] or victim["right"] < 100
total = json.load(open(sys.argv[2], encoding="utf-8"))["books"]["total"]
print({k: total[k] for k in ("expected", "received", "lost", "dropped")})
sys.exit(bad or total["dropped"] != 0)
PYTHON
expect_none_lost "$WORK/report.json"
[ "$(grep -c "times of the processor's own counter" "$WORK/daemon.log")" -eq 1 ] || fail "not said once which clock is wrong"
