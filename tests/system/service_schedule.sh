#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Recordings of the installed service on a schedule and at boot, under a systemd of its own: they are made by named
# configs, tried again, and rotated.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab "echo '{\"frequency_hz\": 999, \"max_duration_s\": 1}' >/etc/cpu-profilerd/record/boot.json
systemctl enable cpu-profilerd-record@boot.service"

# The boot was recorded, from before basic.target was reached; then the daemon ends, for the next client to start it.
recording_ended() {
    [[ $(lab systemctl show "$1" -p ActiveState --value) =~ ^(inactive|failed)$ ]]
}
boot=cpu-profilerd-record@boot.service
wait_until 20 recording_ended "$boot" || fail "the recording of the boot does not end"
lab sh -c 'profctl report --json -n 0 /var/lib/cpu-profilerd/boot/boot-*.fxt.gz' >"$WORK/report.json" ||
    fail "the boot was not recorded: $(lab journalctl --no-pager)"
expect_json "$WORK/report.json" 'd["samples"] > 100' "nothing was recorded of the boot"
[ "$(lab systemctl show "$boot" -p ExecMainStartTimestampMonotonic --value)" -lt \
    "$(lab systemctl show basic.target -p ActiveEnterTimestampMonotonic --value)" ] || fail "the recording began after basic.target"
lab systemctl stop "$UNIT" 2>/dev/null || fail "the service does not stop"

# A recording by a named config, and the rotation: of 26 recordings the newest 24 are left.
recorder=cpu-profilerd-record@hourly.service
echo '{"frequency_hz": 99, "max_duration_s": 1}' | lab tee /etc/cpu-profilerd/record/hourly.json >/dev/null
# So that there is something to record.
lab install -m 755 "$WORKLOADS/busy" /usr/bin/
alice busy --seconds 60 >/dev/null &
background_pids+=($!)
lab systemctl start "$recorder" || fail "the recording does not start"
wait_until 20 recording_ended "$recorder" || fail "the recording does not end"
[ "$(lab systemctl show "$recorder" -p Result --value)" = success ] || fail "the recording failed: $(lab journalctl --no-pager -u "$recorder")"
folder=/var/lib/cpu-profilerd/hourly
# One that meets another recording is tried again, and one without an end is not begun.
lab sh -c "mkdir -p /etc/systemd/system/$recorder.d; printf '[Unit]\nStartLimitBurst=1000\n[Service]\nRestartSec=1\n' >/etc/systemd/system/$recorder.d/soon.conf; systemctl daemon-reload"
is_tried_again() {
    [ "$(lab systemctl show "$recorder" -p NRestarts --value)" -ge 1 ]
}
lab rm -r $folder
alice profctl start -F 99 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
lab systemctl start "$recorder" || fail "the recording does not start"
wait_until 20 is_tried_again || fail "a recording that meets another is not tried again: $(lab journalctl --no-pager -u "$recorder")"
alice profctl close >"$WORK/out" || fail "close: $(cat "$WORK/out")"
wait_until 20 recording_ended "$recorder" || fail "the recording that was tried again does not end"
[ "$(lab systemctl show "$recorder" -p Result --value)" = success ] || fail "no try succeeds: $(lab journalctl --no-pager -u "$recorder")"
lab sh -c "mv /etc/cpu-profilerd/record/hourly.json /root/; echo '{}' >/etc/cpu-profilerd/record/hourly.json"
lab systemctl start "$recorder" 2>/dev/null # fails where the program has ended before systemd sees that it began
wait_until 20 recording_ended "$recorder" || fail "a recording without an end was begun, or is tried again"
lab journalctl --no-pager -u "$recorder" | grep -q 'max_duration_s is missing' || fail "it is not said that an end is missing"
lab sh -c "mv /root/hourly.json /etc/cpu-profilerd/record/"
lab sh -c "ls $folder" >"$WORK/recordings"
[ "$(wc -l <"$WORK/recordings")" -eq 1 ] || fail "there is not one recording: $(cat "$WORK/recordings")"
alice profctl report "$folder/$(cat "$WORK/recordings")" >"$WORK/out" || fail "a member cannot read the recording"
lab_as bob ls "$folder" 2>/dev/null && fail "a user that is no member sees the recordings"
lab sh -c "for i in \$(seq 10 34); do install -o cpu-profilerd-record /dev/null $folder/hourly-20200101T0000\${i}Z.fxt.gz; done"
lab systemctl start "$recorder" && wait_until 20 recording_ended "$recorder" || fail "the second recording"
lab sh -c "ls $folder" >"$WORK/rotated"
[ "$(wc -l <"$WORK/rotated")" -eq 24 ] || fail "24 are kept, not: $(cat "$WORK/rotated")"
[ "$(grep -c -v 2020 "$WORK/rotated")" -eq 2 ] || fail "the newest are not kept: $(cat "$WORK/rotated")"
# One whose targets do not run makes none, which is no failure.
lab sh -c "echo '{\"max_duration_s\": 1, \"targets\": {\"comms\": [\"no-such-name\"]}}' >/etc/cpu-profilerd/record/hourly.json"
lab systemctl start "$recorder" && wait_until 20 recording_ended "$recorder" || fail "a recording without targets is tried again"
[ "$(lab systemctl show "$recorder" -p Result --value)" = success ] || fail "a recording without targets is a failure: $(lab journalctl --no-pager -u "$recorder")"
lab journalctl --no-pager -u "$recorder" | grep -q 'hourly.json asks for has run; nothing was recorded' || fail "it is not said that nothing was recorded"
lab sh -c "ls $folder" | cmp - "$WORK/rotated" || fail "a recording without targets is there"
lab systemctl start cpu-profilerd-record@hourly.timer || fail "the timer does not start"
lab systemctl list-timers --no-pager | grep -q "$recorder" || fail "the timer starts nothing"
