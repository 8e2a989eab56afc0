#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A library with libc's build-id, in which one symbol covers every address of libc, is in use before and
# beside a program that spends its time in libc. No frame of any other file bears the forged name.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

# Each has 1,000 ticks at least; the bounds only show that there was something to be named.
run_in_background env LIBRARY="$WORKLOADS/libforged.so" "$WORKLOADS/dlopener" --seconds 280 >/dev/null
programs=$BACKGROUND_PID
sleep 1
run_in_background "$WORKLOADS/libc_user" --seconds 280 >/dev/null
record_while_run 250 "$programs $BACKGROUND_PID" "$WORK/forged.fxt" --no-kernel -F 4000
stop_background
profctl report --json -n 0 "$WORK/forged.fxt" >"$WORK/forged.json" || fail "report failed"

expect_json "$WORK/forged.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'late_spin' and r['module'].endswith('libforged.so')) > 200" \
    "the forged library's own function is not seen"
expect_json "$WORK/forged.json" "sum(r['self'] for r in d['rows'] if r['module'] and 'libc.so' in r['module']) > 200" \
    "libc is hardly seen, so nothing is proved"
expect_json "$WORK/forged.json" "not [r for r in d['rows'] if r['name'] == 'forged_name']" \
    "the forged name is on another file's frames"
expect_json "$WORK/forged.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'rand_r' and 'libc.so' in (r['module'] or '')) > 20" \
    "libc's own names are missing"
json "$WORK/forged.json" "[(r['name'], r['module'], r['self']) for r in d['rows'][:8]]"
