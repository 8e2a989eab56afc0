#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that know their own calls are recorded all at once, and judge.py compares each sample with what they
# declare: no frame may be wrong, and no stack may be called complete that is not. The programs begin while the
# recording runs, so the first samples of each come before the daemon knows its files, as in a real recording.
. "${0%/*}/../system/lib.sh"
require_perf
TRUTH=$BUILD_DIR/bin/truth
SECONDS_RECORDED=${TRUTH_SECONDS:-10}

# TRUTH_RELEASE_DIR: the build that is judged. TRUTH_KEEP: a folder that gets the dump.
RELEASE_DIR=${TRUTH_RELEASE_DIR:-$RELEASE_DIR}
use_build release

declare -A name_of=()
start_daemon
profctl record -F 4000 -a -d "$SECONDS_RECORDED" -o "$WORK/truth.fxt" >"$WORK/record.out" 2>&1 &
record_pid=$!
wait_until 10 session_runs || fail "no session: $(cat "$WORK/record.out")"
while IFS=$'\t' read -r name file _ why_not; do
    [ -z "$why_not" ] || continue
    run_in_background nice -n 10 "$file" </dev/null >"$WORK/$name.out" 2>&1
    name_of[$BACKGROUND_PID]=$name
done <"$TRUTH/programs"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
for pid in "${background_pids[@]}"; do
    process_ended "$pid" && fail "${name_of[$pid]} has ended: $(cat "$WORK/${name_of[$pid]}.out")"
done
kill "${background_pids[@]}" 2>/dev/null
profctl dump --json "$WORK/truth.fxt" >"$WORK/truth.json" || fail "dump failed"
[ -z "${TRUTH_KEEP:-}" ] || cp "$WORK/truth.fxt" "$WORK/truth.json" "$TRUTH_KEEP"
PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE_DIR/tests/truth/judge.py" "$WORK/truth.json" "$TRUTH/programs" ||
    fail "a stack is not what it must be"
