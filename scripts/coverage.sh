#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints how much of each room the unit tests run: lines, and branches that were taken. Builds them for that in
# build/coverage. Needs scripts/install-deps.sh --coverage. Exit status 1: a unit test failed.
# A source of which a unit test links the room counts whole; a room that no unit test links has no row and is in no sum. Coverage shows what no test
# looks at; whether a test would notice an error is what scripts/proof-mutants.sh finds out.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/coverage
command -v gcovr >/dev/null || {
    echo "$0: no gcovr: scripts/install-deps.sh --coverage" >&2
    exit 2
}
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O0" \
    -DCMAKE_C_FLAGS="--coverage -fprofile-update=atomic" >"$build/log"
mapfile -t tests < <(ctest --test-dir "$build" -N -L unit | sed -n 's/^ *Test *#[0-9]*: unit\./test_/p')
ninja -C "$build" "${tests[@]}" >"$build/log" || {
    tail -n 40 "$build/log"
    exit 2
}
find "$build" -name '*.gcda' -delete
failed=0
ctest --test-dir "$build" -L unit -j "$(nproc)" --output-on-failure >"$build/log" 2>&1 || failed=1
[ "$failed" -eq 0 ] || sed -n '/tests failed out of/,$p' "$build/log"

# Sums by folder; a header's code is not counted, since each source that includes it has its own.
gcovr --root . --object-directory "$build" --filter '(daemon|client|common)/.*\.c$' --csv 2>>"$build/log" |
    awk -F, '
        function row(name, i) {
            printf "%-18s %6d lines %6.1f %% %6d branches %6.1f %%\n", name, lines[name],
                100 * run[name] / (lines[name] ? lines[name] : 1), branches[name],
                100 * taken[name] / (branches[name] ? branches[name] : 1)
        }
        function add(name) {
            lines[name] += $2; run[name] += $3; branches[name] += $5; taken[name] += $6
        }
        NR > 1 {
            room = $1
            sub(/\/[^\/]*$/, "", room)
            if (!(room in lines)) {
                order[++count] = room
            }
            add(room)
            add("all")
        }
        END {
            for (i = 1; i <= count; i++) {
                row(order[i])
            }
            row("all")
        }'
exit "$failed"
