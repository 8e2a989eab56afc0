#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Daemon, worker and client, all with AddressSanitizer and UndefinedBehaviorSanitizer, record the whole
# machine with kernel stacks while it forks, execs and maps; several sessions, one of them given up in the
# middle. A finding of a sanitizer, a leak among them, ends a program with a status that fails the test.
. "${0%/*}/lib.sh"
require_perf
use_build dev
nm "$BIN/cpu-profilerd" | grep -q __asan_init || skip "the build in $BIN has no sanitizers"
start_daemon

storm() {
    for _ in $(seq 60); do
        "$WORKLOADS/brief" --seconds 0.005 >/dev/null
        python3 -c 'import json, zlib' || true
    done
}

run_in_background storm
run_in_background "$WORKLOADS/threads" --seconds 8 >/dev/null
profctl record --native -F 4000 --kernel -d 2 -o "$WORK/one.fxt" >"$WORK/one.out" 2>&1 || fail "record: $(cat "$WORK/one.out")"
profctl record --native -F 999 -o "$WORK/two.fxt.gz" -- "$WORKLOADS/forker" --seconds 0.5 >"$WORK/two.out" 2>&1 || fail "record: $(cat "$WORK/two.out")"

"$BIN/profctl" record -d 60 -o "$WORK/three.fxt" >"$WORK/three.out" 2>&1 &
abandoned=$!
sleep 1
kill -KILL "$abandoned"
wait "$abandoned"
wait_until 5 eval 'profctl status --json >"$WORK/status.json" && [ "$(json "$WORK/status.json" "d[\"session\"]")" = null ]' ||
    fail "a session outlived its client"

for file in one.fxt two.fxt.gz; do
    profctl report "$WORK/$file" >/dev/null || fail "report $file"
    profctl dump "$WORK/$file" >/dev/null || fail "dump $file"
    profctl export --format folded "$WORK/$file" >"$WORK/folded" || fail "export $file"
done
profctl export --format folded "$WORK/one.fxt" | grep -q '_\[k\]' || fail "no kernel frames, though they were asked for"
if grep -E 'ERROR: AddressSanitizer|runtime error|LeakSanitizer' "$WORK"/*.out "$WORK/daemon.log"; then
    fail "a sanitizer has spoken"
fi
