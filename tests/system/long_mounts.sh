#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user makes one line of a list of mounts longer than 40 MB, folder in folder, and maps files that make a reader doubt
# which filesystem they are on. The kernel prints such a list into its own memory, on account of the reader: that memory
# grows by less than a quarter of the line for the daemon, so it never reads it, and by more for a program that does.
. "${0%/*}/lib.sh"
. "${0%/*}/memory_group.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "weighing the daemon's memory takes root"
make_memory_group long-mounts
# Of the kernel's memory alone where the kernel tells that: the daemon's own grows with its sessions.
for peak in "$memory_group"/memory.{kmem.max_usage_in_bytes,peak,max_usage_in_bytes}; do
    [ ! -e "$peak" ] || break
done
[ -e "$peak" ] || skip "this kernel does not tell the most memory that a group had"
gcc -O1 -o "$WORK/long_mounts" "$SOURCE_DIR/tests/system/long_mounts.c" || fail "no long_mounts"
chmod 755 "$WORK"

start_daemon_in_memory_group
cp "$WORKLOADS/busy" "$WORK/busy"
run_in_background setpriv --reuid=4711 --regid=4711 --clear-groups "$WORK/busy" >/dev/null
profctl record --native --no-kernel -F 4000 -d 3 -u 4711 -o "$WORK/quiet.fxt" >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"
quiet_bytes=$(cat "$peak")
stop_background
run_in_background setpriv --reuid=4711 --regid=4711 --clear-groups unshare --user --map-root-user --mount \
    "$WORK/long_mounts" 30 >"$WORK/said" 2>&1
owner=$BACKGROUND_PID # unshare, setpriv and the program are one process
wait_until 60 grep -q ready "$WORK/said" || skip "no such mounts can be made here: $(cat "$WORK/said")"
line_bytes=$(head -n 1 "$WORK/said")
[ "$line_bytes" -gt 40000000 ] || fail "the list has $line_bytes bytes"
profctl record --native --no-kernel -F 4000 -d 3 -u 4711 -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"
peak_bytes=$(cat "$peak")
echo "mounts: $line_bytes bytes; memory: $quiet_bytes bytes before, $peak_bytes with them"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if (r['module'] or '').startswith('/dev/shm/code/')) > 500" \
    "the program is hardly seen, so nothing is proved"
[ $((peak_bytes - quiet_bytes)) -lt $((line_bytes / 4)) ] || fail "the kernel printed the mounts for the daemon"
(
    echo "$BASHPID" >"$memory_group/cgroup.procs"
    exec cat "/proc/$owner/mountinfo"
) >/dev/null || fail "the mounts cannot be read"
[ $(($(cat "$peak") - quiet_bytes)) -gt $((line_bytes / 4)) ] || fail "to print the mounts takes no memory here"
