#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed service under a systemd of its own: the socket starts it for a member of the group, who records; who is
# no member is told so. What kills it does not keep it down. Recordings on a schedule are those of service_schedule.sh.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab

[ "$(lab stat -c '%U:%G %a' /run/cpu-profilerd/control.sock)" = "root:cpu-profiler 660" ] || fail "the socket has other rights"
[ "$(lab_as alice readlink -f /run/varlink/registry/io.cpuprofilerd.Sampler)" = /run/cpu-profilerd/control.sock ] ||
    fail "varlink's registry does not lead to the socket"

# A user that is no member.
lab_as bob profctl start >"$WORK/bob.out" 2>&1 && fail "bob may record"
grep -q 'not allowed to connect to .*; you are not in the group cpu-profiler: .*usermod -aG cpu-profiler bob # .*then log in again' "$WORK/bob.out" || fail "bob is told: $(cat "$WORK/bob.out")"
[ "$(service_property ActiveState)" = inactive ] || fail "the service runs already"

# A member: a session that goes on without a client.
lab install -m 755 "$WORKLOADS/busy" /usr/bin/
alice profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
[ "$(service_property ActiveState)" = active ] || fail "the socket did not start the service"
alice busy --seconds 1 >"$WORK/truth" || fail "the workload failed"
# A unit that is gone before the recording ends, and one of a user's own manager.
lab systemd-run --quiet --wait --unit=cpt-system busy --seconds 0.5 || fail "systemd-run"
uid=$(lab id -u alice)
lab systemctl start "user@$uid.service" || fail "alice has no manager of her own: $(lab journalctl --no-pager -n 20)"
own_manager() {
    lab_as alice env XDG_RUNTIME_DIR="/run/user/$uid" "$@"
}
own_manager systemd-run --user --quiet --unit=cpt-user busy --seconds 60 || fail "systemd-run --user"
pid=$(own_manager systemctl --user show cpt-user -p MainPID --value)
# The manager makes a process in a group of its own first.
is_in_its_group() {
    lab grep -q cpt-user.service "/proc/$pid/cgroup"
}
has_run_in_it() {
    [ "$(lab awk '{ print $14 + $15 }' "/proc/$pid/stat")" -ge "$due_ticks" ]
}
wait_until 20 is_in_its_group || fail "alice's manager leaves its program in $(lab cat "/proc/$pid/cgroup")"
due_ticks=$(($(lab awk '{ print $14 + $15 }' "/proc/$pid/stat") + 10))
wait_until 20 has_run_in_it || fail "the program of alice's manager hardly runs"
own_manager systemctl --user stop cpt-user || fail "systemctl --user stop"
alice profctl stop >"$WORK/out" || fail "stop: $(cat "$WORK/out")"
alice profctl read --native -o /home/alice/p.fxt >"$WORK/out" || fail "read: $(cat "$WORK/out")"
alice profctl close >"$WORK/out" || fail "close: $(cat "$WORK/out")"
alice profctl report --json -n 0 p.fxt >"$WORK/report.json" || fail "report"
# A fifth of the program's own CPU time at 999 Hz may be the hypervisor's, or without a name yet.
ticks=$(($(truth "$WORK/truth" spin_three_fifths) * 999 / 1000000000))
expect_json "$WORK/report.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'spin_three_fifths') >= $ticks * 4 // 5 > 0" \
    "the workload is not in the recording, $ticks ticks are expected: $(cat "$WORK/report.json")"
alice profctl report --by unit --json -n 0 p.fxt >"$WORK/units.json" || fail "report --by unit"
for unit in "cpt-system.service" "cpt-user.service (user@$uid)"; do
    expect_json "$WORK/units.json" "sum(r['self'] for r in d['rows'] if r['name'] == '$unit') > 20" "$unit has no samples"
done
lab_as bob profctl report /home/alice/p.fxt >"$WORK/out" 2>&1 && fail "bob may read alice's recording"
user=$(lab ps -o user= -p "$(service_property MainPID)")
[ "$user" = cpu-profilerd ] || fail "the daemon runs as '$user'"

# Killed, it comes back, and is there for the next. So it is when it does nothing any more: the watchdog ends it.
expect_return() {
    local pid=$2
    is_back() {
        [ "$(service_property ActiveState)" = active ] && [ "$(service_property MainPID)" != "$pid" ]
    }
    wait_until 15 is_back || fail "$1, it did not come back: $(service_log)"
    alice profctl record --native -F 999 -o p.fxt -- busy --seconds 0.3 >"$WORK/out" 2>&1 || fail "$1, it came back, but: $(cat "$WORK/out")"
}
pid=$(service_property MainPID)
lab kill -KILL "$pid"
expect_return "killed" "$pid"
set_service "${limits[@]}" WatchdogSec=2
alice profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
pid=$(service_property MainPID)
lab kill -STOP "$pid"
expect_return "stopped" "$pid"
service_log | grep -q 'Watchdog timeout' || fail "it was not the watchdog that ended it: $(service_log)"

# Ended during a session, it lets the client read for 5 s what it has; and tells how much was not read.
# end_service: in the background; its status is for wait.
end_service() {
    lab systemctl stop "$UNIT" 2>/dev/null &
}
is_ending() {
    [ "$(service_property ActiveState)" = deactivating ] && alice profctl status --json | grep -q '"state": *"stopped"'
}
set_service "${limits[@]}"
alice profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
alice busy --seconds 1 >/dev/null
end_service
wait_until 5 is_ending || fail "the session is not stopped: $(service_log)"
alice profctl read --native -o last.fxt >"$WORK/out" 2>&1 || fail "nothing can be read from a service that ends: $(cat "$WORK/out")"
wait "$!" || fail "systemctl stop failed"
alice profctl report --json last.fxt >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" 'd["samples"] > 100 and d["samples"] == d["books"]["total"]["kept"]' "what was read last is not whole"
alice profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
alice busy --seconds 1 >/dev/null
began=$SECONDS
end_service
wait "$!" || fail "systemctl stop failed"
[ $((SECONDS - began)) -le $((5 + 3 * PATIENCE)) ] || fail "the service took $((SECONDS - began)) s to end"
service_log | grep -qE 'closed, .*; [1-9][0-9]* samples of it were not read' || fail "it did not tell what was not read: $(service_log)"
[ "$(service_property Result)" = success ] || fail "the service ended with $(service_property Result): $(service_log)"

# It heeds the administrator's config, and ends when it is not needed; the socket starts it again.
echo '{"max_frequency_hz": 100}' | lab tee /etc/cpu-profilerd/daemon.json >/dev/null
set_service "${limits[@]}" ExecStart= "ExecStart=/usr/sbin/cpu-profilerd --idle-exit-s 1"
alice profctl start -F 101 >"$WORK/out" 2>&1 && fail "the config is not heeded"
grep -q 'daemon.json' "$WORK/out" || fail "a refusal does not say why: $(cat "$WORK/out")"
# What the daemon refuses to a user, check refuses in the same words.
echo '{"frequency_hz": 101}' | lab tee /home/alice/fast.json >/dev/null
alice profctl check fast.json >"$WORK/check.out" 2>&1 && fail "check takes what the daemon refuses"
sentence=$(sed -n 's/.*: -F\(: is above .*\)/\1/p' "$WORK/out") # which names what was given
[ -n "$sentence" ] && grep -qF "fast.json: frequency_hz$sentence" "$WORK/check.out" || fail "check says: $(cat "$WORK/check.out"), start: $(cat "$WORK/out")"
is_inactive() {
    [ "$(service_property ActiveState)" = inactive ]
}
wait_until 10 is_inactive || fail "it does not end when it is not needed: $(service_log)"
alice profctl status >"$WORK/out" || fail "it is not started again: $(cat "$WORK/out")"
lab rm /etc/cpu-profilerd/daemon.json
set_service "${limits[@]}"
