#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `record --names` looks at the mappings of each process that it records. Three processes whose mappings never answer do
# not keep it: they are left out, which is said, and what passes for a virtual machine behind them is asked.
. "${0%/*}/lib.sh"
require_perf
mkdir "$WORK/mnt"
chmod 755 "$WORK" # the stuck ones are of another user
: >"$WORK/libjvm.so"
truncate -s 4096 "$WORK/libjvm.so"

pids=()
for name in first second third; do
    run_in_background "$WORKLOADS/stuck_process" "$WORK/mnt" 12345 "$WORKLOADS/stuck_process" >"$WORK/$name.out" 2>&1
    wait_until 5 grep -q '^stuck' "$WORK/$name.out" || skip "no process can be stuck here: $(cat "$WORK/$name.out")"
    pids+=("$(awk '$1 == "stuck" { print $2 }' "$WORK/$name.out")")
    timeout 1 cat "/proc/${pids[-1]}/maps" >/dev/null
    [ $? -eq 124 ] || skip "this kernel shows /proc/PID/maps whatever the process does"
done
run_in_background /usr/bin/python3 "${0%/*}/asked_names.py" "$WORK/libjvm.so" good >"$WORK/good.out"
good=$BACKGROUND_PID
wait_until 20 grep -q ready "$WORK/good.out" || fail "good does not run"

start_daemon
timeout 60 profctl record --names --native -d 0.5 -p "$(IFS=, && echo "${pids[*]}"),$good" -o "$WORK/p.fxt" \
    >"$WORK/record.out" 2>"$WORK/said" || fail "record: $(cat "$WORK/said")"
grep -q "names: .* and 2 more): left out, since its mappings or files do not answer" "$WORK/said" ||
    fail "of the stuck ones: $(cat "$WORK/said")"
grep -qF "(pid $good): has written its map" "$WORK/said" || fail "of the good one: $(cat "$WORK/said")"
