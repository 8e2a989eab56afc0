#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl flamegraph`: the page in a headless Chromium, by mouse and by keys, counts what `profctl report` counts, of the
# whole and of a part of the time; its address brings it back; names stay text. The still picture has the same counts.
. "${0%/*}/lib.sh"
command -v chromium >/dev/null || skip "there is no chromium"
PYTHONPATH=$SOURCE_DIR/tests/system python3 "$SOURCE_DIR/tests/system/flamegraph.py" "$BUILD_DIR/bin/profctl" \
    "$BUILD_DIR/bin/recording_maker" "$WORK" || fail "see above"
