#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# groff has nothing to say about the manual pages, as they are built; each names every option, function or member of what
# it is about, and no option that there is not. Every verb and every function has a page.
. "${0%/*}/lib.sh"

# The page as it is read, without bold and underlines. One line for each paragraph: an option may be hyphenated.
render() {
    groff -mdoc -ww -Tascii -P-cbou -rLL=2000n "$1" 2>&1
}

pages=$BUILD_DIR/man
for page in "$pages"/*.[1-8]; do
    if read -r first second <"$page" && [ "$first" = .so ]; then
        [ -e "$pages/${second#man[0-9]/}" ] || complain "$page: there is no $second"
        continue
    fi
    warnings=$(groff -mdoc -ww -z "$page" 2>&1)
    [ -z "$warnings" ] || complain "$page: $warnings"
    ! LC_ALL=C grep -nE '[^ -~]' "$page" || complain "$page: the lines above are not ASCII"
done
for source in man/*.[1-8] man/*.in; do
    name=$(basename "$source" .in)
    [ -e "$pages/$name" ] || complain "$source: no page is made of it"
done
for name in $(grep -hoE '^\.Xr (profctl|cpu-profilerd|libprofctl)[^ ]* [1-8]' "$pages"/*.[1-8] | sort -u | sed 's/^\.Xr //; s/ /./'); do
    [ -e "$pages/$name" ] || complain "a page refers to $name, which there is not"
done

# Options at the start of a word: "-F," of "-F, --frequency HZ", and no part of "FILE.partial-...".
options() {
    grep -oE '(^|[[ ,|])--?[a-zA-Z][a-z-]*' | sed -E 's/^[^-]*//' | sort -u
}

# compare PAGE WHAT HELP TEXT: both name the same options.
compare() {
    local differ
    differ=$(diff <(options <<<"$3") <(options <<<"$4")) || complain "$1: $2: --help (<) and the page (>) differ: $differ"
}

verbs=$("$BUILD_DIR/bin/profctl" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 6 ] || complain "profctl --help: too few verbs: $verbs"
for verb in $verbs; do
    [ -e "$pages/profctl-$verb.1" ] || complain "profctl $verb has no page"
    text=$(render "$pages/profctl-$verb.1")
    table_of "$verb"
    compare "profctl-$verb(1)" "the options" "$table" "$(sed -n '/^OPTIONS/,/^[A-NP-Z]/s/^   *\(-.*\)/\1/p' <<<"$text" | grep -oE '^(-[a-zA-Z](, )?)?(--[a-z-]+)?')"
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
        grep -qxF "$section" <<<"$text" || complain "profctl-$verb(1): has no $section"
    done
done

# Each name in brackets that stands in the place of one is explained, and so is each column of a report.
texts=$(for page in "$pages"/profctl*.1; do render "$page"; done)
markers=$(find client -name '*.[ch]' -exec grep -hoE '"\[[a-z][a-z ]*\]"' {} + | tr -d '"' | sort -u | grep -vxF '[hidden]') # of a log
[ "$(wc -l <<<"$markers")" -ge 10 ] || complain "too few markers are found: $markers"
while read -r marker; do
    grep -qF "$marker" <<<"$texts" || complain "no page of profctl explains $marker"
done <<<"$markers"
for column in self total root cut processes; do
    grep -qE "^\.(Pq )?Sy $column( |\$)" man/profctl-report.1.in || complain "profctl-report(1): does not explain the column '$column'"
done

# The library's functions, and what each comment of its header says of them.
functions=$(grep -oE '^[a-z][a-z ]*\*?profctl_[a-z_]+\(' client/include/profctl.h | grep -oE 'profctl_[a-z_]+' | sort)
text=$(render "$pages/libprofctl.3")
[ "$(sed -n 's/^   \(profctl_[a-z_]*\)$/\1/p' <<<"$text" | sort)" = "$functions" ] || complain "libprofctl(3): has other functions than profctl.h"
[ "$(cd "$pages" && grep -l '^\.so man3/libprofctl.3' profctl_*.3 | sed 's/\.3$//')" = "$functions" ] || complain "man: other functions than those of profctl.h have pages"
spoken=$(sed -n '/^\/\*$/,/^ \*\/$/s/^ \* *//p' client/include/profctl.h | tr -d '`' | tr -s ' \n' '\n\n' | grep -E '^[a-z_]+[.,:;]?$' | sort -u)
missing=$(comm -23 <(echo "$spoken") <(tr -s ' \n' '\n\n' <<<"$text" | sort -u))
[ -z "$missing" ] || complain "libprofctl(3): lacks words of the header:" $missing

# The words of the format's page are all in the manual page of it, but for the heads of tables with two columns.
spoken=$(awk '/^\|[-|]+\|$/ { last = "" } { print last; last = $0 } END { print last }' docs/trace-format.md | sed 's/](http[^)]*)//g' | grep -oE '\b[a-z]{4,}\b' | sort -u)
missing=$(comm -23 <(echo "$spoken") <(render "$pages/cpu-profilerd-fxt.5" | grep -oE '\b[a-z]{4,}\b' | sort -u))
[ "$(wc -w <<<"$spoken")" -gt 300 ] || complain "docs/trace-format.md: too few words"
[ -z "$missing" ] || complain "cpu-profilerd-fxt(5): lacks words of docs/trace-format.md:" $missing

# What apropos finds.
while read -r page words; do
    render "$pages/$page" | grep -qiE "^ +[a-z@., -]*(- |--).*$words" || complain "$page: its summary has no '$words'"
done <<<"profctl.1 profiler
profctl.1 flame graph
cpu-profilerd-record.8 schedule"

help=$("$BUILD_DIR/bin/cpu-profilerd" --help 2>&1 | grep -E '^  --')
compare man/cpu-profilerd.8 "the options" "$help" "$(render man/cpu-profilerd.8 | sed -n '/^SYNOPSIS/,/^   Rights/p')"

# compare_members PAGE SCHEMA: the page has each member of the schema, and those of the objects in it, and no other.
compare_members() {
    local members member text
    members=$(python3 - "$2" <<'PYTHON'
import json, sys
def names(properties, before=""):
    for name, member in properties.items():
        print(before + name)
        names(member.get("properties") or member.get("items", {}).get("properties", {}), before + name + ".")
names(json.load(open(sys.argv[1]))["properties"])
PYTHON
    )
    text=$(render "$1")
    for member in $members; do
        grep -qE "^ +${member//./\\.} \(" <<<"$text" || complain "$1: has no $member"
    done
    [ "$(grep -cE '^ +[a-z_.]+ \(.*\)$' <<<"$text")" -eq "$(wc -w <<<"$members")" ] || complain "$1: has a member that there is not"
}

compare_members man/cpu-profilerd-daemon.json.5 config/daemon.schema.json
compare_members man/cpu-profilerd-session.json.5 config/session.schema.json
exit "$failed"
