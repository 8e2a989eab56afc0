#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves what `profctl diff` says of how sure it is, with real recordings of 10 s at 4000 Hz: of a C program with four
# functions, of python3 and of cc1, 20 each, and of the C program with one function slower by 8, 5, 3, 2, 1 and 0.5 %, 10 each.
# Compared with each other, three and five a side, those of one program must give false alarms at most at the rate that
# is stated, and with one or two a side none; one sample against none must never be sure; with three a side the function
# that is slower by 5 % must be found in 9 of 10; and the smallest change that is said to be visible must be what is
# found, within a factor of 1.5. The last two are judged if the programs had 90 % of a CPU: else the status is 77. Not
# part of the tests: it takes half an hour on a quiet machine, and needs the presets `release` and `dev`.
#
#   scripts/proof-diff.sh                          the whole
#   ROUNDS=6 SECONDS_EACH=2 scripts/proof-diff.sh  some minutes: that it works; 6 rounds are the fewest
#   KEEP=FOLDER scripts/proof-diff.sh              the folder has or gets the recordings
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
folder=${KEEP:-$work/recordings}
rounds=${ROUNDS:-20}
seconds=${SECONDS_EACH:-10}
hz=4000
chores=$source_dir/build/dev/bin/workloads/chores

[ "$rounds" -ge 6 ] || die "ROUNDS=$rounds: three a side are compared, so there must be 6"
for program in gcc python3; do
    command -v "$program" >/dev/null || die "needs $program"
done
need_built "$bin/cpu-profilerd" "$bin/profctl" "$chores"

# preprocess: one of our own sources, for cc1.
preprocess() {
    local room include=()
    for room in "$source_dir"/{common,daemon/*,daemon/*/include}/; do
        include+=(-I "$room")
    done
    gcc -std=gnu17 -D_GNU_SOURCE -DCPU_PROFILERD_VERSION='"proof"' "${include[@]}" -E "$source_dir/daemon/session/session.c" \
        -o "$work/unit.i" || die "cannot preprocess"
    cat >"$work/compile.sh" <<COMPILE
units=0
end=\$((SECONDS + $seconds))
while [ "\$SECONDS" -lt "\$end" ]; do
    "$(gcc -print-prog-name=cc1)" -quiet -std=gnu17 -O2 -g -fpreprocessed "$work/unit.i" -o /dev/null
    units=\$((units + 1))
done
echo units "\$units"
COMPILE
}

# record NAME NUMBER COMMAND...: into folder/NAME-NUMBER.fxt, and what the command said beside it.
record() {
    local path=$folder/$1-$2
    shift 2
    if [ ! -s "$path.out" ]; then
        "$bin/profctl" record --native -F "$hz" -o "$path.fxt" -- "$@" >"$path.said" 2>"$path.err" || die "record: $(cat "$path.err")"
        mv "$path.said" "$path.out"
    fi
}

mkdir -p "$folder"
preprocess
daemon_start "$bin" "$work"
echo "== $rounds rounds of $seconds s each, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
for ((round = 1; round <= rounds; round++)); do
    record chores "$round" "$chores" --seconds "$seconds"
    record python "$round" python3 "$source_dir/scripts/proof-diff/turns.py" "$seconds"
    record cc1 "$round" bash "$work/compile.sh"
    if [ "$round" -le $((rounds / 2)) ]; then
        for percent in 8 5 3 2 1 0.5; do
            record "slower-$percent" "$round" "$chores" --seconds "$seconds" "$percent"
        done
    fi
    echo "round $round, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
done
daemon_stop
python3 "$source_dir/scripts/proof-diff/judge.py" "$bin/profctl" "$folder" "$rounds"
