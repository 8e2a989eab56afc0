#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Threads, fork, exec, a process of 20 ms, a library that is opened late: every sample bears the right
# process's and thread's name, and the right function's.
. "${0%/*}/lib.sh"
require_perf
start_daemon

# record NAME PROGRAM...: profiles one program and its children into NAME.fxt, NAME.json, NAME.folded.
record() {
    local name=$1
    shift
    profctl record --native --no-kernel -F 4000 -o "$WORK/$name.fxt" -- "$@" >"$WORK/$name.out" 2>&1 || fail "record $name: $(cat "$WORK/$name.out")"
    profctl report --json -n 0 "$WORK/$name.fxt" >"$WORK/$name.json" || fail "report $name"
    profctl report --json -n 0 --by thread "$WORK/$name.fxt" >"$WORK/$name.threads.json" || fail "report $name by thread"
    profctl export --format folded "$WORK/$name.fxt" >"$WORK/$name.folded" || fail "export $name"
}

# folded_count NAME COMM FUNCTION: samples of a process whose innermost function is FUNCTION.
folded_count() {
    awk -v comm="$2" -v leaf="$3" '{
        n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";")
        if (f[1] == comm && f[k] == leaf) sum += n
    } END { print sum + 0 }' "$WORK/$1.folded"
}

# expect_count NAME COMM FUNCTION [TRUTH]: as many samples as the function's CPU time has ticks of 250 us. The
# program tells that time itself, in NAME.out or TRUTH. Ticks that the hypervisor stole are missing, and the
# clock's calls have some, so a fifth may be missing; a wrong name or process would miss all.
expect_count() {
    local count ticks
    count=$(folded_count "$1" "$2" "$3")
    ticks=$(($(truth "${4:-$WORK/$1.out}" "$3") / 250000))
    echo "$1: $3 in $2: $count samples, $ticks ticks of CPU time"
    if [ "$ticks" -eq 0 ] || [ "$count" -lt "$((ticks * 4 / 5))" ] || [ "$count" -gt "$((ticks * 11 / 10 + 4))" ]; then
        sort -t' ' -k2 -n "$WORK/$1.folded" | tail -n 20
        fail "$1: $count samples of $3 in $2, $ticks are expected"
    fi
}

record threads "$WORKLOADS/threads" --seconds 2
for thread in alpha bravo charlie; do
    function=${thread}_spin
    expect_count threads threads "$function"
    # A thread runs nothing but its function (and what starts and ends it).
    function_count=$(folded_count threads threads "$function")
    thread_count=$(json "$WORK/threads.threads.json" "sum(r['self'] for r in d['rows'] if r['name'] == '$thread')")
    [ "$function_count" -le "$thread_count" ] && [ "$thread_count" -le "$((function_count * 105 / 100 + 20))" ] ||
        fail "$function has $function_count samples, its thread $thread_count"
done

# Four children, one after another, and one that becomes another program.
record forker "$WORKLOADS/forker" --seconds 2
expect_count forker forker forked_spin
expect_count forker brief brief_spin
[ "$(folded_count forker brief forked_spin)" -eq 0 ] || fail "brief has samples of the program that it was before its exec"
[ "$(folded_count forker forker brief_spin)" -eq 0 ] || fail "forker has samples of the program that its child became"

record dlopener "$WORKLOADS/dlopener" --seconds 1.5
expect_count dlopener dlopener early_spin
expect_count dlopener dlopener late_spin

# 20 ms are 80 ticks. System-wide, so that the program need not be seen first.
run_in_background profctl record --native --no-kernel -F 4000 -d 2 -o "$WORK/brief.fxt"
sleep 1
"$WORKLOADS/brief" >"$WORK/brief.truth"
wait "$BACKGROUND_PID" || fail "record brief"
profctl export --format folded "$WORK/brief.fxt" >"$WORK/brief.folded" || fail "export brief"
expect_count brief brief brief_spin "$WORK/brief.truth"
