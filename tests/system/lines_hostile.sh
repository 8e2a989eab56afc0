#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debugging information made to cost time or memory: entries that lead in circles, that are nested without end, that
# share their ranges over and over, a line table of 64 MiB, files cut anywhere. Whatever is read or refused, the
# process ends by itself, in LIMIT_S seconds of its CPU time (measured: under 5 s, in a build with sanitizers) and
# within LIMIT_MIB of memory beyond the file's own size.
set -u

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
exec python3 "$SOURCE_DIR/tests/system/lines_hostile.py" "$BUILD_DIR/bin/lines_probe" \
    "$SOURCE_DIR/tests/oracle/programs/templates.cc"
