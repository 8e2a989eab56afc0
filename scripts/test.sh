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

# failures: what the failed tests printed last, and ctest's summary once more. A log of 350 tests is long, and its
# end must say why.
failures() {
    python3 - "$log" <<'PYTHON'
import re, sys
lines = open(sys.argv[1], errors="replace").read().split("\n")
starts = [i for i, line in enumerate(lines) if re.match(r" *\d+/\d+ Test +#", line)]
summary = next((i for i, line in enumerate(lines) if re.match(r"\d+% tests passed", line)), len(lines))
for at, end in zip(starts, starts[1:] + [summary]):
    if "***" in lines[at] and "***Skipped" not in lines[at]:
        told = [line for line in lines[at + 1:end] if line.strip() and not re.match(r" +Start +\d+:", line)]
        told = [line for line in told if line.startswith("FAIL")][:4] + ["..."] + told[-12:]
        print(lines[at], *(line[:300] for line in told), "", sep="\n")
print(*lines[summary:], sep="\n")
PYTHON
}

status=0
# One for each CPU, and one more, since most tests mostly wait; still more are too much for a slow machine.
# tests/CMakeLists.txt says which bear what beside them.
ctest --preset dev --parallel "$(($(nproc) + 1))" "$@" 2>&1 | tee "$log" || status=$?
if [ "$status" -ne 0 ] && [ "$(wc -l <"$log")" -gt 100 ]; then
    echo
    echo "== once more, what failed"
    failures
fi
exit "$status"
