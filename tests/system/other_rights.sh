#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that start with rights that their caller has not: set-user-id, set-group-id, a capability, a file that may be
# executed and not read. The kernel writes an exit record as such a program starts. Each is run 20 times by a user
# without rights; its samples have its name.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make a program with the set-user-id bit"
user=(setpriv --reuid=4711 --regid=4711 --clear-groups)
chmod 755 "$WORK"
for name in set_user set_group capable unreadable; do
    cp "$WORKLOADS/secret_words" "$WORK/$name"
done
chmod 4755 "$WORK/set_user"
chmod 2755 "$WORK/set_group"
setcap cap_net_raw+ep "$WORK/capable" || fail "no capability can be set"
chmod 711 "$WORK/unreadable"

start_daemon
run_in_background profctl record --native --no-kernel -F 4000 -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
wait_until 30 session_runs || fail "record: $(cat "$WORK/record.out")"
"${user[@]}" bash -c 'for _ in {1..20}; do "$0/set_user"; "$0/set_group"; "$0/capable"; "$0/unreadable"; done' "$WORK" ||
    fail "the programs"
kill -TERM "$BACKGROUND_PID"
wait "$BACKGROUND_PID" || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/p.fxt" >"$WORK/folded" || fail "export"
for name in set_user set_group capable unreadable '\[unknown\]'; do
    awk -v name="$name" '$0 ~ "^" name ";.*;spin_at " { count += $NF } END { print name, count + 0 }' "$WORK/folded"
done | tee "$WORK/counts"
# Each runs for 20 times 4 turns, of 5 ms and more. Half of the ticks of a busy CPU.
awk '/unknown/ { bad = bad || $2 > 0; next } { bad = bad || $2 < 800 } END { exit bad }' "$WORK/counts" ||
    fail "a program without its name"
