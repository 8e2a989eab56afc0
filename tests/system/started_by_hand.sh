#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A daemon that root starts by hand gives up what it does not use: capabilities, the way to more, and the system calls
# that the service has not. It executes the file that it runs as its worker, though another has its name since; and
# the worker is the first to be killed when memory runs out. Programs have their names all the same.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "this is about root"

# Its own copy, which is replaced while it runs.
mkdir "$WORK/bin"
cp "$BIN/cpu-profilerd" "$WORK/bin/"
daemon_start "$WORK/bin" "$WORK" || fail "the daemon did not start"
printf '#!/bin/sh\ntouch %q\n' "$WORK/executed" >"$WORK/other"
chmod 755 "$WORK/other"
mv "$WORK/other" "$WORK/bin/cpu-profilerd"

# status FIELD [PID]
status() {
    sed -n "s/^$1:[[:space:]]*//p" "/proc/${2:-$daemon_pid}/status"
}

# Each by its bit: what SECURITY.md lists, and nothing else.
allowed=(2 19 38 40 34)     # DAC_READ_SEARCH SYS_PTRACE PERFMON CHECKPOINT_RESTORE, SYSLOG for the kernel's names
allowed+=(5 6 7 8 18)       # KILL SETGID SETUID SETPCAP SYS_CHROOT for a worker under another uid
setpriv --dump | grep -q 'Capability bounding set:.*sys_resource' || allowed+=(14 23) # IPC_LOCK, SYS_NICE: no limits
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || allowed+=(21)              # SYS_ADMIN
mask=0
for bit in "${allowed[@]}"; do
    mask=$((mask | 1 << bit))
done
for field in CapPrm CapEff CapBnd; do
    [ $((0x$(status "$field") & ~mask)) -eq 0 ] || fail "$field is $(status "$field"), more than $(printf %x "$mask")"
done
[ "$(status CapAmb)" = 0000000000000000 ] || fail "there are ambient capabilities"
[ "$(status NoNewPrivs)" = 1 ] || fail "no_new_privs is not set"
[ "$(status Seccomp)" = 2 ] || fail "there is no system call filter"

# The worker is executed once more, after its file's name was given to another.
worker=$(pgrep -P "$daemon_pid")
[ "$(cat "/proc/$worker/oom_score_adj")" = 1000 ] || fail "the worker's oom_score_adj is $(cat "/proc/$worker/oom_score_adj")"
kill -KILL "$worker"
another_worker() {
    worker=$(pgrep -P "$daemon_pid" -f elf-worker) && [ "$(status CapPrm "$worker")" = 0000000000000000 ]
}
wait_until 10 another_worker || fail "there is no other worker"
[ ! -e "$WORK/executed" ] || fail "the file that has the daemon's name now was executed"
[ "$(cat "/proc/$worker/oom_score_adj")" = 1000 ] || fail "the next worker's oom_score_adj is not 1000"

run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null
profctl record --native -F 999 -d 3 -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
expect_json "$WORK/p.json" "[r for r in d['rows'] if r['name'] == 'spin_three_fifths']" "the busy program has no names"
stop_daemon || exit 1
grep -q "SIGTERM from process $$: the daemon ends" "$WORK/daemon.log" || fail "the log does not say why the daemon ended: $(cat "$WORK/daemon.log")"
[ ! -S "$WORK/control.sock" ] || fail "the socket is left behind"
