#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl diff -o`: the page in a headless Chromium has the rows, numbers and sentences of `diff --json` and of the
# terminal, with one recording a side and with several, whatever they are divided by; its graph counts as they do; names
# stay text.
. "${0%/*}/lib.sh"
command -v chromium >/dev/null || skip "there is no chromium"
PYTHONPATH=$SOURCE_DIR/tests/system python3 "$SOURCE_DIR/tests/system/diff_page.py" "$BUILD_DIR/bin/profctl" \
    "$BUILD_DIR/bin/recording_maker" "$WORK" || fail "see above"
