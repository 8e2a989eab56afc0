#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The parser, the schema, the page about session configs and the examples say the same.
. "${0%/*}/lib.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "${0%/*}/session_configs.py" "$BUILD_DIR/bin/profctl"
