#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What threads wait for. Programs that sleep, wait for another process, for a mutex, for a disk, or for a CPU that they
# share measure that themselves: the waits of a recording are as long, in the function that waits, and the books of each
# thread close, by the scheduler's own sums where the thread lives at the end, else by switch records. The clock's books
# close as without waits; a recording without waits says nothing of any. What takes much of the CPUs runs alone; the rest,
# which mostly sleeps, at one time, with a daemon each.
. "${0%/*}/lib.sh"
require_perf
use_build release

echo '{"off_cpu": {"max_cost_percent": 100}}' >"$WORK/all.json" # whatever else runs, each switch is sampled
# judge SOURCE KIND...: what each of the programs measured, against the recording.
judge() {
    profctl dump --json "$WORK/p.fxt" >"$WORK/dump" || fail "dump"
    python3 "$SOURCE_DIR/tests/system/off_cpu.py" "$1" "$WORK/dump" "$WORK" "${@:2}" 2>"$WORK/err" ||
        fail "${*:2}, by $1: $(tail -n 2 "$WORK/err" | tr '\n' ' ')"
}
# has_told COUNT: so many threads have told what they measured, and stand still.
has_told() {
    [ "$(cat "$WORK"/*.truth 2>/dev/null | grep -c '^thread')" -ge "$1" ]
}
# sleeps: the process that was started last, by where the kernel itself says that it is.
sleeps() {
    wchan=$(cat "/proc/$BACKGROUND_PID/wchan") && [ "${wchan:-0}" != 0 ]
}

# hasty SECONDS CONFIG: two threads that hand a byte to and fro 100,000 times a second and more.
hasty() {
    echo "$2" >"$WORK/hasty.json"
    profctl record --native --config "$WORK/hasty.json" -o "$WORK/h.fxt" -- "$WORKLOADS/ping_pong" "$1" >/dev/null 2>"$WORK/out" ||
        fail "record: $(cat "$WORK/out")"
    grep '^off-cpu' "$WORK/out"
    profctl dump --json "$WORK/h.fxt" | grep '"cpu-profilerd.books"' >"$WORK/books.json"
}
waits="d['value']['events'][0]['total']"

play_hasty() {
    start_daemon
    echo "== more than may be recorded"
    hasty 1 '{"off_cpu": {"max_cost_percent": 1}}'
    expect_json "$WORK/books.json" "${waits}['held_back_ns'] > 0 and ${waits}['lost'] > 0" "nothing is held back"

    echo "== some stand for others"
    stop_daemon || fail "the daemon"
    echo '{"max_event_rate_hz": 1000}' >"$WORK/daemon.json"
    start_daemon --config "$WORK/daemon.json"
    hasty 3 '{"off_cpu": {"max_cost_percent": 100}}'
    # 1,000 a second of a CPU for four seconds, and all of the first two spans of 0.2 s, in which the rate is not known.
    expect_json "$WORK/books.json" \
        "${waits}['received'] < 4000 * len(d['value']['cpus']) + (${waits}['received'] + ${waits}['not_sampled']) / 5 and ${waits}['not_sampled'] > 0" \
        "too many are sampled"
    expect_json "$WORK/books.json" "0 < ${waits}['standard_error_ns'] and abs(${waits}['unexplained']) < 3 * ${waits}['error_95_ns']" \
        "the sum is further off than it is said to be"
    stop_daemon || fail "the daemon"
}

play_living() {
    start_daemon
    echo "== threads that live at the end, by schedstat"
    # All kinds at one time: each thread is judged by what it measured itself, whatever runs beside it. They have begun after
    # the recording, which ends when their ten threads have told.
    kinds=(nap pipe lock share disk)
    # shellcheck disable=SC2016 # for the shell inside
    run_in_background profctl record --native --config "$WORK/all.json" -o "$WORK/p.fxt" -- \
        bash -c 'for kind in "${@:3}"; do "$1" "$kind" 3 "$2/file" >"$2/$kind.truth" & done; wait' kinds "$WORKLOADS/known_waits" "$WORK" "${kinds[@]}" \
        >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 60 has_told 10 || fail "the programs tell nothing: $(cat "$WORK/out")"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat "$WORK/out")"
    # They stand still, so that they live when the recording ends.
    awk '$1 == "thread" { print $3 }' "$WORK"/*.truth | sort -u | xargs -r kill -KILL 2>/dev/null
    judge schedstat "${kinds[@]}"
    # What sleeps is where the kernel itself says that a sleeping process is.
    run_in_background sleep 300
    wait_until 20 sleeps || fail "the kernel does not say where a process sleeps"
    profctl report --json -n 0 --event off-cpu "$WORK/p.fxt" >"$WORK/report.json" || fail "report"
    expect_json "$WORK/report.json" "any(r['name'] == '$wchan' and r['self'] > 0 for r in d['rows'])" "no wait is in $wchan, as a sleep is"
    expect_json "$WORK/report.json" "not any(r['self'] > 0 and r['name'] in ('__schedule', 'schedule', 'do_nanosleep') for r in d['rows'])" \
        "waits are the scheduler's"
    stop_background
    stop_daemon || fail "the daemon"
}

play_ended() {
    echo "== threads that have ended, by switches"
    profctl record --native --config "$WORK/all.json" -o "$WORK/p.fxt" -- "$WORKLOADS/known_waits" lock 3 --exit >"$WORK/lock.truth" 2>"$WORK/out" ||
        fail "record: $(cat "$WORK/out")"
    judge switches lock

    grep '"cpu-profilerd.books"' "$WORK/dump" >"$WORK/books.json"
    # But for what the hypervisor took, of which no tick is known.
    expect_json "$WORK/books.json" "all(abs(c['unexplained']) <= max(c['expected'] / 1000, 2) + c['steal_ns'] / d['value']['period_ns'] for c in d['value']['cpus'])" \
        "the clock's books do not close"
    expect_json "$WORK/books.json" "d['value']['total']['idle'] == 0 or d['value']['idle_source'] == 'switches'" "idleness is of others"

    echo "== the times of threads"
    # What the lines say, which were judged above, is what report says; a sentence has the sum.
    profctl report --threads -n 0 --json "$WORK/p.fxt" >"$WORK/threads.json" || fail "report --threads"
    profctl report "$WORK/p.fxt" | tr '\n' ' ' >"$WORK/report" || fail "report"
    python3 - "$WORK" "$SOURCE_DIR" <<'EOF' || fail "the times of threads"
import json, re, sys
import jsonschema
times = ("wall_ns", "running_ns", "waiting_ns", "blocked_ns", "unexplained_ns")
members = ("pid", "tid", "name", *times, "voluntary", "involuntary", "source")
lines = [json.loads(text) for text in open(f"{sys.argv[1]}/dump", encoding="utf-8")]
lines = [line["value"] for line in lines if line["record"] == "data" and line["name"] == "cpu-profilerd.threads"]
told = json.load(open(f"{sys.argv[1]}/threads.json", encoding="utf-8"))
jsonschema.Draft202012Validator(json.load(open(f"{sys.argv[2]}/docs/report.schema.json", encoding="utf-8"))).validate(told)
assert sorted(tuple(line[m] for m in members) for line in lines) == sorted(tuple(line[m] for m in members) for line in told["threads"])
active = [line["running_ns"] + line["waiting_ns"] for line in told["threads"]]
assert active == sorted(active, reverse=True) and told["thread_count"] == len(lines) > 1
assert {line["process"] for line in told["threads"]} == {"known_waits"}, told["threads"]
sums = {name: sum(line[name] for line in lines) for name in times}
assert {name: told["summary"]["threads"][name] for name in times} == sums
said = re.search(r"Time of (\d+) threads: running ([\d.]+) s \([\d.]+ %\), ready ([\d.]+) s \([\d.]+ %\), blocked ([\d.]+) s \(([\d.]+) %\)",
                 open(f"{sys.argv[1]}/report", encoding="utf-8").read())
assert int(said[1]) == len(lines)
for text, name in zip(said.groups()[1:4], ("running_ns", "waiting_ns", "blocked_ns")):
    assert abs(float(text) - sums[name] / 1e9) <= 0.0006, (text, name, sums)
assert abs(float(said[5]) - 100 * sums["blocked_ns"] / sums["wall_ns"]) <= 0.06
EOF
    grep -q "profctl report --event \(off-cpu\|preempted\) $WORK/p.fxt shows where" "$WORK/report" || fail "the report does not say where waits are"
    tid=$(python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['threads'][0]['tid'])" "$WORK/threads.json")
    profctl report --threads -t "$tid" --json "$WORK/p.fxt" >"$WORK/one.json" || fail "report --threads -t"
    expect_json "$WORK/one.json" "[t['tid'] for t in d['threads']] == [$tid] and d['summary']['threads']['count'] == 1" "one thread is not one"
    profctl report --from 1 "$WORK/p.fxt" | grep -q '^Time of' && fail "the time of a part of the recording is said to be of threads"
}

play_machine() {
    echo "== the whole machine"
    ls -d /proc/[0-9]*/task/* >"$WORK/before" 2>/dev/null || true # some end meanwhile
    profctl start --wall -F 99 >/dev/null || fail "start"
    sleep 1
    profctl stop >/dev/null || fail "stop"
    profctl read -o "$WORK/m.fxt" >"$WORK/out" || fail "read"
    grep -q "profctl report --event off-cpu $WORK/m.fxt shows what threads waited for" "$WORK/out" || fail "read does not lead to the waits: $(cat "$WORK/out")"
    profctl close || fail "close"
    profctl dump --json "$WORK/m.fxt" >"$WORK/dump" || fail "dump"
    python3 - "$WORK/dump" "$WORK/before" "$daemon_pid" <<'EOF' || fail "threads of the machine"
import json, os, sys
lines = {}
for text in open(sys.argv[1], encoding="utf-8"):
    record = json.loads(text)
    if record["record"] == "data" and record["name"] == "cpu-profilerd.threads":
        lines[record["value"]["tid"]] = record["value"]
    elif record["record"] == "data" and record["name"] == "cpu-profilerd.books":
        made_ns = int(record["value"]["at_boot_ns"])
def is_recorded(path):
    try:
        status = open(path + "/status", encoding="utf-8").read().split()
    except OSError:
        return False
    # The daemon records neither itself nor its worker.
    return status[status.index("State:") + 1] != "Z" and sys.argv[3] not in (status[status.index(t) + 1] for t in ("Tgid:", "PPid:"))
there = {int(os.path.basename(path)) for path in open(sys.argv[2], encoding="utf-8").read().split() if is_recorded(path)}
known = there & set(lines)
print(f"{len(lines)} threads, {len(known)} of the {len(there)} that were there before and are now; "
      f"{sum(1 for l in lines.values() if l['blocked_ns'] == l['wall_ns'])} were blocked throughout")
assert 1 in lines and known == there, there - known
assert any(l["blocked_ns"] == l["wall_ns"] for l in lines.values())
# Of a thread that lives on, all time to the stop is told, and no other has more; no term is more than its time.
ends = {tid: int(line["boot_ts_ns"]) + line["wall_ns"] for tid, line in lines.items()}
assert {ends[tid] for tid in known} == {max(ends.values())} and max(ends.values()) <= made_ns, ends
for line in lines.values():
    assert max(line[t] for t in ("running_ns", "waiting_ns", "blocked_ns")) <= line["wall_ns"] + 20_000_000, line
EOF

    echo "== waits that had begun before"
    profctl record --native --wall --kernel -a -d 0.5 -o "$WORK/early.fxt" >"$WORK/record.out" 2>&1 || fail "record waits of the machine"
    grep -q 'threads running_ms   ready_ms  blocked_ms unexplained' "$WORK/record.out" || fail "the table of processes: $(cat "$WORK/record.out")"
    profctl report --event off-cpu "$WORK/early.fxt" | tr -s '\n ' ' ' >"$WORK/report" || fail "report"
    grep -q 'of no stack that is known, as where a wait had begun' "$WORK/report" || fail "the report does not say why stacks are missing: $(cat "$WORK/report")"
    grep -q 'whose functions were not recorded' "$WORK/report" && fail "the report says that they were not recorded"

    # A process that hangs has one wait, and nothing else.
    run_in_background sleep 300
    wait_until 20 sleeps || fail "it does not sleep"
    profctl record --native --wall -d 0.3 -p "$BACKGROUND_PID" -o "$WORK/hung.fxt" >/dev/null 2>&1 || fail "record what hangs"
    profctl report --event off-cpu "$WORK/hung.fxt" | tr -s '\n ' ' ' >"$WORK/report" || fail "report"
    grep -q '100.0 % of the blocked time was of no stack that is known, as where a wait had begun' "$WORK/report" || fail "a process that hangs: $(cat "$WORK/report")"
}

play_short() {
    echo "== waits that are too short"
    profctl record --native --config "$WORK/all.json" --min-wait 10s -o "$WORK/short.fxt" -- "$WORKLOADS/known_waits" nap 1 --exit >/dev/null 2>"$WORK/out" ||
        fail "record: $(cat "$WORK/out")"
    profctl record --native --config "$WORK/all.json" -o "$WORK/long.fxt" -- "$WORKLOADS/known_waits" nap 1 --exit >/dev/null 2>"$WORK/out" ||
        fail "record: $(cat "$WORK/out")"
    for length in short long; do
        profctl report --event off-cpu "$WORK/$length.fxt" 2>"$WORK/err" | tr '\n' ' ' >"$WORK/$length"
        grep -q 'threads: the [0-9]* shown were blocked for \(at least \)\?[0-9.]* s and ready for \(at least \)\?[0-9.]* s\(, exactly\| ([0-9.]* s of their time is unexplained[^)]*)\)\?; these samples' "$WORK/$length" ||
            fail "the sums of the threads are not said: $(cat "$WORK/$length" "$WORK/err")"
    done
    grep -q 'shorter than min_wait_us (--min-wait) have no sample' "$WORK/short" || fail "short waits are not the cause: $(cat "$WORK/short")"
    grep -q 'min_wait_us' "$WORK/long" && fail "no wait is too short"

    echo "== nothing of waits"
    profctl record --native -d 0.3 -o "$WORK/clock.fxt" -- "$WORKLOADS/known_waits" share 0.2 --exit >/dev/null 2>&1 || fail "record the clock"
    profctl dump --json "$WORK/clock.fxt" >"$WORK/dump" || fail "dump"
    grep -E '"(event|events|weight|off_cpu)"|cpu-profilerd.threads' "$WORK/dump" && fail "a recording of the clock alone speaks of waits"
    profctl report "$WORK/clock.fxt" | grep -q '^Time of' && fail "a report of the clock alone speaks of threads"
    expect_status 1 profctl report --threads "$WORK/clock.fxt" 2>"$WORK/err"
    grep -q 'has no times of threads; profctl record --wall records them' "$WORK/err" || fail "report --threads: $(cat "$WORK/err")"
}

if [ -z "${STORY:-}" ]; then
    play_hasty
    play_living
fi
at_once ended machine short
start_daemon
"play_$STORY"
stop_daemon || exit 1
