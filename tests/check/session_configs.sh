#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The parser, the schema, the page about session configs and the examples say the same. The program is the release
# build's, which starts in a tenth of the time: with sanitizers, unit.session_config reads the same data.
. "${0%/*}/lib.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "${0%/*}/session_configs.py" "$RELEASE_DIR/bin/profctl"
