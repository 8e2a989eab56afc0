#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# One user fills the daemon's room for mappings with 80 processes that only sleep. A program of another user that
# starts then has its mappings all the same: each account has a half of what the others leave.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "other users' programs need root"
use_build release
chmod 711 "$WORK"
cp "$WORKLOADS/map_hoard" "$WORK"

# A mapping counts 16-fold for its path of 1,000 bytes, so the table has room for 65,536 of them, and for one more of
# each process. Of that room a process has an eighth of what the others leave: after 80 with 4,000 each, not one.
name=$(printf 'x%.0s' {1..240})
folder=$WORK/hoard/$name/$name/$name/$name
mkdir -p "$folder" "$WORK/victim"
chown -R 4711:4711 "$WORK/hoard"
chown 4712:4712 "$WORK/victim"
run_in_background setpriv --reuid=4711 --regid=4711 --clear-groups "$WORK/map_hoard" "$folder/hoard" 4000 79 0 \
    >"$WORK/hoard.out" 2>&1
wait_until 20 grep -q '^ready' "$WORK/hoard.out" || fail "the hoard is not there: $(cat "$WORK/hoard.out")"

# All 320,000 mappings have been read.
table_is_full() {
    profctl status --json >"$WORK/status.json" || fail "status"
    [ "$(json "$WORK/status.json" "d['session']['books']['table_refused']")" -gt 250000 ]
}

start_daemon
profctl start --no-kernel -F 1000 -u 4712 >"$WORK/out" 2>&1 || fail "start: $(cat "$WORK/out")"
wait_until 100 table_is_full || fail "the table is not full, so this shows nothing: $(cat "$WORK/status.json")"
setpriv --reuid=4712 --regid=4712 --clear-groups "$WORK/map_hoard" "$WORK/victim/code" 100 0 2 >"$WORK/out" 2>&1 ||
    fail "the victim: $(cat "$WORK/out")"
profctl stop >"$WORK/out" 2>&1 || fail "stop: $(cat "$WORK/out")"
profctl read --native -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "read: $(cat "$WORK/out")"
profctl report --json -n 0 --by module "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
samples=$(json "$WORK/p.json" "d['samples']")
named=$(json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'code')")
echo "$samples samples, $named in the victim's code"
# Two seconds in the code; a tenth is left to the start of the program.
[ "$samples" -ge 100 ] && [ "$((named * 10))" -ge "$((samples * 9))" ] ||
    fail "another user's mappings took the place of the victim's"
