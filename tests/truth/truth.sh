#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each sampled stack of programs that know their own calls is a declared one, or marked incomplete and an inner part of
# one; judge.py has the verdicts. The programs start while the recording runs, so the first samples of each precede its
# tables, as in a real recording.
#
# truth.sh [NAME...] records all programs or the named ones. TRUTH_RELEASE_DIR is the build of the judged daemon,
# TRUTH_KEEP a folder for the recordings, TRUTH_BATCH the number of programs at once, TRUTH_CPU_MS the
# CPU time that each of them gets once its tables are there.
. "${0%/*}/../system/lib.sh"
require_perf
TRUTH=$BUILD_DIR/bin/truth
BATCH=${TRUTH_BATCH:-85}
CPU_MS=${TRUTH_CPU_MS:-60} # 240 ticks, where the judge asks for 20 samples in the right place
RELEASE_DIR=${TRUTH_RELEASE_DIR:-$RELEASE_DIR}
FIRST_MS=20
HZ=$(getconf CLK_TCK)
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

# batch_states MS PID...: `PID ended`, or `PID has_worked` for one that has used so much CPU time, with its ended children.
batch_states() {
    awk -v hz="$HZ" 'BEGIN {
        for (i = 2; i < ARGC; i++) {
            if ((getline line <("/proc/" ARGV[i] "/stat")) <= 0) {
                print ARGV[i], "ended"
                continue
            }
            split(line, field, " ")
            if (field[3] == "Z") {
                print ARGV[i], "ended"
            } else if ((field[14] + field[15] + field[16] + field[17]) * 1000 / hz >= ARGV[1]) {
                print ARGV[i], "has_worked"
            }
        }
    }' "$@"
}

# stop_those_that_worked MS: of `working`. A program that has used so much CPU time leaves the CPUs to the rest.
stop_those_that_worked() {
    local pid state
    while read -r pid state; do
        [ "$state" = has_worked ] || fail "${name_of[$pid]} has ended: $(cat "$WORK/${name_of[$pid]}.out")"
        kill -STOP "$pid"
        unset "working[$pid]"
    done < <(batch_states "$1" "${!working[@]}")
}

work_until() {
    while [ ${#working[@]} -gt 0 ]; do
        sleep 0.2
        stop_those_that_worked "$1"
    done
}

# daemon_rests: the daemon and its workers have nothing to do, five times in a row.
daemon_rests() {
    local pid tries
    for ((tries = 0; tries < 5; tries++)); do
        for pid in "$daemon_pid" $(cat "/proc/$daemon_pid"/task/*/children 2>/dev/null); do
            cat "/proc/$pid"/task/*/stat 2>/dev/null
        done | grep -q ') [RD] ' && return 1
        sleep 0.02
    done
}

# record_batch NUMBER PROGRAM...: the programs run below the priority of the daemon and its worker.
record_batch() {
    local number=$1 pids=() record_pid name pid
    local -A name_of=() working=()
    shift
    profctl record --native --no-kernel -F 4000 -a -o "$WORK/$number.fxt" >"$WORK/record.out" 2>&1 &
    record_pid=$!
    wait_until 10 session_runs || fail "no session: $(cat "$WORK/record.out")"
    for name in "$@"; do
        run_in_background nice -n 5 "$TRUTH/$name.truth" </dev/null >"$WORK/$name.out" 2>&1
        pids+=("$BACKGROUND_PID")
        name_of[$BACKGROUND_PID]=$name
        working[$BACKGROUND_PID]=1
        [ $((${#pids[@]} % 10)) -ne 0 ] || stop_those_that_worked "$FIRST_MS"
    done
    # The first samples have the daemon read the programs' files; when it has, the others come.
    work_until "$FIRST_MS"
    wait_until 10 daemon_rests || true
    for pid in "${pids[@]}"; do
        working[$pid]=1
    done
    kill -CONT "${pids[@]}"
    work_until "$((FIRST_MS + CPU_MS))"
    kill -TERM "$record_pid"
    wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
    kill -KILL "${pids[@]}" 2>/dev/null
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
# The last line of a failure says of which programs, since of a long output a CI may keep no more.
PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE_DIR/tests/truth/judge.py" "$WORK/programs" "${dumps[@]}" >"$WORK/judged" 2>&1 || {
    cat "$WORK/judged"
    fail "not judged to be true: $(grep -E '^[^ ]+: FAILED|Error: ' "$WORK/judged" | head -n 8 | paste -sd ' ')"
}
tail -n 1 "$WORK/judged"
