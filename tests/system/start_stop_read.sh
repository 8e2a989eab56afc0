#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A session that outlives its client: start, stop, read, close. Whatever a reader meets (kill -9 in the
# middle, a full disk), all reads together have every sample that the books say was kept, once; each file is
# a recording of its own, and so are all of them together.
. "${0%/*}/lib.sh"
require_perf
start_daemon
disk=$WORK/disk
mkdir "$disk"
end() {
    local status=$?
    umount "$disk" 2>/dev/null
    (exit "$status")
    finish
}
trap end EXIT

# A session ends when start says, whatever a config does.
echo '{"max_duration_s": 5}' >"$WORK/short.json"
profctl start --json -d 7 --config "$WORK/short.json" >"$WORK/start.json" || fail "start -d: status $?"
expect_json "$WORK/start.json" "d['max_duration_s'] == 7" "start -d is not heard"
profctl close >/dev/null || fail "close"

# samples FILE...: how many there are in all of them. The release build counts, since it starts quickest.
samples() {
    local file sum=0
    for file; do
        "$RELEASE_DIR/bin/profctl" report --json "$file" >"$WORK/report.json" || return 1
        sum=$((sum + $(json "$WORK/report.json" "d['samples']")))
    done
    echo "$sum"
}

# begin ARGUMENT...: a session at work; stop_session leaves its books in stop.json.
begin() {
    profctl start --json "$@" >"$WORK/start.json" || fail "start: status $?"
}
stop_session() {
    profctl stop --json >"$WORK/stop.json" || fail "stop: status $?"
    kept=$(json "$WORK/stop.json" "d['books']['total']['kept']")
    [ "$kept" -gt 0 ] || fail "nothing was kept"
}
# Under a name of its own: other tests have a busy program as well. The seconds are of its own time, of a thousand ticks each.
cp "$WORKLOADS/chores" "$WORK/own_busy"
work() {
    "$WORK/own_busy" --seconds "$1" >/dev/null
}
# work_until_unread MIB: a program works until the daemon holds so much, however busy the machine is. None of its stacks
# is like another, so a sample of it has many bytes.
holds_bytes() {
    local status
    status=$("$RELEASE_DIR/bin/profctl" status --json) || fail "status"
    [[ $status =~ \"buffer_used_bytes\":\ *([0-9]+) ]] || fail "status has no bytes: $status"
    [ "${BASH_REMATCH[1]}" -ge "$1" ]
}
work_until_unread() {
    run_in_background "$WORKLOADS/round_hog" stacks 60 100 >/dev/null
    wait_until 60 holds_bytes $(($1 << 20)) || fail "the daemon does not hold $1 MiB"
    stop_background
}
# expect_kept FILE...: together they have what was kept.
expect_kept() {
    local sum
    sum=$(samples "$@") || fail "no recordings: $*"
    [ "$sum" -eq "$kept" ] || fail "$sum samples in $*, and $kept were kept"
}
# refused PATTERN COMMAND...: ends with status 1 and one sentence that has the pattern.
refused() {
    local pattern=$1 status=0
    shift
    "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" -eq 1 ] || fail "'$*' ended with status $status, not 1: $(cat "$WORK/out" "$WORK/err")"
    if ! grep -q "^profctl: .*$pattern" "$WORK/err" || [ "$(wc -l <"$WORK/err")" -ne 1 ]; then
        fail "'$*' says '$(cat "$WORK/err")', not '$pattern'"
    fi
}
nothing_left_beside() {
    local left
    left=$(find "$WORK" -name '*.partial-*')
    [ -z "$left" ] || fail "left behind: $left"
}

echo "== without a session, every verb says how to begin one"
for verb in stop "read -o $WORK/none.fxt" close; do
    # shellcheck disable=SC2086
    refused 'there is no session; profctl start begins one' profctl $verb
done

echo "== start, work, stop, read, report, close"
# Its own file alone is wanted: those of all programs of a busy machine take longer than stop waits for names.
profctl start -F 2000 --comm own_busy >"$WORK/start.out" || fail "start: status $?"
grep -Eq '^session [0-9a-f]+: running, one every 0\.500499 ms of a CPU \(1998\.0 Hz\)' "$WORK/start.out" || fail "start says: $(cat "$WORK/start.out")"
grep -Eq '^holds [0-9]+ s: ' "$WORK/start.out" || fail "start does not say what it holds: $(cat "$WORK/start.out")"
grep -Eq '^sampling ends by itself in (600|599) s, at ' "$WORK/start.out" || fail "start does not say when it ends: $(cat "$WORK/start.out")"
work 0.1
profctl status >"$WORK/status.out" || fail "status"
grep -Eq '^  owner +.*, detached$' "$WORK/status.out" || fail "status: $(cat "$WORK/status.out")"
grep -Eq '^  ends +by itself in [0-9]+ s' "$WORK/status.out" || fail "status: $(cat "$WORK/status.out")"
grep -Eq '^  unread +[0-9.]+ [KM]iB of .*, in buffers of one CPU each$' "$WORK/status.out" || fail "status: $(cat "$WORK/status.out")"
stop_session
expect_json "$WORK/stop.json" "d['stopped_by'] == 'client'" "stop does not say who"
refused 'the session is not running' profctl stop
echo old >"$WORK/one.fxt"
chmod 640 "$WORK/one.fxt"
profctl read --native -o "$WORK/one.fxt" --json >"$WORK/read.json" || fail "read: status $?"
expect_json "$WORK/read.json" "d['samples'] == $kept and d['end'] and d['books']['total']['kept'] == $kept" "read tells other numbers"
[ "$(stat -c '%s %a' "$WORK/one.fxt")" = "$(json "$WORK/read.json" "d['size_bytes']") 640" ] || fail "one.fxt: $(stat -c '%s %a' "$WORK/one.fxt")"
expect_kept "$WORK/one.fxt"
profctl report --json -n 0 "$WORK/one.fxt" >"$WORK/report.json"
expect_json "$WORK/report.json" "[r for r in d['rows'] if r['name'] == 'chore_four']" "the workload is not in it"
cp "$WORK/one.fxt" "$WORK/one.copy"
[ "$(cat "$WORK/one.fxt.old")" = old ] || fail "the file that was replaced is not there"
refused 'one.fxt holds a recording already; --append adds to it, --force replaces it and keeps it as .*one.fxt.old' profctl read --native -o "$WORK/one.fxt"
for how in --force --append; do
    refused 'nothing new to read: the session has ended' profctl read --native $how -o "$WORK/one.fxt"
    cmp "$WORK/one.fxt" "$WORK/one.copy" || fail "a read of nothing has changed the file"
done
profctl close >"$WORK/out" || fail "close: status $?"
grep -Eq '^session [0-9a-f]+: closed$' "$WORK/out" || fail "close says: $(cat "$WORK/out")"
nothing_left_beside

echo "== a short session is held whole; one whose start cannot be told runs all the same, which is told"
echo '{"max_duration_s": 5}' >"$WORK/short.json"
profctl start --config "$WORK/short.json" >"$WORK/start.out" || fail "start: status $?"
grep -q '^holds all of it, ' "$WORK/start.out" || fail "start of a short session says: $(cat "$WORK/start.out")"
profctl close >/dev/null || fail "close: status $?"
profctl start 2>"$WORK/err" >/dev/full && fail "start on a full disk is no failure"
grep -Eq '^profctl: session [0-9a-f]+ runs; profctl stop and profctl close end it$' "$WORK/err" || fail "start on a full disk says: $(cat "$WORK/err")"
profctl close >/dev/null || fail "the session of start on a full disk: close: status $?"

echo "== read while it runs, and again; compressed, and through a pipe"
begin --comm own_busy
work 0.1
profctl read --native -o "$WORK/a.fxt" >"$WORK/out" || fail "the first read"
grep -q 'the session goes on' "$WORK/out" || fail "read says: $(cat "$WORK/out")"
work 0.1
profctl read --native -o "$WORK/b.fxt.gz" >/dev/null || fail "the second read"
gzip -t "$WORK/b.fxt.gz" || fail "b.fxt.gz is not compressed"
work 0.1
profctl read --native -o /dev/stdout 2>"$WORK/err" | cat >"$WORK/c.fxt"
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "the third read: $(cat "$WORK/err")"
work 0.1
stop_session
profctl read --native -o - >"$WORK/d.fxt" 2>"$WORK/err" || fail "the fourth read"
grep -Eq '^[0-9]+ kept samples are not in this file; earlier reads have them$' "$WORK/err" || fail "the last of four reads says: $(cat "$WORK/err")"
expect_kept "$WORK/a.fxt" "$WORK/b.fxt.gz" "$WORK/c.fxt" "$WORK/d.fxt"
gzip -dk "$WORK/b.fxt.gz"
cat "$WORK"/{a,b,c,d}.fxt >"$WORK/all.fxt"
expect_kept "$WORK/all.fxt"
profctl close >/dev/null || fail "close"

echo "== a file is added to, compressed or not, or replaced and kept"
for name in more.fxt more.fxt.gz; do
    begin --comm own_busy
    work 0.1
    profctl read --native --append -o "$WORK/$name" >"$WORK/out" || fail "the first read"
    tr '\n' ' ' <"$WORK/out" | grep -qF "profctl read --append -o $WORK/$name adds what follows" || fail "the first read says: $(cat "$WORK/out")"
    work 0.1
    refused 'holds a recording already' profctl read --native -o "$WORK/$name"
    profctl read --native --append -o "$WORK/$name" >"$WORK/out" || fail "read --append: $(cat "$WORK/out")"
    grep -Eq "^[0-9]+ samples? added: [0-9]+ samples?, .* in $WORK/$name\$" "$WORK/out" || fail "read --append says: $(cat "$WORK/out")"
    stop_session
    profctl read --native --append --json -o "$WORK/$name" >"$WORK/read.json" || fail "read --append: status $?"
    expect_json "$WORK/read.json" "d['samples'] == $kept and d['samples_elsewhere'] == 0 and d['old_file'] is None" "read --append tells other numbers"
    expect_kept "$WORK/$name"
    profctl close >/dev/null || fail "close"
done
begin --comm own_busy
work 0.1
stop_session
echo "no recording" >"$WORK/text.fxt"
refused 'text.fxt is no recording, so nothing can be added to it' profctl read --native --append -o "$WORK/text.fxt"
[ "$(cat "$WORK/text.fxt")" = "no recording" ] || fail "read --append replaces a file that is no recording"
cp "$WORK/more.fxt" "$WORK/plain.fxt.gz"
refused 'plain.fxt.gz is not compressed' profctl read --native --append -o "$WORK/plain.fxt.gz"
cp "$WORK/more.fxt" "$WORK/more.copy"
profctl read --native --force -o "$WORK/more.fxt" >/dev/null || fail "read --force: status $?"
expect_kept "$WORK/more.fxt"
cmp "$WORK/more.fxt.old" "$WORK/more.copy" || fail "what was replaced is not kept"
profctl close >/dev/null || fail "close"

echo "== books are added without a sample, and replace no recording"
begin --comm own_busy
work 0.1
has_read_all() {
    ! profctl read --native --append -o "$WORK/quiet.fxt" >/dev/null 2>"$WORK/err"
}
wait_until 20 has_read_all || fail "there is no end of what is read"
grep -q 'nothing new to read: the session is still running' "$WORK/err" || fail "read --append: $(cat "$WORK/err")"
stop_session
refused 'nothing new to read: .*; --append adds its books to' profctl read --native --force -o "$WORK/quiet.fxt"
profctl read --native --append --json -o "$WORK/quiet.fxt" >"$WORK/read.json" || fail "the read of the books: status $?"
expect_json "$WORK/read.json" "d['samples_added'] == 0 and d['books'] and d['samples_elsewhere'] == 0" "the read of the books tells"
expect_kept "$WORK/quiet.fxt"
expect_json "$WORK/report.json" "d['books']['total']['kept'] == $kept" "the file has no books"
refused 'nothing new to read: the session has ended' profctl read --native --append -o "$WORK/quiet.fxt"
profctl close >/dev/null || fail "close"

echo "== waits are something new, and so are times of threads, without a sample of the clock"
# A process that sleeps ten times a second and hardly works meets no tick of one a second.
echo '{"off_cpu": {"max_cost_percent": 100}}' >"$WORK/all.json" # whatever else runs, no switch is left out
run_in_background "$WORKLOADS/napper" 1 100000 --seconds 600 >/dev/null
sleeper=$BACKGROUND_PID
# sleep_on NAME OPTION...: a session of it, read before it has anything, and stopped.
sleep_on() {
    profctl start --config "$WORK/all.json" "${@:2}" -F 1 -p "$sleeper" >/dev/null || fail "start --wall"
    profctl read --native -o "$WORK/$1.early.fxt" >/dev/null || fail "the first read"
    profctl stop >"$WORK/stop.out" || fail "stop"
    grep -q 'wait for profctl read -o FILE' "$WORK/stop.out" || fail "stop says: $(cat "$WORK/stop.out")"
}
sleep_on wait
profctl read --native --json -o "$WORK/wait.fxt" >"$WORK/read.json" || fail "the read of a wait"
expect_json "$WORK/read.json" "d['samples'] == 0 and d['event_samples'] == d['event_samples_added'] > 0 and d['event_samples_elsewhere'] > 0" "the wait is not there"
profctl report --event off-cpu --json "$WORK/wait.fxt" >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" "sum(r['self'] for r in d['rows']) > 0" "nothing has waited"
profctl report --threads -t "$sleeper" "$WORK/wait.fxt" >/dev/null || fail "the thread has no time"
cp "$WORK/wait.fxt" "$WORK/wait.copy"
refused 'nothing new to read: .*; --append adds its books and the times of its threads to' profctl read --native -o "$WORK/again.fxt"
for how in --force --append; do
    refused 'nothing new to read: the session has ended' profctl read --native $how -o "$WORK/wait.fxt"
    cmp "$WORK/wait.fxt" "$WORK/wait.copy" || fail "a read of nothing has changed the file"
done
profctl read --native --append -o "$WORK/wait.early.fxt" >"$WORK/out" || fail "read --append of books"
grep -Eqx '[0-9]+ kept samples? of other events (is|are) not in this file; earlier reads have them' "$WORK/out" || fail "read --append says: $(cat "$WORK/out")"
profctl close >/dev/null || fail "close"
for how in new --append --force; do
    sleep_on "threads$how" --min-wait 10s
    file=$WORK/threads$how.early.fxt
    if [ "$how" = new ]; then
        file=$WORK/threads.fxt
        profctl read --native -o "$file" >"$WORK/out" || fail "the read of threads"
    else
        profctl read --native "$how" -o "$file" >"$WORK/out" || fail "the read $how of threads"
    fi
    [ "$(tail -n 1 "$WORK/out")" = "profctl report --threads $file shows for how long threads were blocked" ] || fail "read of threads says: $(cat "$WORK/out")"
    profctl report --threads -t "$sleeper" --json "$file" >"$WORK/report.json" || fail "the thread has no time"
    expect_json "$WORK/report.json" "d['threads'][0]['wall_ns'] > 0" "the thread has no time"
    refused 'nothing new to read: the session has ended' profctl read --native --append -o "$file"
    refused 'nothing new to read: the session has ended' profctl read --native -o "$WORK/again.fxt"
    profctl close >/dev/null || fail "close"
done
stop_background

echo "== a reader is killed in the middle; the same command goes on"
is_stopped() {
    grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}
# kill_reader NAME OPTION...: of a session with several pieces of a megabyte, so that there are some left when the reader
# is seen to have had one.
kill_reader() {
    local name=$1 reader
    begin -F 8000
    work_until_unread 4
    stop_session
    profctl read --native "${@:2}" -o "$WORK/$name" >/dev/null &
    reader=$!
    # The name tells how much was acknowledged. An ended process has no program; to ask so starts none.
    until compgen -G "$WORK/$name.partial-*-[1-9]*-*" >/dev/null || [ ! -e "/proc/$reader/exe" ]; do :; done
    kill -STOP "$reader"
    wait_until 5 is_stopped "$reader" || fail "the reader has ended before it could be killed"
    kill -KILL "$reader"
    wait "$reader" 2>/dev/null
    left=$(compgen -G "$WORK/$name.partial-*") || fail "nothing is left of what the reader had"
}
for name in killed.fxt killed.fxt.gz; do
    kill_reader "$name"
    [ ! -e "$WORK/$name" ] || fail "$name has its name and is not whole"
    profctl read --native -o "$WORK/$name" >"$WORK/out" || fail "read after a kill: status $?"
    grep -q 'of it from a read that was interrupted' "$WORK/out" || fail "read says: $(cat "$WORK/out")"
    expect_kept "$WORK/$name"
    nothing_left_beside
    echo "$kept samples, $(stat -c %s "$WORK/$name") bytes, ${left##*-} of them before the kill"
    profctl close >/dev/null || fail "close"
done

echo "== and so it does with a file that is added to, which no other replaces meanwhile"
earlier=$(samples "$WORK/more.fxt") || fail "no recording: more.fxt"
kill_reader more.fxt --append
mv "$WORK/more.fxt" "$WORK/moved.fxt"
refused 'read with --append is unfinished; finish it first, with: profctl read --append' profctl read --native -o "$WORK/more.fxt"
cp "$WORK/one.fxt" "$WORK/more.fxt"
refused 'more.fxt has changed since .*move it away' profctl read --native --append -o "$WORK/more.fxt"
cmp "$WORK/more.fxt" "$WORK/one.fxt" || fail "the file that came meanwhile has changed"
mv "$WORK/moved.fxt" "$WORK/more.fxt"
profctl read --native --append --json -o "$WORK/more.fxt" >"$WORK/read.json" || fail "read --append after a kill: status $?"
expect_json "$WORK/read.json" "d['samples_added'] == $kept and d['samples'] == $earlier + $kept and d['samples_elsewhere'] == 0" \
    "read --append after a kill tells other numbers: $(cat "$WORK/read.json")"
nothing_left_beside
profctl close >/dev/null || fail "close"

if mount -t tmpfs -o size=300k tmpfs "$disk" 2>"$WORK/err"; then
    echo "== a full disk: nothing is lost, and the earlier file stays"
    begin -F 8000
    work_until_unread 4
    stop_session
    echo earlier >"$disk/full.fxt"
    refused 'No space left.*nothing has been read' profctl read --native -o "$disk/full.fxt"
    [ "$(cat "$disk/full.fxt")" = earlier ] || fail "the earlier file has changed"
    # Compressed, its size is not known beforehand: a disk that has room for the first piece, but
    # not for all.
    rm "$disk/full.fxt"
    for kib in $(seq 40 32 1000); do
        mount -o "remount,size=${kib}k" "$disk" || fail "remount"
        refused 'No space left' profctl read --native -o "$disk/full.fxt.gz"
        if grep -q 'the same command goes on' "$WORK/err"; then
            break
        fi
    done
    part=$(compgen -G "$disk/full.fxt.gz.partial-*") || fail "what was acknowledged is gone"
    gzip -t "$part" || fail "what is kept cannot be decompressed"
    mount -o remount,size=64m "$disk" || fail "remount"
    profctl read --native -o "$disk/full.fxt.gz" >/dev/null || fail "read after a full disk: status $?"
    expect_kept "$disk/full.fxt.gz"
    profctl close >/dev/null || fail "close"
    [ "$(ls "$disk")" = full.fxt.gz ] || fail "left behind: $(ls "$disk")"

    rm "$disk/full.fxt.gz"
    mount -o remount,size=300k "$disk" || fail "remount"
    begin -F 8000
    work_until_unread 1
    stop_session
    refused 'No space left' profctl read --native -o "$disk/full.fxt"
    profctl read --native -o "$WORK/elsewhere.fxt" >/dev/null || fail "read elsewhere: status $?"
    expect_kept "$WORK/elsewhere.fxt"
    profctl close >/dev/null || fail "close"
else
    echo "no mount, so no full disk: $(cat "$WORK/err")"
fi

echo "== two sessions at once; whose it is, and what to do"
# Root takes what it attaches to (root_ends.sh), so where this is root, another user shares a session with himself.
someone=() someone_uid=$(id -u)
if [ "$someone_uid" -eq 0 ]; then
    # Where the sources lie is perhaps for nobody else to see.
    mkdir "$WORK/for_others"
    cp "$BIN/profctl" "$WORK/for_others"
    chmod 755 "$WORK/for_others"
    someone_uid=65534
    someone=(setpriv --reuid "$someone_uid" --regid 65534 --clear-groups env "PATH=$WORK/for_others:$PATH" "CPU_PROFILERD_SOCKET=$CPU_PROFILERD_SOCKET")
    chmod 711 "$WORK"
    refused 'not allowed to connect to .* group cpu-profiler: .*usermod -aG cpu-profiler nobody' "${someone[@]}" profctl status
    chmod 666 "$CPU_PROFILERD_SOCKET"
fi
begin --comm own_busy
refused "a session is already running, of .* since .*; 'profctl stop' then 'profctl read' saves it, 'profctl close' discards it" profctl start
refused 'a session is already running, of .* since ' profctl record --native -d 1 -o "$WORK/none.fxt"
if [ ${#someone[@]} -gt 0 ]; then
    refused 'there is a session already, of root (uid 0) since .*ask its owner' "${someone[@]}" profctl start
    refused 'the session belongs to root (uid 0) since .*, not to you' "${someone[@]}" profctl stop
fi
profctl close --json >"$WORK/close.json" || fail "close: status $?"
expect_json "$WORK/close.json" "d['state'] == 'closed'" "close says something else"
PYTHONPATH=${0%/*} run_in_background python3 -c '
import sys, time
from sampler import Connection
with Connection(sys.argv[1], int(sys.argv[2])) as holder:
    print(holder.call("Create", config={}, detach=True), flush=True)
    time.sleep(60)' "$CPU_PROFILERD_SOCKET" "$someone_uid" >"$WORK/holder"
wait_until 5 grep -q holds_s "$WORK/holder" || fail "nobody holds the session"
refused 'another client of its owner.*holds the session' "${someone[@]}" profctl read --native -o "$WORK/none.fxt"
kill "$BACKGROUND_PID"
wait "$BACKGROUND_PID" 2>/dev/null
"${someone[@]}" profctl close >"$WORK/out" || fail "close: $(cat "$WORK/out")"
run_in_background profctl record --native -d 60 -o "$WORK/attached.fxt" >/dev/null
records() {
    profctl status --json >"$WORK/status.json" && [ "$(json "$WORK/status.json" "d['session'] is not None")" = true ]
}
wait_until 5 records || fail "record has no session"
if [ ${#someone[@]} -gt 0 ]; then
    refused "root (uid 0) is already recording (profctl, pid $BACKGROUND_PID, for [0-9]* s); wait for its end, or take it over as root" profctl start
    refused "root (uid 0) is already recording (profctl, pid $BACKGROUND_PID, for [0-9]* s); wait for its end, or ask its owner" "${someone[@]}" profctl start
    chmod 600 "$CPU_PROFILERD_SOCKET"
else
    refused "is already recording (profctl, pid $BACKGROUND_PID, for [0-9]* s); wait for its end, or end that client" profctl start
    refused 'only that client and root can end it' profctl stop
fi
kill -TERM "$BACKGROUND_PID"
wait "$BACKGROUND_PID" || fail "record"

echo "== a session that ended by itself says so"
echo '{"max_duration_s": 1}' >"$WORK/short.json"
begin --comm own_busy --config "$WORK/short.json"
expect_json "$WORK/start.json" "d['max_duration_s'] == 1" "start tells another end"
work 0.1
sleep 1
profctl stop >"$WORK/out" || fail "stop of a session that ended by itself: status $?"
grep -q 'had ended by itself, after 1 s' "$WORK/out" || fail "stop says: $(cat "$WORK/out")"
profctl close >"$WORK/out" || fail "close"
grep -q 'that were not read' "$WORK/out" || fail "close does not say what it throws away: $(cat "$WORK/out")"

echo "== and so it ends when the thread whose timer ends it gets no CPU"
cp "$WORKLOADS/busy" "$WORK/own_busy"
run_in_background "$WORK/own_busy" --seconds 60 --rest 19 >/dev/null
begin --comm own_busy -d 2
# A debugger holds that thread alone, for five seconds. It stops where it waits for events, and so holds no lock: one that
# only lacks a CPU would get it while another thread waits for its lock, which a stopped one never does.
if python3 - "$daemon_pid" <<'PYTHON'; then
import ctypes, os, sys, time
SEIZE, INTERRUPT, CONTINUE, DETACH, WALL = 0x4206, 0x4207, 7, 17, 0x40000000
WAITS = "232", "281", "441"  # epoll_wait(), epoll_pwait() and epoll_pwait2(), as the version of libsystemd has it
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
main = int(sys.argv[1])
def ask(request):
    if ptrace(request, main, None, None) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
ask(SEIZE)
while True:
    ask(INTERRUPT)
    os.waitpid(main, WALL)
    with open(f"/proc/{main}/syscall") as file:
        if file.read().split()[0] in WAITS:
            break
    ask(CONTINUE)
    time.sleep(0.01)
time.sleep(5)
ask(DETACH)
PYTHON
    profctl read --native -o "$WORK/held.fxt" >/dev/null || fail "read"
    profctl report --json "$WORK/held.fxt" >"$WORK/report.json" || fail "report"
    expect_json "$WORK/report.json" "d['duration_ns'] < 4e9" "it was sampled until the thread came back"
fi
stop_background
profctl close >/dev/null || fail "close"

echo "== a session that was never started is told as one"
PYTHONPATH=${0%/*} python3 -c '
import sys
from sampler import Connection
with Connection(sys.argv[1]) as daemon:
    daemon.call("Create", config={}, detach=True)' "$CPU_PROFILERD_SOCKET" || fail "no session was created"
refused "a session already that was never started, of .*; 'profctl close' discards it" profctl start
profctl status >"$WORK/out" || fail "status: $?"
grep -q '^  ends  *closed 60 s after the last request to it, unless it is started$' "$WORK/out" ||
    fail "status does not tell the end of a session that was never started: $(cat "$WORK/out")"
profctl close >"$WORK/out" || fail "close"

echo "== a daemon that stands still is told of after a few seconds"
kill -STOP "$daemon_pid"
began=$SECONDS
refused 'did not answer within 5 s' profctl status
kill -CONT "$daemon_pid"
[ $((SECONDS - began)) -le 8 ] || fail "that took $((SECONDS - began)) s"
