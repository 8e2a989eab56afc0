#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Members who take every connection there is, under their subordinate uids too, from a user namespace of their own,
# keep neither root nor another member out. See crowded_socket.py.
. "${0%/*}/lib.sh"
use_build release
[ "$(id -u)" -eq 0 ] || skip "being other users takes root"

member=4711 group=4712 first_subuid=1234500000
restore_subuid() {
    if [ -e "$WORK/subuid" ]; then
        cat "$WORK/subuid" >/etc/subuid
    else
        rm -f /etc/subuid
    fi
}
if [ -e /etc/subuid ]; then
    cp -p /etc/subuid "$WORK/subuid" || fail "no copy of /etc/subuid"
fi
at_end restore_subuid
echo "$member:$first_subuid:65536" >>/etc/subuid || fail "/etc/subuid cannot be written to"

start_daemon
chgrp "$group" "$CPU_PROFILERD_SOCKET" && chmod 660 "$CPU_PROFILERD_SOCKET" && chmod 711 "$WORK" || fail "the socket cannot be given to a group"
status=0
python3 "${0%/*}/crowded_socket.py" "$CPU_PROFILERD_SOCKET" "$member" "$group" "$first_subuid" || status=$?
[ "$status" -ne 77 ] || skip "users can make no namespaces here"
[ "$status" -eq 0 ] || fail "members keep others out"
stop_daemon || exit 1
