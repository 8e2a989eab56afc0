#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The parser, the schema, the page about the daemon's config and the example say the same.
. "${0%/*}/lib.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "${0%/*}/daemon_configs.py" "$BUILD_DIR/bin/cpu-profilerd"
