#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No client keeps the daemon from serving the others, and none leaves anything behind in it: see
# hostile_clients.py. Descriptors and a sanitizer's findings are looked at in the dev build, memory in the
# release build, since sanitizers keep what is freed.
. "${0%/*}/lib.sh"
require_perf
run_in_background "$WORKLOADS/busy" --seconds 280 >/dev/null

# suffer BUILD [memory]
suffer() {
    echo "== the $1 build"
    use_build "$1"
    start_daemon
    chmod 666 "$CPU_PROFILERD_SOCKET" # for the other users
    chmod 755 "$WORK"
    python3 "${0%/*}/hostile_clients.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" "${@:2}" || fail "a client gets too much, in the $1 build"
    stop_daemon || exit 1
}

suffer dev
suffer release memory
