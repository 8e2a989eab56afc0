#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests on a machine that booted a moment ago, where clocks that count from then are near 0, and on its kernel.
# Without sanitizers, which are slow to start on an emulated CPU, and those that compute for long come last: so all begin
# in the first two minutes where the machine below has two CPUs to spare.
. "${0%/*}/../system/lib.sh"
programs=$SOURCE_DIR/build/plain/bin
[ -x "$programs/test_json" ] || fail "build first: cmake --preset plain && cmake --build --preset plain"
last=(sampling_period sideband thread_sums top_model elf_symbols drain_order top_store trace_cgroups continuation code_form
    statistics comm_glob module_tables)
last=("${last[@]/#/"$programs/test_"}")
mapfile -t first < <(printf '%s\n' "$programs"/test_* | grep -vxFf <(printf '%s\n' "${last[@]}"))

# run_one PROGRAM: a line with when it began and ended, and its status; and what it said, if it failed.
run_one() {
    local name=${1##*/} began ended status=0
    read -r began _ </proc/uptime
    "$1" >"$WORK/$name.out" 2>&1 || status=$?
    read -r ended _ </proc/uptime
    echo "$name $began $ended $status"
    [ "$status" -eq 0 ] || cat "$WORK/$name.out"
}

running=0
for program in "${first[@]}" "${last[@]}"; do
    if [ "$running" -ge "$(nproc)" ]; then
        wait -n
        running=$((running - 1))
    fi
    run_one "$program" >>"$WORK/lines" &
    running=$((running + 1))
done
wait
cat "$WORK/lines"
awk '/^test_[a-z0-9_]+ [0-9.]+ [0-9.]+ [0-9]+$/ { count++; early += $2 < 120; failed += $4 != 0; last = $3 > last ? $3 : last }
    END {
        printf "%d tests, %d failed; %d begun within 120 s of the boot, and the last one ended %.0f s after it\n", count, failed, early, last
        exit failed > 0 || count == 0
    }' "$WORK/lines" || fail "unit tests failed"
