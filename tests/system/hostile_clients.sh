#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No client keeps the daemon from serving the others, and none leaves anything behind in it: see
# hostile_clients.py. Descriptors and a sanitizer's findings are looked at in the dev build, memory in the
# release build, since sanitizers keep what is freed.
. "${0%/*}/lib.sh"
require_perf
run_in_background "$WORKLOADS/busy" --seconds 280 >/dev/null
mkdir "$WORK/counted"

# suffer BUILD [LIVE]
suffer() {
    echo "== the $1 build"
    start_daemon
    chmod 666 "$CPU_PROFILERD_SOCKET" # for the other users
    chmod 755 "$WORK"
    python3 "${0%/*}/hostile_clients.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" "${@:2}" || fail "a client gets too much, in the $1 build"
    stop_daemon || exit 1
}

use_build dev
suffer dev
use_build release
# exec keeps the pid, so the name of the count is known before the daemon has one. Nothing else is counted.
cat >"$WORK/counted/cpu-profilerd" <<DAEMON
#!/bin/sh
ln -s "live.\$\$" '$WORK/live'
export LIVE_MEMORY='$WORK/live' LD_PRELOAD='$BUILD_DIR/lib/live_memory.so'
exec '$BIN/cpu-profilerd' "\$@"
DAEMON
chmod +x "$WORK/counted/cpu-profilerd"
BIN=$WORK/counted
suffer release "$WORK/live"
