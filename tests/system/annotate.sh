#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl report --annotate F`: the lines of F as addr2line has them, its inlined copies too, and, where the source is
# not there, its instructions as objdump has them. Without the program's file, addresses. What stands at the source's path
# may be anything, and is kept in part only. Functions of one name, inlined copies and builds have their own instructions.
. "${0%/*}/lib.sh"
for program in gcc addr2line objdump readelf strip; do
    command -v "$program" >/dev/null || skip "$program is not installed (scripts/install-deps.sh --test)"
done
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
python3 "$SOURCE_DIR/tests/system/annotate.py" "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"
