#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each sampled stack of programs that know their own calls is a declared one, or marked incomplete and an inner part of
# one; judge.py has the verdicts. The programs start while the recording runs, so the first samples of each precede its
# tables, as in a real recording.
#
# truth.sh [NAME...] records all programs or the named ones. TRUTH_RELEASE_DIR is the build of the judged daemon,
# TRUTH_KEEP a folder for the recordings, TRUTH_BATCH the number of programs at once, TRUTH_CPU_MS the
# CPU time that each of them gets.
. "${0%/*}/../system/lib.sh"
require_perf
TRUTH=$BUILD_DIR/bin/truth
BATCH=${TRUTH_BATCH:-85}
CPU_MS=${TRUTH_CPU_MS:-60} # 240 ticks, where the judge asks for 20 samples in the right place
RELEASE_DIR=${TRUTH_RELEASE_DIR:-$RELEASE_DIR}
use_build release

if [ $# -gt 0 ]; then
    printf '%s\n' "$@" | awk -F'\t' 'NR == FNR { wanted[$1]; next } $1 in wanted' - "$TRUTH/programs" >"$WORK/programs"
else
    cp "$TRUTH/programs" "$WORK/programs"
fi
if ! kernel_runs "$TRUTH/i386.truth"; then
    echo "this kernel runs no 32-bit programs: they are left out"
    sed -i '/^\(i386\|x_\)/d' "$WORK/programs"
fi
mapfile -t programs < <(awk -F'\t' '$4 == "" { print $1 }' "$WORK/programs")

# batch_state PID...: prints `ended PID` for a process that has ended, or `working` while one of them has used less than
# CPU_MS, with its ended children, or `finished`.
batch_state() {
    awk -v hz="$(getconf CLK_TCK)" -v enough_ms="$CPU_MS" 'BEGIN {
        state = "finished"
        for (i = 1; i < ARGC; i++) {
            if ((getline line <("/proc/" ARGV[i] "/stat")) <= 0) {
                state = "ended " ARGV[i]
                break
            }
            split(line, field, " ")
            if (field[3] == "Z") {
                state = "ended " ARGV[i]
                break
            }
            if ((field[14] + field[15] + field[16] + field[17]) * 1000 / hz < enough_ms) {
                state = "working"
            }
        }
        print state
    }' "$@"
}

# record_batch NUMBER PROGRAM...: the programs run below the priority of the daemon and its worker.
record_batch() {
    local number=$1 pids=() record_pid state name
    local -A name_of=()
    shift
    profctl record --no-kernel -F 4000 -a -o "$WORK/$number.fxt" >"$WORK/record.out" 2>&1 &
    record_pid=$!
    wait_until 10 session_runs || fail "no session: $(cat "$WORK/record.out")"
    for name in "$@"; do
        run_in_background nice -n 5 "$TRUTH/$name.truth" </dev/null >"$WORK/$name.out" 2>&1
        pids+=("$BACKGROUND_PID")
        name_of[$BACKGROUND_PID]=$name
    done
    while state=$(batch_state "${pids[@]}") && [ "$state" = working ]; do
        sleep 0.2
    done
    if [ "$state" != finished ]; then
        name=${name_of[${state#ended }]}
        fail "$name has ended: $(cat "$WORK/$name.out")"
    fi
    kill -TERM "$record_pid"
    wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
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
