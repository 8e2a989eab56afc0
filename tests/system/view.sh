#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl view` serves a profile on 127.0.0.1, to those that know its address, for as long as it runs.
. "${0%/*}/lib.sh"
PYTHONPATH=$SOURCE_DIR/tests/system python3 "$SOURCE_DIR/tests/system/view.py" "$BUILD_DIR/bin/profctl" \
    "$BUILD_DIR/bin/recording_maker" "$WORK" || fail "see above"
