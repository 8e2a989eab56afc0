#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed service on Debian's own kernel, with its sysctls, where every limit of the unit holds: at
# perf_event_paranoid 3 it refuses, and says why; with the sysctl that is installed a member of the group records.
# Changes sysctls, so it runs in a virtual machine only.
. "${0%/*}/../system/lib.sh"
. "${0%/*}/../system/service_lib.sh"
[ -n "${RESULTS:-}" ] || skip "changes sysctls: run it by scripts/test-vm.sh"
[ -z "$LIMITS" ] || fail "root may not raise limits here"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 3 ] || fail "perf_event_paranoid is not Debian's default"
use_build release
require_lab
start_service_lab
lab_as alice profctl start -F 99 >"$WORK/out" 2>&1 && fail "CAP_PERFMON alone is enough at 3"
grep -q 'perf_event_paranoid is 3' "$WORK/out" || fail "what is missing is not said: $(cat "$WORK/out")"

# The limits are in force.
pid=$(service_property MainPID)
lab grep -q '^Max locked memory *unlimited' "/proc/$pid/limits" || fail "memory to lock is limited"
half_bytes=$(($(awk '/^MemTotal:/ { print $2 }' /proc/meminfo) * 512))
max_bytes=$(lab cat "/sys/fs/cgroup/system.slice/$UNIT/memory.max")
[ "$max_bytes" -gt $((half_bytes - 1048576)) ] && [ "$max_bytes" -le $((half_bytes + 1048576)) ] ||
    fail "memory.max is $max_bytes, and half the machine $half_bytes"
lab_stop

sysctl -q -p "$SOURCE_DIR/systemd/sysctl.conf" || fail "the sysctl cannot be set"
rm -r "$WORK/lab"
start_service_lab
lab_as alice profctl start -F 99 >"$WORK/out" 2>&1 || fail "with the sysctl: $(cat "$WORK/out")"
pid=$(service_property MainPID)
# shellcheck disable=SC2016 # for the shell inside
lab sh -c 'for task in /proc/$1/task/*; do echo "$(cat "$task/comm") $(chrt -p "${task##*/}" | head -n 1)"; done' sh "$pid" >"$WORK/threads"
grep -q '^collector .*SCHED_RR' "$WORK/threads" || fail "the collector does not go first: $(cat "$WORK/threads")"
lab_as alice "$WORKLOADS/busy" --seconds 3 >"$WORK/out" || fail "the workload"
for verb in stop "read -o /home/alice/p.fxt" close; do
    # shellcheck disable=SC2086
    lab_as alice profctl $verb >"$WORK/out" 2>&1 || fail "$verb: $(cat "$WORK/out")"
done
lab_as alice profctl report --json -n 0 /home/alice/p.fxt >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" '[r for r in d["rows"] if r["name"] == "spin_three_fifths" and r["self"] > 10]' "the workload is not in the recording"
