#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# profctl doctor under a systemd of its own: a user who is not in the group, or not since the login; units that are stopped,
# disabled, masked, or have failed; a drop-in that takes memory away. Each remedy is followed, each command to the letter,
# and then all is well. --fix starts what is enabled, and changes nothing else.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab

# examine STATUS USER [OPTION...]: what the doctor finds is in $WORK/doctor.json.
examine() {
    local expected=$1 user=$2 status=0
    shift 2
    lab_as "$user" profctl doctor --json "$@" >"$WORK/doctor.json" 2>"$WORK/doctor.err" || status=$?
    [ "$status" -eq "$expected" ] ||
        fail "the doctor ends with $status for $user: $(cat "$WORK/doctor.err" "$WORK/doctor.json") $(service_log)"
}

found() {
    [ "$(json "$WORK/doctor.json" "any(f['cause'] == '$1' for f in d['findings'])")" = true ] ||
        fail "the doctor does not find $1: $(cat "$WORK/doctor.json")"
}

commands_of() {
    json "$WORK/doctor.json" "'\n'.join(c for f in d['findings'] if f['cause'] == '$1' for c in f['commands'])"
}

# follow CAUSE USER: as root, whom sudo would make of the user.
follow() {
    local commands
    commands=$(commands_of "$1")
    [ -n "$commands" ] || fail "$1 has no command"
    # shellcheck disable=SC2016 # for the shell inside
    lab env USER="$2" bash -ec 'sudo() { "$@"; }; eval "$1"' - "$commands" >"$WORK/followed" 2>&1 ||
        fail "$1: $commands: $(cat "$WORK/followed")"
}

# A member, and one who becomes it.
examine 0 alice
found unit-good
found group-good
found sample-good
found names-good
found kernel-names-no-right-service
examine 1 bob
found group-not-member
follow group-not-member bob
examine 0 bob
found group-good

# The login was before.
lab usermod -s /bin/bash bob
as_before=(setpriv --reuid=bob --regid=bob --clear-groups)
lab "${as_before[@]}" profctl doctor --json >"$WORK/doctor.json" && fail "a login of before may connect"
found group-new-login
lab "${as_before[@]}" bash -c "$(commands_of group-new-login)" <<<'profctl status' >"$WORK/out" 2>&1 ||
    fail "newgrp: $(cat "$WORK/out")"

# Stopped: what needs no decision is done by --fix, and no more than that.
lab systemctl stop cpu-profilerd.socket "$UNIT"
examine 1 alice
found unit-stopped
lab_as alice profctl start >"$WORK/out" 2>&1 && fail "a stopped socket serves"
grep -q "cpu-profilerd.socket is enabled, and not running: \(sudo \)\?systemctl start cpu-profilerd.socket\( # as root\)\?$" "$WORK/out" || fail "start says: $(cat "$WORK/out")"
lab_as alice profctl doctor --fix >"$WORK/out" 2>&1 && fail "alice may start units"
grep -q 'it needs the rights of root' "$WORK/out" || fail "alice is told: $(cat "$WORK/out")"
lab profctl doctor --fix >"$WORK/out" 2>&1 || fail "--fix: $(cat "$WORK/out")"
# shellcheck disable=SC2016
[ "$(grep -c '^\$ ' "$WORK/out")" -eq 1 ] && grep -qxF '$ systemctl start cpu-profilerd.socket' "$WORK/out" || fail "--fix has run: $(cat "$WORK/out")"
lab systemctl disable --now cpu-profilerd.socket "$UNIT" 2>/dev/null
examine 1 alice
found unit-disabled
lab profctl doctor --fix >"$WORK/out" 2>&1 && fail "--fix has enabled a unit"
follow unit-disabled alice
examine 0 alice
lab systemctl disable cpu-profilerd.socket 2>/dev/null
examine 0 alice
found unit-until-boot
follow unit-until-boot alice
examine 0 alice
found unit-good
lab systemctl mask --now cpu-profilerd.socket "$UNIT" 2>/dev/null
examine 1 alice
found unit-masked
follow unit-masked alice
examine 0 alice

# The unit is active, and its socket is gone.
lab rm /run/cpu-profilerd/control.sock
examine 1 alice
found socket-gone
follow socket-gone alice
examine 0 alice

# A mode that shuts members out.
for mode in 600 640; do
    lab chmod "$mode" /run/cpu-profilerd/control.sock
    examine 1 alice
    found socket-mode
    follow socket-mode alice
    examine 0 alice
done

# Failed, for a reason that is gone when the remedy is followed.
printf '[Service]\nExecStart=\nExecStart=/bin/false\n' | lab tee "/etc/systemd/system/$UNIT.d/zz.conf" >/dev/null
lab systemctl daemon-reload
lab systemctl stop "$UNIT" 2>/dev/null
examine 1 alice
has_failed() {
    [ "$(service_property ActiveState)" = failed ]
}
wait_until 20 has_failed || fail "the service has not failed: $(service_property ActiveState)"
examine 1 root
grep -q 'it said last: .*Failed at step EXEC spawning /bin/false' "$WORK/doctor.json" || fail "root is not told why the service failed: $(cat "$WORK/doctor.json")"
examine 1 alice
found unit-service-failed
lab rm "/etc/systemd/system/$UNIT.d/zz.conf"
lab systemctl daemon-reload
follow unit-service-failed alice
lab systemctl start cpu-profilerd.socket
examine 0 alice

# A drop-in that systemd has not read. The daemon that runs goes on.
printf '[Service]\nNice=0\n' | lab tee "/etc/systemd/system/$UNIT.d/zz.conf" >/dev/null
examine 0 alice
found unit-stale
[[ "$(commands_of unit-stale)" =~ ^(sudo\ )?systemctl\ daemon-reload$ ]] || fail "the remedy is: $(commands_of unit-stale)"
follow unit-stale alice
examine 0 alice
found unit-good

# A drop-in takes the memory that can be locked.
printf '%s\n' '[Service]' LimitMEMLOCK=64K AmbientCapabilities=~CAP_IPC_LOCK CapabilityBoundingSet=~CAP_IPC_LOCK |
    lab tee "/etc/systemd/system/$UNIT.d/zz.conf" >/dev/null
lab systemctl daemon-reload
lab systemctl stop "$UNIT" 2>/dev/null
examine 1 alice
found memory-locked-service
expect_json "$WORK/doctor.json" "any(f['cause'] == 'memory-locked-service' and 'by LimitMEMLOCK= in /etc/systemd/system/$UNIT.d/zz.conf' in f['text'] and not f['commands'] for f in d['findings'])" "the doctor does not name the line, or has a command for it"
lab rm "/etc/systemd/system/$UNIT.d/zz.conf"
lab systemctl daemon-reload
lab systemctl restart "$UNIT"
examine 0 alice
