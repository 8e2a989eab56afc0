#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone, so that an include never depends on the one before it; the public one is
# C11 to the letter, and C++.
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

for header in $(find common daemon client -name '*.h' | sort); do
    compiles "$header" gcc -x c -std=gnu17 -D_GNU_SOURCE "${includes[@]}" "${library_flags[@]}"
done
for header in client/include/*.h; do
    compiles "$header" gcc -x c -std=c11 -pedantic-errors
    compiles "$header" clang++ -x c++ -std=c++11 -pedantic-errors
done
exit "$failed"
