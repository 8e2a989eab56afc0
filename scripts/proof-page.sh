#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that the page of `profctl flamegraph` can be used without seeing it, as far as a program can tell: axe-core looks at
# it in a headless Chromium, in both themes, and at a comparison of two recordings.
#
#   scripts/proof-page.sh
#
# Not part of the tests: axe-core is of the npm registry, and is installed into a temporary folder. Needs Chromium, npm, the
# preset `release`, and root.
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
need_built "$bin/cpu-profilerd" "$bin/profctl"
for program in chromium npm python3; do
    command -v "$program" >/dev/null || die "needs $program"
done
npm install --prefix "$work/npm" --no-audit --no-fund --silent axe-core@4.14 >/dev/null || die "npm cannot install axe-core"

daemon_start "$bin" "$work"
for name in before after; do
    "$bin/profctl" record -F 999 -o "$work/$name.fxt" -- timeout 2 python3 "$source_dir/tests/oracle/programs/mixed.py" \
        >"$work/$name.out" 2>&1 || [ -s "$work/$name.fxt" ] || die "cannot record: $(cat "$work/$name.out")"
done
"$bin/profctl" flamegraph -o "$work/one.html" "$work/before.fxt" >/dev/null 2>&1
"$bin/profctl" flamegraph -o "$work/comparison.html" "$work/before.fxt" "$work/after.fxt" >/dev/null 2>&1
PYTHONPATH=$source_dir/tests/system python3 "$source_dir/scripts/proof-page/axe.py" "$work/npm/node_modules/axe-core/axe.min.js" \
    "$work/browser" "$work/one.html" "$work/comparison.html" || die "axe-core finds faults"
echo "axe-core finds no fault"
