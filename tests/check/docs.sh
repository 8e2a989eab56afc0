#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the project says of itself is so: links between pages lead to a page and a heading that are there, every option
# that a page shows with profctl or cpu-profilerd is one that the program's --help or the verb's table has, each sentence
# and row of SECURITY.md that promises something names a test that ctest knows (promises.py has the rules), each counter
# of common/counters.h has its row in trace-format.md, the tables of architecture.md name the sources of the daemon,
# comments name functions and files that there are (comments.py), messages name the user of the prompt above them, and
# the shell scripts pass `bash -n` and shellcheck.
. "${0%/*}/lib.sh"

pages() {
    find . -path ./build -prune -o -name '*.md' -print | sort
}

# Prints "PAGE#ANCHOR" for each heading of the pages, with the anchor that GitHub gives it: in small letters, without
# punctuation, - for a space. A heading that a page has twice has the anchor once.
anchors() {
    pages | xargs awk '
        FNR == 1 { in_code = 0 }
        /^```/ { in_code = !in_code }
        !in_code && sub(/^#+ +/, "") { print FILENAME "#" $0 }' |
        sed -E ':more; s/^([^#]*#.*)[^[:alnum:]_ -]/\1/; t more; s/ /-/g; s/#(.*)/#\L\1/'
}

# Links that are not of another host.
declare -A has_anchor=()
while read -r anchor; do
    has_anchor[$anchor]=1
done < <(anchors)
while IFS=: read -r page link; do
    link=${link#*(}
    link=${link%)}
    target=${link%%#*}
    [[ ! $target =~ ^[a-z]+: ]] || continue
    file=$page
    [ -z "$target" ] || file=./$(realpath -m --relative-to=. "${page%/*}/$target")
    if [ ! -e "$file" ]; then
        complain "$page: no file '$target'"
    elif [[ $link == *#* && -z ${has_anchor[$file#${link#*#}]:-} ]]; then
        complain "$page: no heading for the link '$link'"
    fi
done < <(pages | xargs grep -HoE '\]\([^)]+\)' || true)

# The first column of the tables of the daemon's rooms names each of its sources, as `x`, `x.c`, `x.[ch]` or `x*`, and none
# that is not there.
mapfile -t sources < <(find daemon common -name '*.[ch]' | sort)
mapfile -t named < <(sed -n "/^## The daemon's rooms/,/^## The client's rooms/p" docs/architecture.md |
    grep -oE '^\| `[^|]*\|' | grep -oE '`[^`]+`' | tr -d '`')
[ ${#sources[@]} -gt 100 ] && [ ${#named[@]} -gt 100 ] || complain "docs/architecture.md: its tables or the sources are not found"
declare -A is_found=()
for source in "${sources[@]}"; do
    is_named=
    for name in "${named[@]}"; do
        # The name is a pattern: no quotes.
        # shellcheck disable=SC2053
        if [[ ${source##*/} == $name || ${source##*/} == $name.[ch] ]]; then
            is_named=1
            is_found[$name]=1
        fi
    done
    [[ -n $is_named || $source != daemon/*.c ]] || complain "docs/architecture.md: no row names $source"
done
for name in "${named[@]}"; do
    [ -n "${is_found[$name]:-}" ] || complain "docs/architecture.md: a row names '$name', of which there is no source"
done

c_files | python3 tests/check/comments.py || failed=1

# set_table PROGRAM [VERB]: sets `table` to the options that it has, a line each.
declare -A tables=()
set_table() {
    if [ -z "${tables["$*"]+known}" ]; then
        if [ $# -gt 1 ]; then
            table_of "$2"
        else
            table=$("$BUILD_DIR/bin/$1" --help 2>&1 | grep -oE '(^|[^a-zA-Z-])--?[a-zA-Z][a-z-]*' | sed -E 's/^[^-]*//') ||
                complain "'$1 --help' fails, or names no options"
        fi
        tables["$*"]=$table
    fi
    table=${tables["$*"]}
}

# A command line in a page: its program, a verb where it has one, and its options up to ` -- `.
is_option='^--?[a-zA-Z][a-z-]*'
while IFS=: read -r page command; do
    read -ra words <<<"${command%% -- *}"
    options=()
    for word in "${words[@]}"; do
        [[ $word =~ $is_option ]] && options+=("${BASH_REMATCH[0]}")
    done
    [ ${#options[@]} -gt 0 ] || continue
    words=("${words[@]:0:2}")
    [[ ${words[0]} == profctl && ${words[1]} =~ ^[a-z]+$ ]] || words=("${words[0]}")
    set_table "${words[@]}"
    for option in "${options[@]}"; do
        [[ $'\n'$table$'\n' == *$'\n'"$option"$'\n'* ]] || complain "$page: '${words[*]}' has no option $option"
    done
done < <(pages | xargs grep -HoE '(profctl|cpu-profilerd) [a-z-][^`#|>&]*' | sed 's|^\./||')

# What a user at a prompt like `bob$` is told to do adds that user to a group, as the programs' messages do.
misnamed=$(pages | xargs awk '
    FNR == 1 || /^(```|[#$] )/ { user = "" }
    /^[a-z]+\$ / { user = substr($1, 1, length($1) - 1) }
    user != "" && match($0, /usermod -aG [a-z-]+ [a-z]+/) && substr($0, RSTART, RLENGTH) !~ " " user "$" {
        print FILENAME ": " user " is told: " substr($0, RSTART, RLENGTH)
    }')
[ -z "$misnamed" ] || complain "$misnamed"

# The rows stand in the order of common/counters.h, each begins with the unit and meaning there, and there is no other.
mapfile -t rows_of_counters < <(sed -n '/^| member | counts |$/,/^$/p' docs/trace-format.md | sed '1,2d; /^$/d')
mapfile -t counters < <(sed -nE '/^ +X\(/s/^ +X\((\w+), (\w+), "(.*)"\).*/| `\1` | \2 \3/p' common/counters.h)
for number in "${!counters[@]}"; do
    [[ ${rows_of_counters[number]:-} == "${counters[number]}"* ]] ||
        complain "docs/trace-format.md: row $((number + 1)) of the counters does not begin as common/counters.h has it: ${counters[number]}"
done
[ "${#counters[@]}" -gt 0 ] && [ "${#rows_of_counters[@]}" -eq "$(grep -cE '^ +X\(' common/counters.h)" ] ||
    complain "docs/trace-format.md: the rows of the counters are not as many as the lines in common/counters.h"

# Asking ctest would take the log away from the run that this test belongs to.
sed -n 's/^add_test(\[=\[\([a-z.0-9_]*\)\]=\].*/\1/p' "$BUILD_DIR"/tests/CTestTestfile.cmake "$BUILD_DIR"/tests/*/CTestTestfile.cmake |
    python3 tests/check/promises.py SECURITY.md /dev/stdin || failed=1

while read -r script; do
    bash -n "$script" || complain "$script: bash -n"
done < <(shell_files)

# The tool reads a sourced library again for each script, and follows all that it does: that takes four times as long as
# all scripts. So what a script sources here has of the library only what it sets, sources, assigns and uses. The libraries
# themselves are checked whole.
abridge() {
    grep -E '^(set |\. |# shellcheck )' "$1"
    {
        grep -oE '(^|[ ({;])[a-zA-Z_]+=\(?' "$1" | sed -E 's/^[^a-zA-Z_]//; s/\($/()/'
        sed -nE 's/.*\<read -r ([a-z_ ]+).*/\1/p' "$1" | tr -s ' ' '\n' | sed '/./s/$/=/'
    } | sort -u
    grep -oE '\$\{?[a-zA-Z_]+' "$1" | sed -E 's/^\$\{?(.*)/: "$\1"/' | sort -u
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
shell_files | xargs cp --parents -t "$tree" .shellcheckrc
sourced=$(shell_files | xargs grep -hE '^ *\. ' | grep -oE '[a-z_]+\.sh' | sort -u | paste -sd'|')
libraries=$(shell_files | grep -E "/(${sourced//./\\.})$")
for library in $libraries; do
    abridge "$library" >"$tree/$library"
done
# shellcheck disable=SC2086
shellcheck --severity=warning $libraries || failed=1
(cd "$tree" && shell_files | grep -vxF "$libraries" | xargs shellcheck --severity=warning) || failed=1
exit "$failed"
