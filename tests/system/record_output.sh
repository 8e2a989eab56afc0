#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What record does besides a file of its own: standard output under its other names, and a word about
# targets that were never seen, about an end that came by itself, and about a disk without room. No recording is lost to
# another or to an empty one, the command's status is record's, and a terminal that takes no output holds up nothing. A
# recording ends with its targets, and in the background only by a signal that is sent to it.
. "${0%/*}/lib.sh"
require_perf
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 19 >/dev/null
busy=$BACKGROUND_PID
run_in_background sleep 600
idle=$BACKGROUND_PID

# The program has run for 200 ms in each recording, by the kernel's count in 10 ms: so many ticks of 1.002 ms were its own,
# and each of them has a sample, or is where the books say that it went.
mkfifo "$WORK/pipe"
run_in_background nice -n 10 "$WORKLOADS/busy" --seconds 280 >/dev/null
spinning=$BACKGROUND_PID
for path in - /dev/stdout /dev/fd/1; do
    # shellcheck disable=SC2016 # for the shell inside, which waits for the other end of the pipe
    run_in_background sh -c 'exec profctl report --json - <"$0"' "$WORK/pipe" >"$WORK/report.json"
    reader=$BACKGROUND_PID
    run_in_background profctl record -o "$path" >"$WORK/pipe" 2>"$WORK/err"
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "record -o $path records nothing: $(cat "$WORK/err")"
    expect_run 200 "$spinning"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record -o $path: $(cat "$WORK/err")"
    wait "$reader" || fail "record -o $path: report fails"
    expect_json "$WORK/report.json" "d['samples'] == d['books']['total']['kept']" "record -o $path: samples are not there"
    expect_json "$WORK/report.json" \
        "d['samples'] + sum(d['books']['total'][term] for term in ('lost', 'throttled', 'missed', 'dropped')) >= 189" \
        "record -o $path: too few samples"
    grep -q 'samples in' "$WORK/err" || fail "record -o $path: no summary on standard error"
done
kill -KILL "$spinning"
wait "$spinning" 2>/dev/null

# A recording of processes and threads ends when the last of them has ended.
run_in_background "$WORKLOADS/busy" --seconds 280 >/dev/null
first=$BACKGROUND_PID
run_in_background "$WORKLOADS/busy" --seconds 280 >/dev/null
second=$BACKGROUND_PID
run_in_background profctl record -p "$first" -t "$second" -o "$WORK/ended.fxt" >"$WORK/out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/out")"
expect_run 50 "$first"
kill -KILL "$first"
expect_run 300 "$second"
session_runs || fail "record ends with the first of two targets: $(cat "$WORK/out")"
kill -KILL "$second"
wait_until 20 process_ended "$recorder" || fail "record goes on without its targets"
wait "$recorder" || fail "record of processes that have ended: $(cat "$WORK/out")"
grep -Eq '^all 2 targets have ended; recorded [0-9.]+ s$' "$WORK/out" || fail "record says: $(cat "$WORK/out")"
wait "$first" "$second" 2>/dev/null

# A shell without job control, such as this one, has SIGINT ignored by what it starts in the background: that shields it
# from Ctrl-C on the terminal, and from nothing else.
run_in_background profctl record -o "$WORK/asked.fxt" >"$WORK/out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/out")"
expect_run 20 "$busy"
kill -INT "$recorder"
wait_until 20 process_ended "$recorder" || fail "record in the background does not end at kill -INT"
wait "$recorder" || fail "record that was interrupted: $(cat "$WORK/out")"
timeout 60 python3 - "$WORK/shielded.fxt" <<'PYTHON' || fail "Ctrl-C ends a recording in the background, or kill -INT does not"
import fcntl, os, select, signal, subprocess, sys, termios, time
leader, terminal = os.openpty()
def own_terminal():
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
shell = subprocess.Popen(["sh", "-c", """
trap '' HUP  # which the end of a terminal's first process sends to all others
profctl record -o "$0" >/dev/null 2>"$0.err" & echo $!
exec sleep 50
""", sys.argv[1]], stdin=terminal, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=own_terminal)
recorder = os.pidfd_open(pid := int(shell.stdout.readline()))
def session_runs():
    return b'"state":"running"' in subprocess.run(["profctl", "status", "--json"], stdout=subprocess.PIPE).stdout.replace(b" ", b"")
while not session_runs():
    time.sleep(0.05)
os.write(leader, b"\x03")
assert shell.wait() == -signal.SIGINT, "Ctrl-C does not reach the terminal's processes"
for _ in range(10):
    assert session_runs(), "Ctrl-C ends it"
os.kill(pid, signal.SIGINT)
assert select.select([recorder], [], [], 30)[0], "kill -INT does not end it"
assert os.path.exists(sys.argv[1]), open(sys.argv[1] + ".err").read()
PYTHON

echo "{\"targets\": {\"pids\": [$busy, $idle]}}" >"$WORK/targets.json"
profctl record -d 0.5 --config "$WORK/targets.json" -o "$WORK/targets.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
[ "$(cat "$WORK/err")" = "profctl: process $idle has no sample: it did not run" ] ||
    fail "record says of its targets: $(cat "$WORK/err")"

echo '{"max_duration_s": 1}' >"$WORK/short.json"
profctl record --config "$WORK/short.json" -o "$WORK/short.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
grep -qE "^profctl: note: sampling ended by itself after [0-9.]+ s: the session's max_duration_s is over\$" "$WORK/err" ||
    fail "record ends before its time and says: $(cat "$WORK/err")"
# The daemon ends what profctl cannot: that is no max_duration_s of the user's.
is_stopped() {
    grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}
for seconds in 1 4 16 64; do
    run_in_background profctl record -d "$seconds" -o "$WORK/late.fxt" >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/out")"
    kill -STOP "$recorder"
    wait_until 10 is_stopped "$recorder" || fail "record is not stopped"
    # On a slow machine that may have been too late.
    ! session_runs || break
    kill -CONT "$recorder"
    wait "$recorder"
done
while session_runs; do
    sleep 0.2
done
kill -CONT "$recorder"
wait "$recorder" || fail "record that was stopped: $(cat "$WORK/out")"
grep -qE "^profctl: note: sampling went on for [0-9.]+ s, not $seconds s: profctl got no CPU in time, was stopped, " "$WORK/out" ||
    fail "record was stopped, and says: $(cat "$WORK/out")"
profctl record -d 0.5 -o "$WORK/asked.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
profctl report "$WORK/asked.fxt" >"$WORK/report" || fail "report"
profctl dump --json "$WORK/asked.fxt" >"$WORK/dump" || fail "dump"
grep -Eq '"max_duration_s": ?6[,}]' "$WORK/dump" || fail "the daemon was not told how long it is to record"
profctl record --names -p "$busy" -d 0.5 -o "$WORK/names.fxt" >/dev/null 2>"$WORK/names.err" || fail "record --names: $(cat "$WORK/names.err")"
profctl dump --json "$WORK/names.fxt" >"$WORK/dump" || fail "dump"
grep -Eq '"max_duration_s": ?12[,}]' "$WORK/dump" || fail "the daemon ends what may still wait for the answers of runtimes"
record_says='^([0-9]+ samples) in ([0-9.]+ s), '
[[ $(head -n 1 "$WORK/out") =~ $record_says ]] || fail "record says: $(head -n 1 "$WORK/out")"
told=$(head -n 2 "$WORK/report" | tr '\n' ' ')
[[ $told == *", ${BASH_REMATCH[2]} at "*"; ${BASH_REMATCH[1]}, "* ]] ||
    fail "record and report tell another length: $(head -n 1 "$WORK/out"), $told"
[[ $told == "$(uname -n) (Linux $(uname -r)), "* ]] || fail "the file is of another machine: $told"
[ -s "$WORK/err" ] && fail "record ends as it was asked to and says: $(cat "$WORK/err")"

# A file of one's own keeps its mode. Another user may have made one to have its mode given to the recording: none of
# the recording is for others, while it is made or after.
: >"$WORK/kept.fxt"
chmod 640 "$WORK/kept.fxt"
profctl record -d 0.2 -o "$WORK/kept.fxt" >/dev/null 2>&1 || fail "record over a file"
[ "$(stat -c %a "$WORK/kept.fxt")" = 640 ] || fail "a file of one's own has another mode now: $(ls -l "$WORK/kept.fxt")"
if [ "$(id -u)" -eq 0 ]; then
    mkdir -m 1777 "$WORK/shared"
    : >"$WORK/shared/trap.fxt"
    chmod 666 "$WORK/shared/trap.fxt"
    chown 4712:4712 "$WORK/shared/trap.fxt"
    run_in_background profctl record -d 1 -o "$WORK/shared/trap.fxt" >/dev/null 2>&1
    recorder=$BACKGROUND_PID
    has_begun() {
        compgen -G "$WORK/shared/trap.fxt.partial-*" >/dev/null
    }
    wait_until 10 has_begun || fail "record does not begin"
    [ "$(stat -c '%u %a' "$WORK"/shared/trap.fxt.partial-*)" = "0 600" ] || fail "others may read: $(ls -l "$WORK/shared")"
    wait "$recorder" || fail "record over another user's file"
    [ "$(stat -c '%u %a' "$WORK/shared/trap.fxt")" = "0 600" ] || fail "others may read: $(ls -l "$WORK/shared")"
fi

# The file that is replaced stays as FILE.old; a recording without a sample replaces none.
profctl record -o "$WORK/one.fxt" -- "$WORKLOADS/busy" --seconds 0.2 >/dev/null 2>&1 || fail "record"
cp "$WORK/one.fxt" "$WORK/copy.fxt"
profctl record -o "$WORK/one.fxt" -- "$WORKLOADS/busy" --seconds 0.2 >/dev/null 2>"$WORK/err" || fail "record again"
cmp "$WORK/copy.fxt" "$WORK/one.fxt.old" || fail "the file that was replaced is not there: $(cat "$WORK/err")"
cmp -s "$WORK/copy.fxt" "$WORK/one.fxt" && fail "nothing was replaced"
grep -q "^what $WORK/one.fxt was before is $WORK/one.fxt.old now\$" "$WORK/err" || fail "record does not say where the old file is: $(cat "$WORK/err")"
cp "$WORK/one.fxt" "$WORK/copy.fxt"
expect_status 4 profctl record -d 0.2 --comm no-such-name -o "$WORK/one.fxt" >/dev/null 2>"$WORK/err"
grep -q "^profctl: no process matched --comm 'no-such-name'; nothing was recorded; $WORK/one.fxt is unchanged\$" "$WORK/err" ||
    fail "an empty recording says: $(cat "$WORK/err")"
cmp "$WORK/copy.fxt" "$WORK/one.fxt" || fail "an empty recording has replaced one"
expect_status 4 profctl record -d 0.2 -p "$idle" -o "$WORK/none.fxt" >/dev/null 2>"$WORK/err"
grep -q "^profctl: -p $idle did not run; nothing was recorded; $WORK/none.fxt is not written; --wall records what it waits for\$" "$WORK/err" ||
    fail "a recording of an idle process says: $(cat "$WORK/err")"
[ ! -e "$WORK/none.fxt" ] || fail "an empty recording has been written"

# What hardly has a CPU is slow since it waits: that is said, and with --wall how to see it. Without a tick there is only that.
echo '{"off_cpu": {"max_cost_percent": 100}}' >"$WORK/all.json" # whatever else runs, no switch is left out
profctl record -F 1 -d 0.5 --wall --config "$WORK/all.json" -p "$idle" -o "$WORK/idle.fxt" >"$WORK/out" 2>"$WORK/err" || fail "waits of an idle process: $(cat "$WORK/err")"
[ "$(tail -n 1 "$WORK/out")" = "profctl report --event off-cpu $WORK/idle.fxt shows what threads waited for" ] || fail "record --wall says: $(cat "$WORK/out")"
grep -q 'shows where the time went' "$WORK/out" && fail "record shows ticks that are not there: $(cat "$WORK/out")"
profctl report --event off-cpu --json "$WORK/idle.fxt" >"$WORK/report.json" || fail "report"
expect_json "$WORK/report.json" "sum(r['self'] for r in d['rows']) > 400000000" "the process did not wait all the time"
# Where its waits are too short to be written, its thread's time is.
profctl record -F 1 -d 0.5 --config "$WORK/all.json" --min-wait 10s -p "$idle" -o "$WORK/short.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record --min-wait: $(cat "$WORK/err")"
[ "$(tail -n 1 "$WORK/out")" = "profctl report --threads $WORK/short.fxt shows for how long threads were blocked" ] ||
    fail "record --min-wait says: $(cat "$WORK/out" "$WORK/err")"
profctl report --threads --json "$WORK/short.fxt" >"$WORK/report.json" || fail "the times of threads are not there"
expect_json "$WORK/report.json" "[t['tid'] for t in d['threads']] == [$idle] and d['threads'][0]['wall_ns'] > 400000000" "the thread has no time"
profctl record -F 4000 -o "$WORK/nap.fxt" -- "$WORKLOADS/napper" 1000 99000 --seconds 0.5 >/dev/null 2>"$WORK/err" || fail "record a nap: $(cat "$WORK/err")"
grep -qE "^profctl: note: '.*/napper' had a CPU for [0-4]\.[0-9] % of the time; --wall records what it waits for\$" "$WORK/err" ||
    fail "of a program that naps record says: $(cat "$WORK/err")"
profctl record -F 4000 -o "$WORK/nap.fxt" --wall -- "$WORKLOADS/napper" 1000 99000 --seconds 0.5 >/dev/null 2>"$WORK/err" || fail "record a nap"
grep -q 'note: .* had a CPU' "$WORK/err" && fail "record --wall says: $(cat "$WORK/err")"

# A standard stream that is closed is no reason to lose what was recorded: its number is no file's.
expect_status 1 profctl record -d 0.2 -o "$WORK/closed.fxt" >&- 2>"$WORK/err"
grep -q '^profctl: standard output cannot be written' "$WORK/err" || fail "record without standard output says: $(cat "$WORK/err")"
profctl record -d 0.2 -o "$WORK/closed.fxt" 2>&- >/dev/null || fail "record without standard error"
expect_status 0 profctl export "$WORK/closed.fxt" --format folded -o "$WORK/closed.folded" >&- 2>"$WORK/err"
profctl report "$WORK/closed.fxt.old" >/dev/null && profctl report "$WORK/closed.fxt" >/dev/null || fail "what was recorded is not there"
[ -s "$WORK/closed.folded" ] || fail "the export is not there: $(ls "$WORK")"

# The command's status is that of record.
work_and() {
    # shellcheck disable=SC2016 # for the shell inside
    expect_status "$1" profctl record "${@:3}" -o "$WORK/status.fxt" -- \
        sh -c '"$0" --seconds 0.2 >&2; '"$2" "$WORKLOADS/busy" >"$WORK/out" 2>"$WORK/err"
}
work_and 7 'exit 7'
work_and 0 'exit 7' --ignore-status
work_and 143 'kill -TERM $$'
work_and 7 'exit 7' --json
tail -n 1 "$WORK/err" >"$WORK/record.json"
expect_json "$WORK/record.json" "d['samples'] > 0 and d['command']['status'] == 7 and d['books']['total']['kept'] == d['samples']" \
    "record --json says: $(cat "$WORK/err")"
expect_json "$WORK/record.json" "d['file'].endswith('status.fxt') and d['old_file'].endswith('status.fxt.old')" "record --json names other files"

# What has been written is a recording, also where the session cannot be closed then: the command's status is not lost,
# and the recording is shown. Between the two is what ends the connection in place of Close.
cat >"$WORK/relay.py" <<'PYTHON'
import os, select, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(sys.argv[2])
    is_open = True
    while is_open:
        for source in select.select([client, daemon], [], [])[0]:
            data, fds, _, _ = socket.recv_fds(source, 1 << 20, 4)
            is_open = is_open and data != b"" and b".Close" not in data
            if is_open:
                socket.send_fds(daemon if source is client else client, [data], fds)
            for fd in fds:
                os.close(fd)
    client.close()
    daemon.close()
PYTHON
run_in_background python3 "$WORK/relay.py" "$WORK/relay.sock" "$CPU_PROFILERD_SOCKET" >"$WORK/relay.out"
wait_until 20 grep -q listening "$WORK/relay.out" || fail "nothing is between profctl and the daemon"
expect_status 1 profctl record -d 0.2 --socket "$WORK/relay.sock" -o "$WORK/unclosed.fxt" >"$WORK/out" 2>"$WORK/err"
grep -q '; the recording is whole$' "$WORK/err" && grep -q ' samples in ' "$WORK/out" || fail "of a session that cannot be closed record says: $(cat "$WORK/out" "$WORK/err")"
BROWSER=true work_and 7 'exit 7' --open --socket "$WORK/relay.sock"
grep -q '; the recording is whole$' "$WORK/err" && [ -s "$WORK/status.html" ] || fail "a recording whose session cannot be closed is not shown: $(cat "$WORK/err")"

# A terminal whose output is stopped, as by Ctrl-S, and that is not read.
timeout 60 python3 - "$WORK/stopped.fxt" <<'PYTHON' || fail "progress holds up the recording"
import os, subprocess, sys, termios
_, terminal = os.openpty()
termios.tcflow(terminal, termios.TCOOFF)
done = subprocess.run(["profctl", "record", "-d", "1", "-o", sys.argv[1]], stdout=subprocess.DEVNULL, stderr=terminal)
sys.exit(done.returncode)
PYTHON

# On a terminal of 80 columns nothing is wider, and progress says that its number is not the last.
timeout 60 python3 - "$WORK/seen.fxt" <<'PYTHON' || fail "record does not fit a terminal"
import fcntl, os, select, struct, subprocess, sys, termios
leader, terminal = os.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
recorder = subprocess.Popen(["profctl", "record", "-d", "1", "--books", "-o", sys.argv[1]], stdout=terminal, stderr=terminal)
text = b""
has_ended = False
while not has_ended:
    has_ended = recorder.poll() is not None
    while select.select([leader], [], [], 0 if has_ended else 0.05)[0]:
        text += os.read(leader, 65536)
assert recorder.returncode == 0, text
progress, _, summary = text.decode().rpartition("\r\033[K")
assert "fetched" in progress and progress.count("; the rest comes at the end") == progress.count("fetched"), progress
lines = summary.replace("\r", "").splitlines()
assert max(map(len, lines)) <= 80 and any(line.startswith("total ") for line in lines), summary
PYTHON

# Of a recorder that is killed, what it had fetched is left, and is a recording.
run_in_background profctl record -p "$busy" -o "$WORK/killed.fxt" >/dev/null 2>&1
recorder=$BACKGROUND_PID
has_fetched() {
    profctl report --json "$WORK"/killed.fxt.partial-* 2>/dev/null | grep -q '^{"samples":[1-9]'
}
wait_until 60 has_fetched || fail "record fetches nothing"
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
[ ! -e "$WORK/killed.fxt" ] || fail "a recorder that was killed has given the file its name"
has_fetched || fail "what a killed recorder leaves is no recording"

# A command that goes on when the recording ends is named with its pid.
profctl record -d 0.2 -o "$WORK/goes_on.fxt" -- sleep 600 >"$WORK/out" 2>"$WORK/err" || [ ! -e "$WORK/goes_on.fxt" ] ||
    fail "record of a command that goes on: $(cat "$WORK/err")"
pid=$(sed -n 's/^sleep: still runs, as pid \([0-9]*\)$/\1/p' "$WORK/out" "$WORK/err")
[ "$(cat "/proc/$pid/comm")" = sleep ] || fail "of a command that goes on record says: $(cat "$WORK/out" "$WORK/err")"
kill "$pid"

# Where room runs out, what there was room for is kept. Without any not even the first bytes are.
expect_status 1 sh -c 'trap "" XFSZ; ulimit -f 8; exec profctl record -d 0.5 -o "$0"' "$WORK/half.fxt" >/dev/null 2>"$WORK/err"
left=$(compgen -G "$WORK/half.fxt.partial-*") || fail "nothing is kept of a recording without room: $(cat "$WORK/err")"
[ "$(cat "$WORK/err")" = "profctl: $WORK/half.fxt cannot be written: File too large; what was recorded so far is kept in $left" ] ||
    fail "record without room says: $(cat "$WORK/err")"
for name in full.fxt full.fxt.gz; do
    status=0
    (
        trap '' XFSZ
        ulimit -f 0
        profctl record -d 0.5 -o "$WORK/$name"
    ) >/dev/null 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "record -o $name without room: status $status"
    [ -z "$(find "$WORK" -name "$name*")" ] || fail "record -o $name without room leaves $(find "$WORK" -name "$name*")"
done

# With --open the browser gets a page of the recording; without a sample none is made.
cat >"$WORK/browser" <<SCRIPT
#!/bin/sh
printf '%s\n' "\$@" >'$WORK/opened'
SCRIPT
chmod +x "$WORK/browser"
mkfifo "$WORK/opened"
BROWSER=$WORK/browser profctl record --open -d 0.5 -o "$WORK/to open.fxt.gz" >"$WORK/out" 2>&1 || fail "record --open: $(cat "$WORK/out")"
[ "$(timeout 60 cat "$WORK/opened")" = "$(realpath "$WORK")/to open.html" ] || fail "record --open opens another file"
grep -q 'id="data">.' "$WORK/to open.html" || fail "record --open makes no page"
# A file that has the page's name already was not named by the user, and is kept.
echo 'a page of the user' >"$WORK/to open.html"
BROWSER=true profctl record --open -d 0.5 -o "$WORK/to open.fxt.gz" >"$WORK/out" 2>&1 || fail "record --open: $(cat "$WORK/out")"
[ "$(cat "$WORK/to open.html.old")" = 'a page of the user' ] || fail "record --open overwrites a page: $(ls "$WORK")"
grep -qF "to open.html.old now" "$WORK/out" || fail "record --open does not say where the old page is: $(cat "$WORK/out")"
! BROWSER=$WORK/browser profctl record --open -d 0.5 --comm 'no such name' -o "$WORK/nothing.fxt" >"$WORK/out" 2>&1 ||
    fail "record --open without a sample succeeds"
[ ! -e "$WORK/nothing.html" ] || fail "record --open makes a page of nothing"

# On a terminal the first line says what is recorded and what ends it, and elsewhere there is none.
script -qec "profctl record -d 0.2 -o '$WORK/line.fxt' 2>&1" /dev/null </dev/null >"$WORK/out"
grep -q '^recording the whole machine, [0-9]* times a second on each CPU, for 0.2 s;' "$WORK/out" || fail "it begins with: $(cat "$WORK/out")"
script -qec "COLUMNS=200 profctl record -o '$WORK/line.fxt' -- true" /dev/null </dev/null >"$WORK/out"
grep -q '^recording true, .*, until it ends; Ctrl-C ends it' "$WORK/out" || fail "with a command it begins with: $(cat "$WORK/out")"
echo '{"max_duration_s": 1}' >"$WORK/second.json"
script -qec "COLUMNS=200 profctl record -p $busy --config '$WORK/second.json' -o '$WORK/line.fxt'" /dev/null </dev/null >"$WORK/out"
grep -q '^recording .* on each CPU, until they end; Ctrl-C ends it' "$WORK/out" || fail "with a target it begins with: $(cat "$WORK/out")"
script -qec "COLUMNS=200 profctl record -p $busy --comm busy --config '$WORK/second.json' -o '$WORK/line.fxt'" /dev/null </dev/null >"$WORK/out"
grep -q '^recording .* on each CPU; Ctrl-C ends it' "$WORK/out" || fail "where the end of a target ends nothing it begins with: $(cat "$WORK/out")"
profctl record -d 0.2 -o "$WORK/line.fxt" >"$WORK/out" 2>&1
! grep -q '^recording ' "$WORK/out" || fail "a line for a terminal is in a file: $(cat "$WORK/out")"
script -qec "stty cols 40; profctl record -d 0.2 -o '$WORK/line.fxt'" /dev/null </dev/null | tr -d '\r' >"$WORK/out"
tail -n 1 "$WORK/out" | grep -q 'the time went$' || fail "its end is: $(cat "$WORK/out")"
[ "$(tail -n 1 "$WORK/out" | wc -m)" -le 41 ] || fail "its last line is too long for 40 columns: $(cat "$WORK/out")"
