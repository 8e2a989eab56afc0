#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two programs of uid 4711, without any right, make the work that follows from a sample as large as they can, while a
# victim of uid 4712 runs on each of two CPUs. First 65,000 functions in made code whose names in /tmp/perf-PID.map
# meet in one run of the table that once held them; then a jitdump of half a million records, out of the order of their
# times, that grows with each stack, with 10 frames of such code in each stack and with 500; then stacks of 500 frames,
# each in a mapping of its own, so that each frame asks for a file. No tick of anybody may be lost, unless a CPU stood
# still for so long that it had to be, and each victim has the samples that its CPU time says, as far as the books do not
# say of the others where they went.
#
# The bound: a victim's CPU time T is T / 250 us ticks. It comes in at most n = T / 1 ms pieces (no scheduler here
# switches more often by itself), each of which has up to one tick more or less than its length says, with a mean of 0
# and a standard deviation of at most 1/2: 5 of them are 2.5 sqrt(n). What the books count as missed, throttled or lost on
# the two CPUs may all have been the victim's. What they count as dropped is the attacker's own: its shares are full.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can run programs of other users"
read -ra cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
[ "${#cpus[@]}" -eq 2 ] || skip "two CPUs are needed"
for program in round_hog busy; do
    cp "${HOG_DIR:-$WORKLOADS}/$program" "$WORK/$program"
done
chmod 755 "$WORK"
hostile=(setpriv --reuid=4711 --regid=4711 --clear-groups)
victim=(setpriv --reuid=4712 --regid=4712 --clear-groups)
hog_pid=
remove_map() {
    [ -z "$hog_pid" ] || rm -f "/tmp/perf-$hog_pid.map" "/tmp/jit-$hog_pid.dump"
}
at_end remove_map

# expect_named NAME COUNT: so many functions of the attack have a name in what has been recorded, within a minute. A look
# takes a second or so, so these are not counted.
expect_named() {
    local limit=$((SECONDS + 60 * PATIENCE))
    until nice profctl report --json -n 0 "$WORK/$1.fxt.partial-"* 2>/dev/null | grep -o '"name":"made_' >"$WORK/named" &&
        [ "$(wc -l <"$WORK/named")" -ge "$2" ]; do
        [ "$SECONDS" -lt "$limit" ] || fail "$(wc -l <"$WORK/named") functions of the attack '$1' are named"
        nap_briefly
    done
}

# attack NAME FRAMES NAMED: while the victims run, for 3 s, and until so many of its functions have a name, however slow the
# worker is, and a while longer. Its recording is in $WORK/NAME.fxt, what the victims measured in $WORK/NAME.victim.CPU.
attack() {
    local name=$1 frames=$2 named=$3 cpu record_pid victim_pids=()
    : >"$WORK/gaps"
    start_daemon
    echo '{"max_stack_depth": 510}' >"$WORK/config.json"
    run_in_background profctl record --native --no-kernel -F 4000 --config "$WORK/config.json" -a -o "$WORK/$name.fxt" >"$WORK/$name.out" 2>&1
    record_pid=$BACKGROUND_PID
    wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/$name.out")"
    run_in_background "${hostile[@]}" "$WORK/round_hog" "$name" 280 "$frames" >"$WORK/$name.hog"
    hog_pid=$BACKGROUND_PID
    wait_until 20 grep -q ready "$WORK/$name.hog" || fail "the attack '$name' did not begin"
    for cpu in "${cpus[@]}"; do
        run_in_background "${victim[@]}" "$WORK/busy" --seconds 3 --cpu "$cpu" >"$WORK/$name.victim.$cpu"
        victim_pids+=("$BACKGROUND_PID")
    done
    wait "${victim_pids[@]}" || fail "a victim ended with status $?"
    if [ "$named" -gt 0 ]; then
        expect_named "$name" "$named"
        expect_run 2000 "$hog_pid"
    fi
    kill -TERM "$hog_pid" || fail "the attack '$name' has ended"
    wait "$hog_pid" 2>/dev/null
    kill -TERM "$record_pid"
    wait "$record_pid" || fail "record: $(cat "$WORK/$name.out")"
    remove_map
    stop_daemon || fail "the daemon did not end well"
    profctl report --json -n 0 "$WORK/$name.fxt" >"$WORK/$name.json" || fail "report"
    python3 - "$WORK" "$name" "${cpus[@]}" <<'PYTHON' || fail "the attack '$name' costs others their samples"
import json, math, sys
work, name, *cpus = sys.argv[1:]
report = json.load(open(f"{work}/{name}.json", encoding="utf-8"))
total, bad = report["books"]["total"], False
print({k: v for k, v in total.items() if isinstance(v, int)}, report["books"]["late_rounds"], "late rounds")
expected = pieces = 0
for cpu in cpus:
    time_ns = sum(int(line.split()[1]) for line in open(f"{work}/{name}.victim.{cpu}"))
    expected += time_ns / 250e3
    pieces += time_ns / 1e6
samples = sum(row["self"] for row in report["rows"] if row["name"] in ("spin_three_fifths", "spin_two_fifths"))
least = expected - total["missed"] - total["throttled"] - total["lost"] - 2.5 * math.sqrt(pieces)
print(f"victims: {samples} samples, {least:.0f} at least of {expected:.0f}")
bad |= samples < least or expected < 1000
sys.exit(bad)
PYTHON
    expect_none_lost "$WORK/$name.json"
}

watch_cpus
# All of the map is sampled many times over, and what is settled late is settled all the same. Of the dump, as many have a
# name as there is room for when it has been read; without any, it was not read, and nothing was attacked.
attack map 120 32500
attack dump 10 1
attack dump 500 0
attack files 500 0
