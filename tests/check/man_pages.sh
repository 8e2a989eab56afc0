#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# groff has nothing to say about the manual pages; each names every verb, option or member of what it is about,
# in its section, and no option that there is not.
. "${0%/*}/lib.sh"

# The page as it is read, without bold and underlines. One line for each paragraph: an option may be hyphenated.
render() {
    groff -mdoc -ww -Tascii -P-cbou -rLL=2000n "$1" 2>&1
}

for page in man/*.[1-8]; do
    warnings=$(groff -mdoc -ww -z "$page" 2>&1)
    [ -z "$warnings" ] || complain "$page: $warnings"
    grep -q "$(basename "$page")" man/CMakeLists.txt || complain "$page: is not installed"
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

text=$(render man/profctl.1)
verbs=$("$BUILD_DIR/bin/profctl" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 6 ] || complain "profctl --help: too few verbs: $verbs"
[ "$(sed -n '/^VERBS/,/^ENVIRONMENT/s/^   \([a-z]\)/\1/p' <<<"$text")" = "$verbs" ] || complain "man/profctl.1: has other verbs than profctl --help, or another order"
for verb in $verbs; do
    section=$(awk -v verb="$verb" '/^[A-Z]/ { at = 0 } /^   [a-z]/ { at = $1 == verb; next } at' <<<"$text")
    table_of "$verb"
    compare man/profctl.1 "$verb" "$table" "$section"
done

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
        names(member.get("properties", {}), before + name + ".")
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
