#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy has nothing to say about the product's sources; .clang-tidy is the list of checks. Two at a
# time, after everything else that wants a CPU, since tests run beside them. Only what the build compiles: a
# file that no target names is dead, and that is a failure too.
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

# One file a run: with several, version 14 takes every va_list after the first file for uninitialised.
# Its own count of suppressed warnings is not a finding.
xargs -P 2 -n 1 nice -n 19 clang-tidy --quiet -p "$BUILD_DIR" <<<"$sources" 2>&1 |
    { grep -v '^[0-9]* warnings\? generated' || true; } || failed=1
exit "$failed"
