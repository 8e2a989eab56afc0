#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a manual page of what it repeats:
#   page.sh PAGE PROFCTL SOURCE    of a verb, or of profctl itself: profctl-VERB.1.in with what the program says (verb.awk)
#   page.sh PAGE AWK SOURCE        of another file, by a program for awk
set -euo pipefail

page=$1 source=$3
trap 'rm -f "$page.new"' EXIT

verb_page() {
    local profctl=$1 name summary="CPU profiler: record, report and draw flame graphs" arguments=(--help)
    name=$(basename "$source" .1.in)
    if [ "$name" != profctl ]; then
        summary=$("$profctl" --help | sed -n "s/^  ${name#profctl-}  *//p")
        arguments=("${name#profctl-}" --help)
    fi
    [ -n "$summary" ] || {
        echo "$source: profctl has no such verb" >&2
        return 1
    }
    "$profctl" "${arguments[@]}" | awk -v name="$name" -v summary="$summary" -f "${0%/*}/verb.awk" - "$source"
}

case $2 in
*.awk) awk -v date="November 26, 2026" -f "$2" "$source" >"$page.new" ;;
*) verb_page "$2" >"$page.new" ;;
esac
mv "$page.new" "$page"
