#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The workloads do what their comments promise, without a profiler: a system test that compares a profile
# with a workload's truth is only as good as this.
. "${0%/*}/lib.sh"

bin=$BUILD_DIR/bin/workloads
told=$(mktemp)
trap 'rm -f "$told"' EXIT

# tells COMMAND... : NAME...: runs, and each name must be told with a time above 0.
tells() {
    local command=()
    while [ "$1" != : ]; do
        command+=("$1")
        shift
    done
    shift
    "${command[@]}" >"$told" || complain "${command[*]}: failed"
    local name
    for name in "$@"; do
        awk -v name="$name" '$1 == name && $2 > 0 { found = 1 } END { exit !found }' "$told" ||
            complain "${command[*]}: tells nothing of $name"
    done
}

tells "$bin/threads" --seconds 0.3 : alpha_spin bravo_spin charlie_spin
tells "$bin/forker" --seconds 0.3 : forked_spin brief_spin
tells "$bin/brief" : brief_spin
tells "$bin/chores" --seconds 0.3 : parts
tells "$bin/chores" --seconds 0.3 5 : parts
tells "$bin/in_step" 1000 --seconds 0.3 : work_0 work_1
tells "$bin/napper" 3000 3000 --seconds 0.3 : nap_spin nap_sleep
tells "$bin/dlopener" --seconds 0.7 : early_spin late_spin
tells env LIBRARY="$bin/libforged.so" "$bin/dlopener" --seconds 0.7 : early_spin late_spin
tells "$bin/kernel_entries" --seconds 0.3 : spin_deep read_random
tells "$bin/libc_user" --seconds 0.3 : sort_in_libc copy_in_libc draw_in_libc

# What tells begin and end instead: each turn after the one before.
turns_follow() {
    local what=$1
    awk '$2 < last || $3 < $2 { exit 1 } { last = $3 } END { exit NR < 2 }' "$told" || complain "$what: its turns overlap, or there are none"
}
"$bin/alternate" --seconds 0.1 >"$told" || complain "alternate: failed"
turns_follow alternate
"$bin/reuser" 5 >"$told" && turns_follow reuser
: >"$told"
"$bin/turn" "$told" 1000 3 "$bin/turn" || complain "turn: failed"
turns_follow turn

# 3 : 2, to a percent of the whole.
tells "$bin/busy" --seconds 1 --cpu 0 : spin_three_fifths spin_two_fifths
awk '{ ns[$1] = $2 } END {
    share = 100 * ns["spin_three_fifths"] / (ns["spin_three_fifths"] + ns["spin_two_fifths"])
    if (share < 59 || share > 61) { printf "busy: %.2f %% instead of 60\n", share; exit 1 }
}' "$told" || failed=1

# The forged library says it is libc, and its one symbol covers libc's code.
libc=$(gcc -print-file-name=libc.so.6)
build_id() {
    readelf --notes "$1" | sed -n 's/.*Build ID: //p'
}
[ "$(build_id "$libc")" = "$(build_id "$bin/libforged.so")" ] || complain "libforged.so: not libc's build-id"
read -r text_start text_bytes < <(readelf -SW "$libc" |
    awk '{ sub(/.*\] /, "") } $1 == ".text" { print "0x" $3, "0x" $5 }')
read -r forged_start forged_bytes < <(readelf -sW "$bin/libforged.so" |
    awk '$8 == "forged_name" { print "0x" $2, $3; exit }')
if ((forged_start > text_start || forged_start + forged_bytes < text_start + text_bytes)); then
    complain "libforged.so: forged_name does not cover libc's .text"
fi
exit "$failed"
