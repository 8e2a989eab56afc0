# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced after lib.sh by tests of the installed service: a systemd of their own with the release build installed
# below /usr, and three users: alice, who is in the group, bob and carol, who are not.

# shellcheck source=scripts/systemd_lab.sh
. "$SOURCE_DIR/scripts/systemd_lab.sh"

UNIT=cpu-profilerd.service

# require_lab: skips where this machine allows none.
require_lab() {
    local why
    why=$(lab_why_not)
    [ -z "$why" ] || skip "$why"
}

# start_service_lab: everything is installed, nothing is started.
start_service_lab() {
    at_end lab_stop
    mkdir "$WORK/lab"
    lab_start "$WORK/lab" "$SOURCE_DIR" || fail "systemd did not boot: $(cat "$WORK/lab/boot.log")"
    lab cmake --install "$RELEASE_DIR" --prefix /usr >"$WORK/install.out" 2>&1 ||
        fail "install: $(cat "$WORK/install.out")"
    lab mkdir -p /etc/sysusers.d
    lab tee /etc/sysusers.d/people.conf >/dev/null <<'PEOPLE'
u alice - - /home/alice
m alice cpu-profiler
u bob   - - /home/bob
u carol - - /home/carol
PEOPLE
    lab sh -c 'systemd-sysusers && systemd-tmpfiles --create cpu-profilerd.conf' >"$WORK/users.out" 2>&1 ||
        fail "users: $(cat "$WORK/users.out")"
    local user
    for user in alice bob carol; do
        lab install -d -m 700 -o "$user" -g "$user" "/home/$user"
    done
    # Where this machine's root may not raise limits, neither may the systemd inside: then capabilities stand
    # for what LimitMEMLOCK= and LimitRTPRIO= allow elsewhere.
    LIMITS=
    lab setpriv --dump | grep -q 'Capability bounding set:.*sys_resource' || LIMITS="CAP_IPC_LOCK CAP_SYS_NICE"
    set_service "AmbientCapabilities=$LIMITS" "CapabilityBoundingSet=$LIMITS"
}

# set_service LINE...: a drop-in of the service, in place of the one before; the service is stopped.
set_service() {
    lab mkdir -p "/etc/systemd/system/$UNIT.d"
    printf '%s\n' '[Service]' "$@" | lab tee "/etc/systemd/system/$UNIT.d/test.conf" >/dev/null
    lab systemctl daemon-reload
    lab systemctl stop "$UNIT" 2>/dev/null || fail "the service does not stop: $(service_log)"
    lab systemctl reset-failed "$UNIT" 2>/dev/null # which is not loaded when it never failed
}

service_property() {
    lab systemctl show "$UNIT" -p "$1" --value
}

service_log() {
    lab journalctl --no-pager -o cat -u "$UNIT"
}

# run_in_lab USER COMMAND...: in the background until the lab ends.
run_in_lab() {
    lab_as "$@" </dev/null >/dev/null 2>&1 &
}
