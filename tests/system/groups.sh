#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Continuation records as they stand in the file, by an oracle that reads the bytes itself (groups.py): a hot
# loop's samples are partials that share completions, every id has one completion and never comes again, also
# not in what a later Read of the same session gives, and the samples are those that the books say were kept.
# profctl makes the same samples of them.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null

# check_groups NAME FILE...: what the oracle tells goes to NAME.json; profctl agrees with it.
check_groups() {
    local name=$1 file
    shift
    python3 "${0%/*}/groups.py" "$@" >"$WORK/$name.json" || fail "$name: $(cat "$WORK/$name.json")"
    cat "$@" >"$WORK/all.fxt"
    profctl report --json "$WORK/all.fxt" >"$WORK/report.json" || fail "$name: report"
    for file in samples complete; do
        [ "$(json "$WORK/$name.json" "d['$file']")" = "$(json "$WORK/report.json" "{**d, **d['stacks']}['$file']")" ] ||
            fail "$name: $file differs: $(cat "$WORK/$name.json"), and profctl tells $(json "$WORK/report.json" "[d['samples'], d['stacks']]")"
    done
    expect_json "$WORK/report.json" "d['books']['orphan_partials'] == 0 and d['books']['orphan_completions'] == 0" \
        "$name: each partial has its completion"
}

profctl start -F 4000 >/dev/null || fail "start"
sleep 1
profctl read --native -o "$WORK/1.fxt" >/dev/null || fail "read, running"
# The books of every Status close, amid whatever is being gathered.
for _ in 1 2 3 4 5; do
    profctl status --json >"$WORK/status.json" || fail "status"
    expect_json "$WORK/status.json" \
        "all(c['received'] == c['kept'] + c['filtered'] + c['dropped'] for c in d['session']['books']['cpus'])" \
        "the books of a running session close"
    sleep 0.1
done
profctl stop >/dev/null || fail "stop"
profctl read --native -o "$WORK/2.fxt" >/dev/null || fail "read, stopped"
profctl close >/dev/null || fail "close"
check_groups session "$WORK/1.fxt" "$WORK/2.fxt"
echo "a session in two files: $(cat "$WORK/session.json")"

profctl record --native --no-kernel -F 4000 -o "$WORK/busy.fxt" -- "$WORKLOADS/chores" --seconds 0.5 >/dev/null || fail "record"
check_groups hot_loop "$WORK/busy.fxt"
echo "a hot loop: $(cat "$WORK/hot_loop.json")"
expect_json "$WORK/hot_loop.json" "d['samples'] > 500 and d['partials'] > 0.9 * d['samples']" "a hot loop's samples are in groups"
expect_json "$WORK/hot_loop.json" "d['bytes'] <= 80 * d['samples']" "a hot loop's sample has few bytes"

profctl record --native --no-kernel -F 4000 -o "$WORK/python.fxt" -- timeout 1 python3 "$SOURCE_DIR/tests/oracle/programs/mixed.py" >/dev/null
check_groups python3 "$WORK/python.fxt"
echo "python3: $(cat "$WORK/python3.json")"
expect_json "$WORK/python3.json" "d['partials'] > 0.5 * d['samples'] and d['frames'] > 5 * d['samples']" "stacks that end alike share that end"

printf '%s\n' '{"kernel_stacks": true, "frequency_hz": 2000}' >"$WORK/kernel.json"
profctl record --native --config "$WORK/kernel.json" -d 1 -o "$WORK/kernel.fxt" >/dev/null || fail "record with kernel stacks"
check_groups kernel "$WORK/kernel.fxt"
echo "with kernel stacks: $(cat "$WORK/kernel.json")"
