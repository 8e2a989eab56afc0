#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user without any right runs with an odd stack pointer at the end of the address space. The kernel then writes a
# sample of an odd size, behind which nothing in that ring of the CPU is aligned. Samples of others on that CPU go on,
# with their stacks, and none is counted as a record that makes no sense.
. "${0%/*}/lib.sh"
require_perf
use_build release
chmod 711 "$WORK"
cp "$WORKLOADS/odd_pointer" "$WORKLOADS/busy" "$WORK/"
start_daemon
profctl start -F 997 --no-kernel >/dev/null 2>&1 || fail "start"
taskset -c 0 setpriv --reuid=20771 --regid=20771 --clear-groups "$WORK/odd_pointer" 1 >/dev/null 2>&1
taskset -c 0 "$WORK/busy" --seconds 1 >/dev/null || fail "busy"
profctl stop >/dev/null 2>&1 || fail "stop"
profctl read -o "$WORK/p.fxt" >/dev/null 2>&1 || fail "read"
profctl report --json -n 0 --by command "$WORK/p.fxt" >"$WORK/report.json" || fail "report"
# The one has the CPU's samples of a second, less what others had of it; so has the other, which came behind it.
expect_json "$WORK/report.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'odd_pointer') >= 20" \
    "no sample of the odd one, so this shows nothing: $(cat "$WORK/report.json")"
expect_json "$WORK/report.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'busy') >= 20" \
    "the CPU has no samples of another: $(cat "$WORK/report.json")"
expect_json "$WORK/report.json" "d['books']['bad_records'] == 0" "records that make no sense"
