#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone, so that an include never depends on the one before it; the public one is
# C11 to the letter, and C++. A header that a source of the build includes first was compiled so with it.
. "${0%/*}/lib.sh"

includes=()
for folder in $(find common daemon client -name '*.h' -printf '%h\n' | sort -u); do
    includes+=(-I "$folder")
done
read -ra library_flags < <(pkg-config --cflags libcjson libdw libelf libseccomp libsystemd zlib)

compiles() {
    local header=$1
    shift
    "$@" -fsyntax-only -Wall -Wextra -Werror -include "$header" /dev/null ||
        complain "$header: does not compile with: $*"
}

# The first include of each source, as a header of the room or of those that it sees.
mapfile -t sources < <(grep -oE '"file": "[^"]*"' "$BUILD_DIR/compile_commands.json" | cut -d'"' -f4 | sort -u)
[ ${#sources[@]} -gt 100 ] || complain "compile_commands.json: names only ${#sources[@]} sources"
declare -A compiled=()
while read -r header; do
    compiled[$header]=1
done < <(awk 'FNR == 1 { first = 1 } first && /^#[[:space:]]*(include|define)/ { first = 0; if (sub(/^#include "/, "") && sub(/".*/, "")) print }' "${sources[@]}")

for header in $(find common daemon client -name '*.h' | sort); do
    [ -z "${compiled[${header##*/}]:-}" ] || continue
    compiles "$header" gcc -x c -std=gnu17 -D_GNU_SOURCE "${includes[@]}" "${library_flags[@]}"
done
for header in client/include/*.h; do
    compiles "$header" gcc -x c -std=c11 -pedantic-errors
    compiles "$header" clang++ -x c++ -std=c++11 -pedantic-errors
done
exit "$failed"
