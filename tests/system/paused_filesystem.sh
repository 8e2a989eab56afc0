#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A filesystem that answers no open() for 8 s, as one of a network may, while a program on it is recorded: longer than
# the daemon waits for a thread. Once it answers, the program has its names, and its stacks reach their roots.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can mount here"
if [ -z "${OWN_MOUNTS:-}" ]; then
    rm -rf "$WORK"
    OWN_MOUNTS=1 exec unshare --mount "$0"
fi
mkdir "$WORK/mnt"
end_filesystem() {
    umount --lazy "$WORK/mnt" 2>/dev/null
}
at_end end_filesystem

run_in_background python3 "${0%/*}/paused_filesystem.py" "$WORK/mnt" "$WORKLOADS/busy" "$WORK/paused" >"$WORK/log" 2>&1
wait_until 5 grep -q '^ready' "$WORK/log" || skip "no filesystem can be made here: $(cat "$WORK/log")"
run_in_background nice -n 5 "$WORK/mnt/program" --seconds 120 >/dev/null
program=$BACKGROUND_PID
start_daemon
sleep 1 # the pages of the program are there by now
: >"$WORK/paused"
run_in_background profctl record --native --no-kernel -F 499 -p "$program" -o "$WORK/p.fxt" >"$WORK/out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 grep -q 'an open waits' "$WORK/log" || fail "the file is not opened: $(cat "$WORK/log" "$WORK/out")"
sleep 8
rm "$WORK/paused"
# It is asked for once a second, and read within another.
sleep 3
kill -TERM "$recorder"
wait "$recorder" || fail "record: $(cat "$WORK/out")"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
profctl export --format folded "$WORK/p.fxt" >"$WORK/folded" || fail "export"
expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'spin_three_fifths') > 100" \
    "the program has no names: $(cat "$WORK/out")"
whole=$(awk '/;main;.*spin_/ && !/\[truncated\]/ { sum += $NF } END { print sum + 0 }' "$WORK/folded")
[ "$whole" -ge 50 ] || fail "$whole stacks reach their root: $(head -c 600 "$WORK/folded")"
