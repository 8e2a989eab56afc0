# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by every check: goes to the top of the sources, and says which files are the project's.
set -euo pipefail
export LC_ALL=C.UTF-8 # what tools say and sort is compared

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
RELEASE_DIR=${RELEASE_DIR:-$SOURCE_DIR/build/release}
cd "$SOURCE_DIR"

# By find, not by git: a new file counts before it is committed, and an unpacked tarball has no git.
c_files() {
    find common daemon client tests -name '*.[ch]' | sort
}

shell_files() {
    find scripts systemd tests bench debian man -name '*.sh' | sort
    find debian -name '*.config' -o -name '*.p*inst' -o -name '*.p*rm' -o -path 'debian/tests/*' ! -name '*.*' ! -name control | sort
    echo .ci/run
}

failed=0
complain() {
    echo "$*"
    failed=1
}

# table_of VERB: sets `table` to the options of the verb's table, "-F" and "--frequency", a line each. --help is
# printed from that table in one layout; what begins as an option and is laid out otherwise is complained of.
table_of() {
    local help layout='^  (-[a-zA-Z](, --[a-z-]+)?|    --[a-z-]+)( [A-Z]+(\[,[A-Z]+\])?)?  +[^ ]'
    table=
    help=$("$BUILD_DIR/bin/profctl" "$1" --help 2>&1) || complain "'profctl $1 --help' fails"
    help=$(grep -E '^ *-' <<<"$help") || complain "'profctl $1 --help' shows no options"
    ! grep -vE -- "$layout" <<<"$help" || complain "'profctl $1 --help' lays out the lines above unlike options"
    table=$(sed -E 's/^ *(-[a-zA-Z])?(, )?(--[a-z-]+)?.*/\1\n\3/' <<<"$help" | sed '/^$/d' | sort -u)
}
