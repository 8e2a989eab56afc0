#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed service under a systemd of its own: the socket starts it for a member of the group, who records; who is
# no member is told so. What kills it does not keep it down. Recordings on a schedule and at boot are made and rotated.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab

# alice COMMAND...: in her home.
alice() {
    # shellcheck disable=SC2016 # for the shell inside
    lab_as alice sh -c 'cd /home/alice && exec "$@"' sh "$@"
}

lab systemctl start cpu-profilerd.socket || fail "the socket does not start"
[ "$(lab stat -c '%U:%G %a' /run/cpu-profilerd/control.sock)" = "root:cpu-profiler 660" ] || fail "the socket has other rights"

# Who is no member.
lab_as bob profctl start >"$WORK/bob.out" 2>&1 && fail "bob may record"
grep -q "not allowed to connect to .* join the group 'cpu-profiler'" "$WORK/bob.out" || fail "bob is told: $(cat "$WORK/bob.out")"
[ "$(service_property ActiveState)" = inactive ] || fail "the service runs already"

# Who is one: a session that goes on without a client.
lab install -m 755 "$WORKLOADS/busy" /usr/bin/
alice profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
[ "$(service_property ActiveState)" = active ] || fail "the socket did not start the service"
alice busy --seconds 1 >"$WORK/truth" || fail "the workload failed"
alice profctl stop >"$WORK/out" || fail "stop: $(cat "$WORK/out")"
alice profctl read -o /home/alice/p.fxt >"$WORK/out" || fail "read: $(cat "$WORK/out")"
alice profctl close >"$WORK/out" || fail "close: $(cat "$WORK/out")"
alice profctl report --json -n 0 p.fxt >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" 'sum(r["self"] for r in d["rows"] if r["name"] == "spin_three_fifths") > 100' "the workload is not in the recording"
lab_as bob profctl report /home/alice/p.fxt >"$WORK/out" 2>&1 && fail "bob may read alice's recording"
user=$(lab ps -o user= -p "$(service_property MainPID)")
[ "$user" = cpu-profilerd ] || fail "the daemon runs as '$user'"

# Killed, it comes back, and is there for the next.
pid=$(service_property MainPID)
lab kill -KILL "$pid"
is_back() {
    [ "$(service_property ActiveState)" = active ] && [ "$(service_property MainPID)" != "$pid" ]
}
wait_until 10 is_back || fail "it did not come back: $(service_log)"
alice profctl record -F 99 -d 0.5 -o p.fxt >"$WORK/out" 2>&1 || fail "after its return: $(cat "$WORK/out")"

# A recording by a named config, and the rotation: of 26 recordings the newest 24 are left.
recorder=cpu-profilerd-record@hourly.service
echo '{"frequency_hz": 99, "max_duration_s": 1}' | lab tee /etc/cpu-profilerd/record/hourly.json >/dev/null
lab systemctl start "$recorder" || fail "the recording does not start"
recording_ended() {
    [[ $(lab systemctl show "$1" -p ActiveState --value) =~ ^(inactive|failed)$ ]]
}
wait_until 10 recording_ended "$recorder" || fail "the recording does not end"
[ "$(lab systemctl show "$recorder" -p Result --value)" = success ] || fail "the recording failed: $(lab journalctl --no-pager -u "$recorder")"
folder=/var/lib/cpu-profilerd/hourly
lab sh -c "ls $folder" >"$WORK/recordings"
[ "$(wc -l <"$WORK/recordings")" -eq 1 ] || fail "there is not one recording: $(cat "$WORK/recordings")"
alice profctl report "$folder/$(cat "$WORK/recordings")" >"$WORK/out" || fail "a member cannot read the recording"
lab_as bob ls "$folder" 2>/dev/null && fail "who is no member sees the recordings"
lab sh -c "for i in \$(seq 10 34); do install -o cpu-profilerd-record /dev/null $folder/hourly-20200101T0000\${i}Z.fxt.gz; done"
lab systemctl start "$recorder" && wait_until 10 recording_ended "$recorder" || fail "the second recording"
lab sh -c "ls $folder" >"$WORK/rotated"
[ "$(wc -l <"$WORK/rotated")" -eq 24 ] || fail "24 are kept, not: $(cat "$WORK/rotated")"
[ "$(grep -c -v 2020 "$WORK/rotated")" -eq 2 ] || fail "the newest are not kept: $(cat "$WORK/rotated")"
lab systemctl start cpu-profilerd-record@hourly.timer || fail "the timer does not start"
lab systemctl list-timers --no-pager | grep -q "$recorder" || fail "the timer starts nothing"
lab systemctl stop "$UNIT" || fail "the service does not stop"
[ "$(service_property Result)" = success ] || fail "the service ended with $(service_property Result): $(service_log)"
