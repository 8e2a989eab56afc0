#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A service manager is told when the daemon is ready, what it does and that it ends; and it is told that the
# daemon lives only while the main thread and the collector both do. Each is stopped by itself.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "stopping one thread of the daemon takes root"
use_build release

PYTHONPATH=${0%/*} python3 "${0%/*}/service_watchdog.py" "$BIN/cpu-profilerd" "$WORK" || fail "the service manager is told wrong"
grep -q 'the collector has not moved for [0-9]* ms' "$WORK/daemon.log" || fail "the log says nothing of the collector"
