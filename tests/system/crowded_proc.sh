#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user's 100 processes with 60,000 mappings each take seconds to read, and all of them are sampled from the first
# moment on. A program of another user that was there before and wakes then is read all the same before its samples have
# waited too long: the account that has had least of the readers' time is next.
#
# Of the victim's CPU time T at 1000 Hz nine tenths are found under its name: its ticks have a standard deviation of at
# most sqrt(n)/2, which for n = 400 is a fourth of what nine tenths leave room for.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "other users' programs need root"
use_build release
chmod 711 "$WORK"
cp "$WORKLOADS/map_hoard" "$WORK"
cp "$WORKLOADS/busy" "$WORK/woken"
mkdir "$WORK/hoard"
chown 4711:4711 "$WORK/hoard"
run_in_background nice -n 10 setpriv --reuid=4711 --regid=4711 --clear-groups "$WORK/map_hoard" "$WORK/hoard/code" 60000 100 200 \
    >"$WORK/hoard.out" 2>&1
wait_until 60 grep -q '^ready' "$WORK/hoard.out" || fail "the hoard is not there: $(cat "$WORK/hoard.out")"
run_in_background setpriv --reuid=4712 --regid=4712 --clear-groups "$WORK/woken" --seconds 100 >/dev/null
victim=$BACKGROUND_PID
wait_until 10 grep -qx woken "/proc/$victim/comm" || fail "the victim does not run"
kill -STOP "$victim"

# cpu_ticks: of the victim, 100 in a second.
cpu_ticks() {
    awk '{ print $14 + $15 }' "/proc/$victim/stat"
}

start_daemon
before=$(cpu_ticks)
run_in_background profctl record --native --no-kernel -F 1000 -a -o "$WORK/p.fxt" >"$WORK/out" 2>&1
record_pid=$BACKGROUND_PID
wait_until 20 session_runs || fail "nothing is recorded: $(cat "$WORK/out")"
sleep 0.5
kill -CONT "$victim"
sleep 2
wait_until 60 have_run "$victim=600" || fail "the victim hardly runs, so this shows nothing"
kill -STOP "$victim"
ticks=$(($(cpu_ticks) - before))
sleep 1
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/out")"
kill -CONT "$victim"
profctl report --json -n 0 --by process "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
found=$(json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'].startswith('woken'))")
unknown=$(json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if 'unknown' in r['name'])")
echo "the victim ran for $ticks ticks of 10 ms and has $found samples; $unknown have no name"
[ "$found" -ge $((ticks * 9)) ] || fail "the victim's process was read too late"
