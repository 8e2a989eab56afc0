#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A stripped program's functions are a row each, by where its file says that they begin: in lists, trees, callers, exports,
# and for return addresses behind a function's last instruction. Without that file, or with another one in its place,
# each address is a row, as --addresses shows them. What the recording or debugging information names keeps its name.
# The child that reads files may be ended by one, and costs its names only.
. "${0%/*}/lib.sh"
for program in gcc objcopy readelf nm; do
    command -v "$program" >/dev/null || skip "$program is not installed (scripts/install-deps.sh --test)"
done
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
python3 "$SOURCE_DIR/tests/system/unnamed_functions.py" "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"
