#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# No client keeps the daemon from serving the others, and none leaves anything behind in it: see
# hostile_clients.py. Descriptors and a sanitizer's findings are looked at in the dev build, memory in the
# release build, since sanitizers keep what is freed; both at one time.
. "${0%/*}/lib.sh"
require_perf
at_once dev release
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null
use_build "$STORY"

# suffer [LIVE]
suffer() {
    start_daemon
    chmod 666 "$CPU_PROFILERD_SOCKET" # for the other users
    chmod 755 "$WORK"
    python3 "${0%/*}/hostile_clients.py" "$CPU_PROFILERD_SOCKET" "$daemon_pid" "$@" || fail "a client gets too much"
    stop_daemon || exit 1
}

if [ "$STORY" = dev ]; then
    suffer
    exit
fi
mkdir "$WORK/counted"
# exec keeps the pid, so the name of the count is known before the daemon has one. Nothing else is counted.
cat >"$WORK/counted/cpu-profilerd" <<DAEMON
#!/bin/sh
ln -s "live.\$\$" '$WORK/live'
export LIVE_MEMORY='$WORK/live' LD_PRELOAD='$BUILD_DIR/lib/live_memory.so'
exec '$BIN/cpu-profilerd' "\$@"
DAEMON
chmod +x "$WORK/counted/cpu-profilerd"
BIN=$WORK/counted
suffer "$WORK/live"
