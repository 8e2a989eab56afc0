#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the project says of itself is so: links between pages lead somewhere, every option that a page shows
# with profctl or cpu-profilerd is one that the program's --help or the verb's table has, each sentence and row
# of SECURITY.md that promises something names a test that ctest knows (promises.py has the rules), each counter
# of common/counters.h has its row in trace-format.md, and the shell scripts pass `bash -n` and shellcheck.
. "${0%/*}/lib.sh"

pages() {
    find . -path ./build -prune -o -name '*.md' -print | sort
}

# Links that are neither of another host nor within the page.
while read -r page; do
    while read -r target; do
        [ -e "$(dirname "$page")/$target" ] || complain "$page: no file '$target'"
    done < <(grep -oE '\]\([^)]+\)' "$page" | sed -E 's/^\]\(//; s/[#)].*$//' | grep -vE '^([a-z]+:|$)' || true)
done < <(pages)

# A command line in a page: its program, a verb where it has one, and its options up to ` -- `.
if [ -e client/verbs/profctl.c ]; then
    while IFS=: read -r page command; do
        options=$(grep -oE '(^|[[:space:]])--?[a-zA-Z][a-z-]*' <<<"${command%% -- *}") || continue
        read -r program verb _ <<<"$command"
        words=("$program")
        if [[ $program == profctl && $verb =~ ^[a-z]+$ ]]; then
            words+=("$verb")
            table_of "$verb"
        else
            table=$("$BUILD_DIR/bin/$program" --help 2>&1 | grep -oE '(^|[^a-zA-Z-])--?[a-zA-Z][a-z-]*' | sed -E 's/^[^-]*//') ||
                complain "'$program --help' fails, or names no options"
        fi
        for option in $options; do
            grep -qxF -- "$option" <<<"$table" ||
                complain "$page: '${words[*]}' has no option $option"
        done
    done < <(pages | xargs grep -HoE '(profctl|cpu-profilerd) [a-z-][^`#|>&]*' | sed 's|^\./||')
fi

# The rows stand in the order of common/counters.h, each begins with the unit and meaning there, and there is no other.
rows_of_counters=$(sed -n '/^| member | counts |$/,/^$/p' docs/trace-format.md | tail -n +3)
number=0
while read -r row; do
    number=$((number + 1))
    [[ $(sed -n "${number}p" <<<"$rows_of_counters") == "$row"* ]] ||
        complain "docs/trace-format.md: row $number of the counters does not begin as common/counters.h has it: $row"
done < <(sed -nE '/^ +X\(/s/^ +X\((\w+), (\w+), "(.*)"\).*/| `\1` | \2 \3/p' common/counters.h)
[ "$number" -gt 0 ] && [ "$(grep -c . <<<"$rows_of_counters")" -eq "$(grep -cE '^ +X\(' common/counters.h)" ] ||
    complain "docs/trace-format.md: the rows of the counters are not as many as the lines in common/counters.h"

# Asking ctest would take the log away from the run that this test belongs to.
sed -n 's/^add_test(\[=\[\([a-z.0-9_]*\)\]=\].*/\1/p' "$BUILD_DIR"/tests/CTestTestfile.cmake "$BUILD_DIR"/tests/*/CTestTestfile.cmake |
    python3 tests/check/promises.py SECURITY.md /dev/stdin || failed=1

while read -r script; do
    bash -n "$script" || complain "$script: bash -n"
done < <(shell_files)
shell_files | xargs shellcheck --severity=warning || failed=1
exit "$failed"
