#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A member who keeps what Read hands out, by splicing it into sockets of his own, keeps copies on his own account: the
# memory that is charged to the daemon stays within what the page about the protocol says. See kept_streams.py.
. "${0%/*}/lib.sh"
. "${0%/*}/memory_group.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "being other users takes root"
make_memory_group kept-streams
member=4711 group=4712 spinning=()
# They are the member's own, which has them spin while it records.
chmod 711 "$WORK" && cp "$WORKLOADS/busy" "$WORK/busy" || fail "no program of the member's"
for _ in 1 2; do
    run_in_background setpriv --reuid="$member" --regid="$group" --clear-groups "$WORK/busy" --seconds 280 >/dev/null
    wait_until 5 grep -qx busy "/proc/$BACKGROUND_PID/comm" || fail "the program does not start"
    kill -STOP "$BACKGROUND_PID"
    spinning+=("$BACKGROUND_PID")
done

echo '{"max_frequency_hz": 20000}' >"$WORK/daemon.json" # so that much is recorded in little time
start_daemon_in_memory_group --config "$WORK/daemon.json"
chgrp "$group" "$CPU_PROFILERD_SOCKET" && chmod 660 "$CPU_PROFILERD_SOCKET" || fail "the socket cannot be given to a group"
python3 "${0%/*}/kept_streams.py" "$CPU_PROFILERD_SOCKET" "$memory_group_usage" "$member" "$group" "${spinning[@]}" ||
    fail "a member keeps too much"
stop_daemon || exit 1
