#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a session's tables took goes back to the machine when the session ends: a user without rights keeps processes
# with 60,000 mappings each, of which every session learns, and which cost the daemon nothing in between.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can run programs of other users"
chmod 711 "$WORK"
mkdir -m 777 "$WORK/files"
cp "$WORKLOADS/map_hoard" "$WORK"

start_daemon
for number in 1 2; do
    run_in_background setpriv --reuid=4712 --regid=4712 --clear-groups "$WORK/map_hoard" "$WORK/files/$number" 60000 5 0 >"$WORK/ready$number"
done
for number in 1 2; do
    wait_until 60 grep -q ready "$WORK/ready$number" || skip "no process may have 60,000 mappings"
done

# anon_kib: the daemon's own memory, without the tables of files, which it keeps for the next session.
anon_kib() {
    awk '/^RssAnon/ { print $2 }' "/proc/$daemon_pid/status"
}

# What is left is what each thread's arena begins with, and no table. A file may still be on its way.
little_is_left() {
    after=$(anon_kib)
    [ "$after" -lt 4096 ]
}

# run_session NAME SECONDS: its recording ends, and what it has learnt goes back.
run_session() {
    run_in_background profctl record --native --no-kernel -F 4000 -a -d "$2" -o "$WORK/p.fxt" >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "record: $(cat "$WORK/out")"
    sleep "$(python3 -c "print($2 / 2)")"
    during=$(anon_kib)
    wait "$recorder" || fail "record: $(cat "$WORK/out")"
    wait_until 10 little_is_left || fail "the $1 session leaves $after KiB of $during"
    echo "$1: $during KiB while it runs, $after KiB after it"
}

for session in first second; do
    run_session $session 3
    # The mappings of five processes are 20 MiB: 72 bytes each.
    [ "$((during - after))" -gt 20480 ] || fail "it has learnt of no mappings"
done
# These mostly end while threads still read the mappings: each thread goes on until it has read them.
for session in {1..10}; do
    run_session "short $session" 0.4
done
