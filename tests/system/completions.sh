#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# TAB in bash, zsh and fish completes verbs, options, their values, files and commands of profctl, and offers what --help has.
. "${0%/*}/lib.sh"
python3 "$SOURCE_DIR/tests/system/completions.py" "$BUILD_DIR/bin/profctl" "$SOURCE_DIR" "$WORK" || fail "see above"
