#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What call-frame tables cost: rows, bytes, the time to build one as the worker does and to check it as the
# daemon does, and ns for a lookup, for libraries and programs from small to large. Goals: at most 8 bytes a
# row, everything included; the largest library's table at most 8 MiB, built within 1.5 s. Exit status 1 when
# one is missed. ROUNDS=5. Needs neither root nor the daemon; there is no contender, perf has no tables.
. "${0%/*}/lib.sh"

rounds=${ROUNDS:-5}
probe=$BIN/bench/cfi_tables
metrics="rows rules bytes bytes_per_row own_differs_bytes own_build_ms build_ms open_ms peak_kib find_cold_ns find_hot_ns unsupported_bytes"

# existing PATTERN...: the first file that each pattern finds.
existing() {
    local pattern file
    for pattern in "$@"; do
        for file in $pattern; do
            if [ -r "$file" ]; then
                readlink -f "$file"
                break
            fi
        done
    done
}

cmake --build "$RELEASE_DIR" --target cfi_tables >/dev/null
bench_need "$probe" python3

libraries=/usr/lib/$(uname -m)-linux-gnu
mapfile -t files < <(existing "$libraries/libc.so.6" /usr/bin/python3 "$libraries/libstdc++.so.6" \
    /usr/bin/node "$libraries/libLLVM-*.so.1")

contenders=()
for file in "${files[@]}"; do
    contender=$(basename "$file")
    contenders+=("$contender")
    # A contender is a function that runs once.
    eval "$contender() { '$probe' '$file'; }"
done

bench_machine
bench_interleave "$rounds" "${contenders[@]}"
for contender in "${contenders[@]}"; do
    bench_table "$metrics" "$contender"
    echo
done

missed=0
# goal NAME CONTENDER METRIC LIMIT
goal() {
    local verdict=reached
    if ! awk -v value="$(bench_median "$2" "$3")" -v limit="$4" 'BEGIN { exit value > limit }'; then
        verdict="MISSED "
        missed=1
    fi
    echo "$verdict $1"
}
for contender in "${contenders[@]}"; do
    goal "$contender: at most 8 bytes a row" "$contender" bytes_per_row 8
    goal "$contender: its own table says what the table of all rows says" "$contender" own_differs_bytes 0
    goal "$contender: at most 8 MiB" "$contender" bytes $((8 << 20))
    goal "$contender: built within 1.5 s" "$contender" build_ms 1500
done
exit "$missed"
