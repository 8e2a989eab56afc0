#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The daemon where its memory is limited. In a control group, as a service manager makes one, a session that asks for
# more than there is, and is not read, fills what it gets and counts what it drops; nothing is killed. Where the limit
# comes down during a session (prlimit), it goes on as well. Either way the next session is whole.
. "${0%/*}/lib.sh"
. "${0%/*}/memory_group.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "setting limits takes root"

limit_mib=64
make_memory_group memory-limit
echo $((limit_mib << 20)) >"$memory_group_limit"

# Deep stacks, each another one, so that samples are large. A nice one: the daemon's clients go before it.
run_in_background nice -n 10 "$WORKLOADS/round_hog" stacks 280 100 >/dev/null
deep=$BACKGROUND_PID

program_runs() {
    program=$(pgrep -P "$recorder" -x "$1")
}
expect_whole() {
    cp "$WORKLOADS/busy" "$WORK/busy_$1" # which no session has seen
    run_in_background profctl record --native --no-kernel -F 999 -o "$WORK/p.fxt" -- "$WORK/busy_$1" --seconds 280 >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 20 program_runs "busy_$1" || fail "$1: the next session does not begin: $(cat "$WORK/out")"
    expect_run 300 "$program" # 300 ticks, however little of the CPUs the rest of the machine leaves to it
    kill -KILL "$program"
    wait "$recorder"
    [ $? -eq 137 ] || fail "$1: the next session: $(cat "$WORK/out")"
    profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/report.json" || fail "$1: report"
    expect_json "$WORK/report.json" 'd["samples"] > 100 and d["books"]["total"]["dropped"] == 0 and
        sum(r["self"] for r in d["rows"] if "fifths" in r["name"]) > 0.9 * d["samples"]' "$1: the next session is not whole"
}

expect_books() {
    expect_json "$1" 'all(c["received"] == c["kept"] + c["filtered"] + c["dropped"]
        for s in [d["status"] if "status" in d else d] for c in [s["session"]["books"]["total"], *s["session"]["books"]["cpus"]])' \
        "the books do not add up"
}

start_daemon_in_memory_group
echo '{"frequency_hz": 20000, "unwind": "fp", "buffer_kib_per_cpu": 1048576, "max_duration_s": 60}' >"$WORK/large.json"
profctl start --config "$WORK/large.json" >"$WORK/out" || fail "start: $(cat "$WORK/out")"
grep -q "instead of 1048576: of the $limit_mib MiB that the daemon may use the buffers of all CPUs take at most $(((limit_mib - 32) / 2))\$" "$WORK/daemon.log" || fail "the log does not say that the buffers are smaller"
is_full() {
    sleep 0.5
    profctl status --json >"$WORK/status.json" || fail "the daemon does not answer"
    [ "$(json "$WORK/status.json" 'd["session"]["books"]["total"]["dropped"] > 1000')" = true ]
}
wait_until 50 is_full || fail "the buffers are never full, so nothing is proved: $(cat "$WORK/status.json")"
json "$WORK/status.json" '"%d MiB of buffers are full: %s" % (d["session"]["buffer_bytes"] >> 20, d["session"]["books"]["total"])'
grep -h "^Rss" "/proc/$daemon_pid/status"
kill -STOP "$deep" # until there is another session of it
profctl stop >"$WORK/out" || fail "stop: $(cat "$WORK/out")"
profctl status --json >"$WORK/status.json" || fail "status"
expect_books "$WORK/status.json"
profctl read --native -o "$WORK/full.fxt" >"$WORK/out" || fail "read: $(cat "$WORK/out")"
profctl close >"$WORK/out" || fail "close"
profctl report --json "$WORK/full.fxt" >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" 'd["samples"] == d["books"]["total"]["kept"]' "what was kept is not in the recording"
expect_whole group
kill -0 "$daemon_pid" || fail "the daemon was killed"
stop_daemon || exit 1

# What is mapped and allocated may not grow any more, while a session meets programs that it has not seen: a client
# that asks then is answered or cut off. When it may grow again, all is as it was.
# limit_data BYTES: of the daemon, its soft limit.
limit_data() {
    prlimit --pid "$daemon_pid" --data="$1": || fail "no limit can be set"
}
data_bytes() {
    echo $(($(awk '/^VmData:/ { print $2 }' "/proc/$daemon_pid/status") * 1024))
}
start_daemon
kill -CONT "$deep"
profctl start -F 999 >"$WORK/out" || fail "start: $(cat "$WORK/out")"
limit_data "$(data_bytes)"
for ((i = 0; i < 30; i++)); do
    cp "$WORKLOADS/brief" "$WORK/brief_$i"
    "$WORK/brief_$i" --seconds 0.05 >/dev/null
    rm "$WORK/brief_$i"
    profctl status >"$WORK/out" 2>&1
done
limit_data unlimited
profctl stop >"$WORK/out" || fail "stop: $(cat "$WORK/out")"
stop_background
profctl status --json >"$WORK/status.json" || fail "status"
expect_books "$WORK/status.json"
profctl read --native -o "$WORK/short.fxt" >"$WORK/out" || fail "read: $(cat "$WORK/out")"
profctl close >"$WORK/out" || fail "close: $(cat "$WORK/out")"
profctl report --json -n 0 "$WORK/short.fxt" >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" 'd["samples"] > 500 and d["samples"] == d["books"]["total"]["kept"]' "what was recorded is not whole"
limit_data $(($(data_bytes) + (64 << 20)))
echo '{"buffer_kib_per_cpu": 1048576}' >"$WORK/large.json"
profctl start --config "$WORK/large.json" >"$WORK/out" 2>&1 && fail "there is memory"
grep -q 'the session cannot be set up: ' "$WORK/out" || fail "without memory start says: $(cat "$WORK/out")"
limit_data unlimited
expect_whole prlimit
stop_daemon || exit 1
