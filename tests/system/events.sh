#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Events beside the clock. Of period 1 each page fault and each switch of a program that counts its own is a sample, in
# the function that had it; of other periods and of a rate the samples stand for as many as there were; the books say
# what was counted, by the kernel's own counters. `report --event` has each function's own number, and every exported
# format has what the report has. An event that brings more samples than the administrator allows is
# held back, and for how long is in the books, while the clock's close. What the machine lacks, and what would have the
# daemon read memory of its own, is refused. A recording without events says nothing of any.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

echo '{"stack_copy_bytes": 1024}' >"$WORK/copies.json" # so that a ring holds bursts
# record_events PERIOD RATE: known_events by page-faults and context-switches, in the folder $WORK/PERIOD.
record_events() {
    local folder=$WORK/$1
    mkdir "$folder"
    profctl record --native -F 997 --no-kernel --config "$WORK/copies.json" -e "page-faults$2,context-switches$2" -o "$folder/p.fxt" -- \
        "$WORKLOADS/known_events" 30 >"$folder/truth" 2>"$folder/record.out" || fail "record: $(cat "$folder/record.out")"
    grep -E '^(ids|touch|wait|counts)' "$folder/truth" >"$folder/known"
}
# judge_events PERIOD: what has been recorded.
judge_events() {
    local folder=$WORK/$1 event
    profctl dump --json "$folder/p.fxt" >"$folder/dump" || fail "dump"
    python3 "$SOURCE_DIR/tests/system/events.py" "$1" "$folder/known" "$folder/dump" || fail "the recording"
    python3 "$SOURCE_DIR/tests/system/event_report.py" "$BIN/profctl" "$1" "$folder/known" "$folder/p.fxt" || fail "the report"
    for event in page-faults context-switches; do
        PYTHONPATH=$SOURCE_DIR/tests/system python3 "$SOURCE_DIR/tests/system/event_formats.py" "$BIN/profctl" "$folder/p.fxt" "$event" "$folder" ||
            fail "the formats of $event"
    done
}
record_events 1 :1
record_events 100 :100
record_events 0 @199
# Judged at once, now that nothing is recorded.
judges=()
for period in 1 100 0; do
    run_in_background judge_events "$period" >"$WORK/$period/verdict" 2>&1
    judges+=("$BACKGROUND_PID")
done
for period in 1 100 0; do
    status=0
    wait "${judges[0]}" || status=$?
    judges=("${judges[@]:1}")
    echo "== period $period"
    cat "$WORK/$period/verdict"
    [ "$status" -eq 0 ] || fail "period $period"
done

# refused TEXT EVENT: not by the parser of configs, but by the machine or the kernel.
refused() {
    expect_status 1 profctl record --native -e "$2" -o "$WORK/q.fxt" -- true >"$WORK/out" 2>&1
    grep -qF "$1" "$WORK/out" || fail "$2: $(cat "$WORK/out")"
    [ ! -e "$WORK/q.fxt" ] || fail "$2: something is recorded"
}
refused "'uprobe' is no processor's device" "uprobe/config1=0x400000/"
refused "'tracepoint' is no processor's device" "tracepoint/config=1/"
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
    refused "there is no device 'cpu' on this machine" "cpu/event=0x3c/"
    refused "'cycles' is none that this machine counts" cycles
fi

echo "== listed"
profctl events --json >"$WORK/events.json" || fail "events"
expect_json "$WORK/events.json" "[e['event'] for e in d if e['kind'] == 'software' and not (e['available'] and e['allowed'])] == []" \
    "the kernel's own are not there"
# perf says by the same names which it cannot count.
names=$(python3 -c 'import json, sys
print(",".join(e["event"] for e in json.load(sys.stdin) if e["kind"] != "device"))' <"$WORK/events.json")
perf stat -x, -o "$WORK/perf.csv" -e "$names" -- true || fail "perf stat"
grep -v '^#' "$WORK/perf.csv" | awk -F, 'NF > 2 { print $3, ($1 == "<not supported>") ? "False" : "True" }' >"$WORK/perf.list"
python3 -c 'import json, sys
for e in json.load(sys.stdin):
    if e["kind"] != "device": print(e["event"], e["available"])' <"$WORK/events.json" >"$WORK/our.list"
diff "$WORK/our.list" "$WORK/perf.list" || fail "other events (<) than perf counts (>)"
profctl events >"$WORK/out" || fail "events"
grep -q '^  page-faults  *counts faults$' "$WORK/out" || fail "events: $(cat "$WORK/out")"
[ "$(grep -c True "$WORK/our.list")" -eq "$(grep -c '^  [^ ]*  *counts' "$WORK/out")" ] || fail "events: $(cat "$WORK/out")"

echo "== nothing of events"
profctl record --native -o "$WORK/clock.fxt" -- "$WORKLOADS/known_events" 3 >/dev/null 2>&1 || fail "record the clock"
profctl dump --json "$WORK/clock.fxt" >"$WORK/dump" || fail "dump"
grep -E '"(event|events|weight)"' "$WORK/dump" && fail "a recording of the clock alone speaks of events"

echo "== held back"
stop_daemon || fail "the daemon"
echo '{"max_event_rate_hz": 100}' >"$WORK/daemon.json"
start_daemon --config "$WORK/daemon.json"
profctl record --native -F 997 --config "$WORK/copies.json" -e page-faults:1 -o "$WORK/held.fxt" -- "$WORKLOADS/known_events" 300 >/dev/null 2>"$WORK/out" ||
    fail "record: $(cat "$WORK/out")"
grep -q '^warning: page-faults came faster than max_event_rate_hz of daemon.json allows' "$WORK/out" || fail "no warning: $(cat "$WORK/out")"
profctl dump --json "$WORK/held.fxt" | grep '"cpu-profilerd.books"' >"$WORK/books.json"
expect_json "$WORK/books.json" "d['value']['events'][0]['total']['held_back_ns'] > 0" "nothing is held back"
# The event was off meanwhile, so this is a part of both times together.
profctl report --event page-faults "$WORK/held.fxt" | tr -s '\n ' ' ' >"$WORK/report" || fail "report"
grep -Eq 'max_event_rate_hz held it back for [0-9]{1,2}\.[0-9] % of the time' "$WORK/report" || fail "how long it was held back: $(cat "$WORK/report")"
expect_json "$WORK/books.json" "all(abs(c['unexplained']) <= max(c['expected'] / 1000, 2) for c in d['value']['cpus'])" \
    "the clock's books do not close"
expect_status 1 profctl record --native -e page-faults@101 -o "$WORK/q.fxt" -- true >"$WORK/out" 2>&1
grep -q "at most 100 is allowed (max_event_rate_hz in $WORK/daemon.json)" "$WORK/out" || fail "the rate: $(cat "$WORK/out")"

echo "== none allowed"
echo '{"off_cpu": {}}' >"$WORK/waits.json"
echo '{"events": [{"event": "cs"}]}' >"$WORK/cs.json"
stop_daemon || fail "the daemon"
echo '{"allowed_events": []}' >"$WORK/daemon.json"
start_daemon --config "$WORK/daemon.json"
profctl events --json >"$WORK/events.json" || fail "events"
expect_json "$WORK/events.json" "[e['event'] for e in d if e['allowed']] == ['cpu-clock']" "other events than the clock are allowed"
profctl events >"$WORK/out" || fail "events"
grep -q '^  cpu-clock  *counts ns$' "$WORK/out" || fail "events: $(cat "$WORK/out")"
grep -q '^  page-faults  *counts faults; not allowed to you$' "$WORK/out" || fail "events: $(cat "$WORK/out")"
grep -q '^allowed_events of the daemon' "$WORK/out" || fail "events: $(cat "$WORK/out")"
[ "$(wc -L <"$WORK/out")" -le 80 ] || fail "a line is too long: $(cat "$WORK/out")"
profctl record --native -e cpu-clock@997 -o "$WORK/q.fxt" -- "$WORKLOADS/busy" --seconds 0.3 >"$WORK/out" 2>&1 || fail "the clock: $(cat "$WORK/out")"
rm "$WORK/q.fxt"
# forbidden TEXT OPTION...: the option that was given is named, or the member of the file.
forbidden() {
    for verb in "record --native -o $WORK/q.fxt" start "top -b"; do
        # shellcheck disable=SC2086
        expect_status 1 profctl $verb "${@:2}" >"$WORK/out" 2>&1
        grep -qF -- "session: $1 software event, which the administrator does not allow" "$WORK/out" || fail "$verb ${*:2}: $(cat "$WORK/out")"
    done
}
forbidden "--wall: samples a" --wall
forbidden "off_cpu: samples a" --config "$WORK/waits.json"
forbidden "events: has 'cs', a" --config "$WORK/cs.json"
for verb in record start; do
    expect_status 1 profctl $verb --min-wait 1ms >"$WORK/out" 2>&1
    grep -q "session: --min-wait: samples a" "$WORK/out" || fail "$verb --min-wait: $(cat "$WORK/out")"
    expect_status 1 profctl $verb -e cs >"$WORK/out" 2>&1
    grep -q "session: -e: has 'cs', a" "$WORK/out" || fail "$verb -e: $(cat "$WORK/out")"
done
