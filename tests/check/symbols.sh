#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libprofctl.so.0 exports the functions that profctl.h declares, under its version, and nothing else.
. "${0%/*}/lib.sh"

library=$BUILD_DIR/lib/libprofctl.so.0
[ -e "$library" ] || { echo "$library is not built"; exit 1; }

soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libprofctl.so.0 ] || complain "soname: $soname"

# A declaration stands at the start of a line; comments begin with a star.
declared=$(grep -oE '^[a-z][a-z ]*\*?profctl_[a-z_]+\(' client/include/profctl.h | grep -oE 'profctl_[a-z_]+' | sort)
[ "$(wc -l <<<"$declared")" -ge 10 ] || complain "profctl.h: found too few declarations: $declared"
# The version itself is an absolute symbol.
exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' | sort)
expected=$(sed 's/$/@@LIBPROFCTL_0/' <<<"$declared")
diff <(echo "$expected") <(echo "$exported") || complain "declared (<) and exported (>) functions differ"
exit "$failed"
