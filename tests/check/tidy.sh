#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy has nothing to say about the product's sources; .clang-tidy is the list of checks. Two at a
# time, and after what else wants a CPU, since tests run beside them; but beside a busy program they have a tenth of a CPU
# and come to their end. Only what the build compiles: a file that no target names is dead, and that is a failure too.
. "${0%/*}/lib.sh"

sources=$(python3 - "$BUILD_DIR/compile_commands.json" "$SOURCE_DIR" <<'PYTHON'
import json, os, sys
top = os.path.realpath(sys.argv[2])
files = {os.path.relpath(os.path.realpath(c["file"]), top) for c in json.load(open(sys.argv[1]))}
print("\n".join(sorted(f for f in files if f.split("/")[0] in ("common", "daemon", "client"))))
PYTHON
)

for file in $(find common daemon client -name '*.c'); do
    grep -qxF "$file" <<<"$sources" || complain "$file: no target compiles it"
done

# Most of the files are looked at twenty a run, since a run takes 0.06 s to begin. Version 14 takes every va_list after the
# first file for uninitialised, so files with one have runs of their own, and the others none of that check.
# Its own count of suppressed warnings is not a finding.
with_va_list=$(grep -rlE 'va_list|va_start' common daemon client)
! grep -q '\.h$' <<<"$with_va_list" || complain "a header has a va_list, so each file has one"

# tidy COUNT [OPTION...]: the files of standard input, so many a run.
tidy() {
    xargs -P 2 -n "$1" nice -n 10 clang-tidy --quiet -p "$BUILD_DIR" "${@:2}" 2>&1 |
        { grep -v '^[0-9]* warnings\? generated' || true; }
}
grep -xF "$with_va_list" <<<"$sources" | tidy 1 || failed=1
grep -vxF "$with_va_list" <<<"$sources" | tidy 20 '--checks=-clang-analyzer-valist.*' || failed=1
exit "$failed"
