#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No line of a report is wider than the terminal, colours are for terminals alone, and names drive none of them.
. "${0%/*}/lib.sh"
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
use_build release
PYTHONPATH=$SOURCE_DIR/tests/system python3 "$SOURCE_DIR/tests/system/report_terminal.py" "$BIN/profctl" "$MAKER" "$WORK" ||
    fail "see above"
