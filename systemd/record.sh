#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# record PROFCTL NAME: what cpu-profilerd-record@NAME.service runs. The name of a recording tells its time, so
# that their order is the order of their names.
set -eu
cd "$STATE_DIRECTORY"
exec "$1" record --config "/etc/cpu-profilerd/record/$2.json" -o "$2-$(date -u +%Y%m%dT%H%M%SZ).fxt.gz"
