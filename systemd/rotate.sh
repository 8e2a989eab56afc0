#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# rotate NAME: lets the group read the recordings of NAME, which profctl makes for its user alone, and removes
# all but the newest $KEEP.
set -eu
cd "$STATE_DIRECTORY"
find . -maxdepth 1 -type f -name "$1-*.fxt.gz" -exec chmod 640 {} +
find . -maxdepth 1 -type f -name "$1-*.fxt.gz" | sort | head -n "-$KEEP" | while read -r recording; do
    rm -- "$recording"
done
