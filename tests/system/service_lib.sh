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

# Where this machine's root may not raise limits, neither may the systemd inside: then capabilities stand for what
# LimitMEMLOCK= and LimitRTPRIO= allow elsewhere. LIMITS are those, and limits[] the lines of a drop-in.
LIMITS=
limits=()
if ! setpriv --dump | grep -q 'Capability bounding set:.*sys_resource'; then
    LIMITS="CAP_IPC_LOCK CAP_SYS_NICE"
    limits=("AmbientCapabilities=$LIMITS" "CapabilityBoundingSet=$LIMITS")
fi

# start_service_lab [COMMANDS]: boots with everything installed and the socket enabled, after COMMANDS.
start_service_lab() {
    local setup
    setup="cmake --install '$RELEASE_DIR' --prefix /usr
mkdir -p /etc/sysusers.d /etc/systemd/system/$UNIT.d
cat >/etc/sysusers.d/people.conf <<'PEOPLE'
u alice - - /home/alice
m alice cpu-profiler
u bob   - - /home/bob
u carol - - /home/carol
PEOPLE
systemd-sysusers
systemd-tmpfiles --create cpu-profilerd.conf
for user in alice bob carol; do install -d -m 700 -o \$user -g \$user /home/\$user; done
systemctl enable cpu-profilerd.socket
printf '%s\n' '[Service]' ${limits[*]@Q} >/etc/systemd/system/$UNIT.d/test.conf
${1:-}"
    at_end lab_stop
    mkdir "$WORK/lab"
    lab_start "$WORK/lab" "$SOURCE_DIR" "$setup" || fail "systemd did not boot: $(cat "$WORK/lab/boot.log")"
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

# alice COMMAND...: in her home.
alice() {
    # shellcheck disable=SC2016 # for the shell inside
    lab_as alice sh -c 'cd /home/alice && exec "$@"' sh "$@"
}
