#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Followers. A program that counts its own page faults is recorded by its switches, with page faults as their follower: what the
# samples say of its turns on the CPU is what it has counted, and so is what perf says of the same group. The books of a
# follower close by the kernel's own count, whatever leads it, the clock too. `report --event` of a follower has what the samples have,
# and `--ratio` the quotient of two of them. What cannot follow is refused.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

# So that a ring holds bursts; and the kernel has a sample of each switch, of which it leaves out some with copies.
echo '{"unwind": "fp"}' >"$WORK/fp.json"
judge="$SOURCE_DIR/tests/system/followers.py"
# record_events ROUNDS EVENT...: known_events by these events.
record_events() {
    profctl record --native -F 997 --no-kernel --config "$WORK/fp.json" "${@:2}" -o "$WORK/p.fxt" -- \
        "$WORKLOADS/known_events" "$1" >"$WORK/truth" 2>"$WORK/record.out" || fail "record: $(cat "$WORK/record.out")"
    grep -E '^(ids|touch|wait|counts)' "$WORK/truth" >"$WORK/known"
    profctl dump --json "$WORK/p.fxt" >"$WORK/dump" || fail "dump"
}

echo "== turns"
record_events 30 -e context-switches:1+page-faults
python3 "$judge" turns "$WORK/known" "$WORK/dump" || fail "turns"
grep -Eq '^page-faults, with context-switches(, of all tasks)?: [0-9]+ faults counted; ' "$WORK/record.out" || fail "the summary: $(cat "$WORK/record.out")"

# Not at once: beside another event of switches that has stacks, Linux 6.18 tells perf a size of samples that they do not have.
perf record -q -a -k CLOCK_BOOTTIME -e '{context-switches,page-faults}:S' -c 1 -m 512 -o "$WORK/perf.data" -- \
    "$WORKLOADS/known_events" 30 >"$WORK/truth" 2>"$WORK/out" || fail "perf record: $(cat "$WORK/out")"
grep -E '^(ids|touch|wait|counts)' "$WORK/truth" >"$WORK/known"
perf script -i "$WORK/perf.data" --ns -F tid,time,event,period >"$WORK/perf.script" 2>"$WORK/out" || fail "perf script: $(cat "$WORK/out")"
python3 "$judge" perf "$WORK/known" "$WORK/perf.script" || fail "perf"

echo "== each fault"
record_events 10 -e page-faults:1+minor-faults
python3 "$judge" books "$WORK/known" "$WORK/dump" page-faults minor-faults || fail "books"
python3 "$judge" report "$BIN/profctl" "$WORK/p.fxt" "$WORK/known" || fail "report"

echo "== a rate, and the clock"
record_events 60 -e task-clock@997+page-faults,cpu-clock+context-switches
python3 "$judge" books "$WORK/known" "$WORK/dump" task-clock page-faults || fail "books"
python3 "$judge" books "$WORK/known" "$WORK/dump" cpu-clock context-switches || fail "books"

# refused TEXT EVENT STATUS
refused() {
    expect_status "$3" profctl record --native -e "$2" -o "$WORK/q.fxt" -- true >"$WORK/out" 2>&1
    grep -qF -- "$1" "$WORK/out" || fail "$2: $(cat "$WORK/out")"
    [ ! -e "$WORK/q.fxt" ] || fail "$2: something is recorded"
}
refused "off-cpu: --wall records what threads wait for" off-cpu 2
refused "'instruction' is no event; did you mean 'instructions'?" cs+instruction 2
refused "is one that stands there already" cs+page-faults,faults 2
refused "is empty; a name of 1 to 63 bytes is allowed" cs+ 2
refused "alone may follow cpu-clock" cpu-clock+cycles 2
[ -e /sys/bus/event_source/devices/cpu ] || refused "'cycles' is none that this machine counts" cs+cycles 1
