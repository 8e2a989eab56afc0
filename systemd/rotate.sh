#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# rotate NAME: removes all recordings of NAME but the newest $KEEP.
set -eu
cd "$STATE_DIRECTORY"
find . -maxdepth 1 -type f -name "$1-*.fxt.gz" | sort | head -n "-$KEEP" | while read -r recording; do
    rm -- "$recording"
done
