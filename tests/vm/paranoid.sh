#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian's own kernels begin with perf_event_paranoid at 3, where CAP_PERFMON is not enough. Root profiles all the same;
# who has CAP_PERFMON alone is told what is missing, and profiles with CAP_SYS_ADMIN or with the sysctl at 2;
# who may not lock memory is told that. Changes sysctls, so it runs in a virtual machine only.
. "${0%/*}/../system/lib.sh"
[ -n "${RESULTS:-}" ] || skip "changes sysctls: run it by scripts/test-vm.sh"
for name in perf_event_paranoid perf_event_max_stack perf_event_mlock_kb perf_event_max_sample_rate perf_cpu_time_max_percent \
    kptr_restrict dmesg_restrict yama/ptrace_scope; do
    echo "kernel.$name $(cat "/proc/sys/kernel/$name" 2>/dev/null || echo none)"
done
echo "RLIMIT_MEMLOCK $(ulimit -l) KiB, RLIMIT_NOFILE $(ulimit -n)"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 3 ] || fail "perf_event_paranoid is not Debian's default"
use_build release

start_daemon
profctl record -F 99 -d 1 -o "$WORK/root.fxt" >"$WORK/root.out" 2>&1 || fail "root cannot record: $(cat "$WORK/root.out")"
expect_json <(profctl report --json "$WORK/root.fxt") 'd["samples"] > 0' "root's recording is empty"
stop_daemon || exit 1

# record_with CAPABILITIES: the daemon as a user who has these alone; the status of profctl, its words in $WORK/with.out.
record_with() {
    local caps=$1 folder status=0
    folder=$(mktemp -d /tmp/with.XXXXXX)
    chown nobody "$folder"
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="-all,$caps" --ambient-caps="-all,$caps" \
        --bounding-set="-all,$caps" "$BIN/cpu-profilerd" --socket "$folder/control.sock" >"$folder/daemon.log" 2>&1 &
    local pid=$!
    wait_until 10 test -S "$folder/control.sock" || fail "no daemon with $caps: $(cat "$folder/daemon.log")"
    setpriv --reuid=65534 --regid=65534 --clear-groups "$BIN/profctl" record --socket "$folder/control.sock" -F 99 -d 1 \
        -o "$folder/p.fxt" >"$WORK/with.out" 2>&1 || status=$?
    kill "$pid"
    wait "$pid" || fail "the daemon with $caps ended with status $?"
    echo "with $caps: status $status: $(head -n 3 "$WORK/with.out")"
    grep -v listening "$folder/daemon.log" | sed 's/^/    /'
    return "$status"
}

record_with +perfmon,+ipc_lock && fail "CAP_PERFMON alone is enough at 3"
grep -q 'perf_event_paranoid is 3' "$WORK/with.out" && grep -q 'CAP_SYS_ADMIN' "$WORK/with.out" ||
    fail "what is missing is not said: $(cat "$WORK/with.out")"
record_with +sys_admin,+ipc_lock || fail "CAP_SYS_ADMIN is not enough at 3"
echo 2 >/proc/sys/kernel/perf_event_paranoid
record_with +perfmon,+ipc_lock || fail "CAP_PERFMON is not enough at 2"
record_with +perfmon && fail "8 MiB of locked memory are enough"
grep -q 'RLIMIT_MEMLOCK' "$WORK/with.out" || fail "what is missing is not said: $(cat "$WORK/with.out")"
exit 0
