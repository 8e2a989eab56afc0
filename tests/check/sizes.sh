#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No function over 70 lines, tests included. clang-format puts a function's first and last brace alone at the start of a
# line, so its length is theirs; a script's begins with its name. A file ends where an
# idea ends; one over 600 lines is named, for a second look.
. "${0%/*}/lib.sh"

{ c_files; shell_files; find client -name '*.js'; } | xargs awk '
    function end_of_file() {
        if (lines > 600) {
            printf "%s: %d lines; does an idea end in it?\n", file, lines
        }
    }
    FNR == 1 { end_of_file(); file = FILENAME; began = 0 }
    { lines = FNR }
    /^\{$/ || /^(async )?function .*\{$/ { began = FNR }
    /^\}$/ && began {
        if (FNR - began - 1 > 70) {
            printf "%s:%d: a function of %d lines, at most 70\n", file, began, FNR - began - 1
            bad = 1
        }
        began = 0
    }
    END {
        end_of_file()
        exit bad
    }' || failed=1
exit "$failed"
