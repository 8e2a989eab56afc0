#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The record of an exec is lost. An unprivileged user has made nearly all addresses executable, has filled a CPU's ring
# with records, and executes a set-user-id program that keeps data in rbp. Until /proc has shown what the process is, it
# has neither name nor frames: no word of the program's memory passes for code of the program before it. The daemon is
# stopped meanwhile, so that the ring is full whenever the exec comes. Every second time the set-user-id program executes
# the attacker's again, whose mappings are then what they were, before the daemon goes on. Each way to unwind has a daemon of
# its own, both at one time.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make set-user-id programs and processes of other users"
at_once fp auto
attacker=(setpriv --reuid=4711 --regid=4711 --clear-groups)
runs=8
chmod 755 "$WORK"
mkdir "$WORK/attacker"
chown 4711 "$WORK/attacker"
cp "$WORKLOADS/secret_words" "$WORKLOADS/lost_exec" "$WORK"
chmod 4755 "$WORK/secret_words"
is_back() {
    grep -q back "$WORK/back"
}

start_daemon
failed=0
echo "{\"unwind\": \"$STORY\", \"frequency_hz\": 4000}" >"$WORK/config.json"
run_in_background "$BIN/profctl" record --config "$WORK/config.json" -o "$WORK/p.fxt"
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded"
for ((run = 0; run < runs; run++)); do
    attack=("${attacker[@]}" "$WORK/lost_exec" "$WORK/attacker" 3000 "$WORK/secret_words")
    kill -STOP "$daemon_pid"
    if [ $((run % 2)) -eq 0 ]; then
        "${attack[@]}" || failed=1
    else
        run_in_background "${attack[@]}" "$WORK/lost_exec" "$WORK/attacker" >"$WORK/back"
        wait_until 10 is_back || failed=1
    fi
    kill -CONT "$daemon_pid"
    sleep 0.5
done
kill -TERM "$recorder"
wait "$recorder" || fail "the recording failed"
profctl dump --json "$WORK/p.fxt" >"$WORK/p.json"
python3 "$SOURCE_DIR/tests/system/lost_exec.py" "$STORY" "$WORK/p.fxt" "$WORK/p.json" "$runs" || failed=1
[ "$failed" -eq 0 ] || fail "words of a set-user-id program are in a recording, or nothing was tried"
