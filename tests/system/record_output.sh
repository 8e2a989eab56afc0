#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What record does besides a file of its own: standard output under its other names, and a word about
# targets that were never seen, about an end that came by itself, and about a disk without room. No recording is lost to
# another or to an empty one, the command's status is record's, and a terminal that takes no output holds up nothing.
. "${0%/*}/lib.sh"
require_perf
start_daemon
run_in_background nice -n 10 "$WORKLOADS/busy" --seconds 280 >/dev/null
busy=$BACKGROUND_PID
run_in_background sleep 600
idle=$BACKGROUND_PID

for path in - /dev/stdout /dev/fd/1; do
    profctl record -d 0.5 -o "$path" 2>"$WORK/err" | profctl report --json - >"$WORK/report.json" ||
        fail "record -o $path: $(cat "$WORK/err")"
    expect_json "$WORK/report.json" "d['samples'] > 100" "record -o $path: too few samples"
    grep -q 'samples in' "$WORK/err" || fail "record -o $path: no summary on standard error"
done

echo "{\"targets\": {\"pids\": [$busy, $idle]}}" >"$WORK/targets.json"
profctl record -d 0.5 --config "$WORK/targets.json" -o "$WORK/targets.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
[ "$(cat "$WORK/err")" = "profctl: process $idle has no sample: it did not run" ] ||
    fail "record says of its targets: $(cat "$WORK/err")"

echo '{"max_duration_s": 1}' >"$WORK/short.json"
profctl record --config "$WORK/short.json" -o "$WORK/short.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
grep -qE "^profctl: note: sampling ended by itself after [0-9.]+ s: the session's max_duration_s is over\$" "$WORK/err" ||
    fail "record ends before its time and says: $(cat "$WORK/err")"
profctl record -d 0.5 -o "$WORK/asked.fxt" >"$WORK/out" 2>"$WORK/err" || fail "record: $(cat "$WORK/err")"
profctl report "$WORK/asked.fxt" >"$WORK/report" || fail "report"
record_says='^([0-9]+ samples) in ([0-9.]+ s), '
[[ $(head -n 1 "$WORK/out") =~ $record_says ]] || fail "record says: $(head -n 1 "$WORK/out")"
told=$(head -n 2 "$WORK/report" | tr '\n' ' ')
[[ $told == *", ${BASH_REMATCH[2]} at "*"; ${BASH_REMATCH[1]}, "* ]] ||
    fail "record and report tell another length: $(head -n 1 "$WORK/out"), $told"
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
grep -q "^the file that it replaces is $WORK/one.fxt.old\$" "$WORK/err" || fail "record does not say where the old file is: $(cat "$WORK/err")"
cp "$WORK/one.fxt" "$WORK/copy.fxt"
expect_status 1 profctl record -d 0.2 --comm no-such-name -o "$WORK/one.fxt" >/dev/null 2>"$WORK/err"
grep -q "^profctl: no process matched --comm 'no-such-name'; nothing was recorded; $WORK/one.fxt is unchanged\$" "$WORK/err" ||
    fail "an empty recording says: $(cat "$WORK/err")"
cmp "$WORK/copy.fxt" "$WORK/one.fxt" || fail "an empty recording has replaced one"
expect_status 1 profctl record -d 0.2 -p "$idle" -o "$WORK/none.fxt" >/dev/null 2>"$WORK/err"
grep -q "^profctl: -p $idle did not run; nothing was recorded; $WORK/none.fxt is not written\$" "$WORK/err" ||
    fail "a recording of an idle process says: $(cat "$WORK/err")"
[ ! -e "$WORK/none.fxt" ] || fail "an empty recording has been written"

# A standard stream that is closed is no reason to lose what was recorded: its number is no file's.
expect_status 1 profctl record -d 0.2 -o "$WORK/closed.fxt" >&- 2>"$WORK/err"
grep -q '^profctl: standard output: cannot be written' "$WORK/err" || fail "record without standard output says: $(cat "$WORK/err")"
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

# A terminal whose output is stopped, as by Ctrl-S, and that is not read.
timeout 60 python3 - "$WORK/stopped.fxt" <<'PYTHON' || fail "progress holds up the recording"
import os, subprocess, sys, termios
_, terminal = os.openpty()
termios.tcflow(terminal, termios.TCOOFF)
done = subprocess.run(["profctl", "record", "-d", "1", "-o", sys.argv[1]], stdout=subprocess.DEVNULL, stderr=terminal)
sys.exit(done.returncode)
PYTHON

# Without room not even the first bytes are kept.
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
! BROWSER=$WORK/browser profctl record --open -d 0.5 --comm 'no such name' -o "$WORK/nothing.fxt" >"$WORK/out" 2>&1 ||
    fail "record --open without a sample succeeds"
[ ! -e "$WORK/nothing.html" ] || fail "record --open makes a page of nothing"
