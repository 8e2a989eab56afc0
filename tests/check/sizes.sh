#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No function over 70 lines, tests included. clang-format puts a function's first and last brace alone at the start of a
# line, so its length is theirs. A file ends where an idea ends; one over 600 lines is named, for a second look.
. "${0%/*}/lib.sh"

while read -r file; do
    awk -v file="$file" '
        /^\{$/ { began = NR }
        /^\}$/ && began {
            if (NR - began - 1 > 70) {
                printf "%s:%d: a function of %d lines, at most 70\n", file, began, NR - began - 1
                bad = 1
            }
            began = 0
        }
        END {
            if (NR > 600) {
                printf "%s: %d lines; does an idea end in it?\n", file, NR
            }
            exit bad
        }' "$file" || failed=1
done < <(c_files; shell_files)
exit "$failed"
