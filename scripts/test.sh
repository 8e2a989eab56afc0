#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, and runs every test; ctest's summary is the last that it prints and
# ctest's exit status is its own. Two builds: `dev` (sanitizers) is what the tests test; system tests run
# what depends on speed with the programs of `release`. Where the kernel allows no perf events, system
# tests are skipped; with CPU_PROFILERD_REQUIRE_PERF=1 they fail. Arguments go to ctest (-L unit, -R NAME).
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

. tests/system/machine_settings.sh
restore_left_settings
scripts/install-deps.sh --test
for preset in release dev; do
    echo "== building $preset"
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
        cat "$log"
        exit 1
    fi
done

status=0
# One for each CPU: more are too much for a slow machine. tests/CMakeLists.txt says which bear what beside them. One
# more is check.tidy, which takes what the others leave of the CPUs, until it is done.
ctest --preset dev --parallel "$(($(nproc) + 1))" "$@" || status=$?
exit "$status"
