#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each sampled stack of programs that know their own calls is a declared one, or marked incomplete and an inner part of
# one; judge.py has the verdicts. The programs start while the recording runs, so the first samples of each precede its
# tables, as in a real recording.
#
# truth.sh [NAME...] records all programs or the named ones. TRUTH_RELEASE_DIR is the build of the judged daemon,
# TRUTH_KEEP a folder for the recordings, TRUTH_BATCH the number of programs at once, TRUTH_SECONDS their time.
. "${0%/*}/../system/lib.sh"
require_perf
TRUTH=$BUILD_DIR/bin/truth
BATCH=${TRUTH_BATCH:-85}
SECONDS_OF_BATCH=${TRUTH_SECONDS:-5}
RELEASE_DIR=${TRUTH_RELEASE_DIR:-$RELEASE_DIR}
use_build release

if [ $# -gt 0 ]; then
    printf '%s\n' "$@" | awk -F'\t' 'NR == FNR { wanted[$1]; next } $1 in wanted' - "$TRUTH/programs" >"$WORK/programs"
else
    cp "$TRUTH/programs" "$WORK/programs"
fi
mapfile -t programs < <(awk -F'\t' '$4 == "" { print $1 }' "$WORK/programs")

# record_batch NUMBER PROGRAM...: the programs run below the priority of the daemon and its worker.
record_batch() {
    local number=$1 pids=() names=() record_pid i
    shift
    profctl record -F 4000 -a -d "$SECONDS_OF_BATCH" -o "$WORK/$number.fxt" >"$WORK/record.out" 2>&1 &
    record_pid=$!
    wait_until 10 session_runs || fail "no session: $(cat "$WORK/record.out")"
    for name in "$@"; do
        run_in_background nice -n 10 "$TRUTH/$name.truth" </dev/null >"$WORK/$name.out" 2>&1
        pids+=("$BACKGROUND_PID")
        names+=("$name")
    done
    wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
    for i in "${!pids[@]}"; do
        process_ended "${pids[i]}" && fail "${names[i]} has ended: $(cat "$WORK/${names[i]}.out")"
    done
    kill "${pids[@]}" 2>/dev/null
    wait "${pids[@]}" 2>/dev/null
    background_pids=()
    profctl dump --json "$WORK/$number.fxt" >"$WORK/$number.json" || fail "dump failed"
}

start_daemon
dumps=()
for ((first = 0; first < ${#programs[@]}; first += BATCH)); do
    record_batch "$first" "${programs[@]:first:BATCH}"
    dumps+=("$WORK/$first.json")
done
[ -z "${TRUTH_KEEP:-}" ] || cp "$WORK"/*.fxt "$WORK"/*.json "$TRUTH_KEEP"
PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE_DIR/tests/truth/judge.py" "$WORK/programs" "${dumps[@]}" ||
    fail "the stacks above contradict their programs, or a program had too few samples"
