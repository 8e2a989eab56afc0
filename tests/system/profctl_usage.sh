#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever is wrong with its arguments or files, profctl says so in one sentence on standard error and ends
# with the right status: 2 for a wrong command line, 1 for what failed. Needs no daemon.
set -u
export LC_ALL=C.UTF-8
umask 022

PROFCTL=$BUILD_DIR/bin/profctl
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export CPU_PROFILERD_SOCKET=$WORK/no.sock
failures=0
cd "$WORK" || exit 1

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect STATUS PATTERN ARGUMENT...: runs profctl; standard error is one complaint that has the pattern,
# and where the command line is wrong the usage below it.
expect() {
    local status=$1 pattern=$2 got=0 lines=1 said
    shift 2
    "$PROFCTL" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || got=$?
    mapfile -t said <"$WORK/err"
    [ "$got" -eq "$status" ] || fail "profctl $*: status $got, not $status"
    grep -q "^profctl: .*$pattern" <<<"${said[0]:-}" || fail "profctl $*: says '${said[*]}', not '$pattern'"
    if [ "$status" -eq 2 ]; then
        lines=2
        [[ ${said[1]:-} == 'usage: profctl'* ]] || fail "profctl $*: says no usage"
    fi
    [ ${#said[@]} -eq "$lines" ] || fail "profctl $*: says more than it should: ${said[*]}"
}

# Help goes to standard output and is no failure.
verbs=$("$PROFCTL" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(echo "$verbs" | wc -w)" -ge 6 ] || fail "--help names too few verbs: $verbs"
for verb in $verbs; do
    "$PROFCTL" "$verb" --help >"$WORK/out" 2>"$WORK/err" || fail "$verb --help: status $?"
    grep -q "^usage: profctl $verb" "$WORK/out" || fail "$verb --help: no usage"
    [ -s "$WORK/err" ] && fail "$verb --help: complains"
    "$PROFCTL" help "$verb" | cmp -s - "$WORK/out" || fail "help $verb is not $verb --help"
    grep -nE '.{81}' "$WORK/out" && fail "$verb --help: lines of more than 80 columns"
    # Each option that it lists is one.
    while read -r option; do
        "$PROFCTL" "$verb" "$option" >"$WORK/out2" 2>"$WORK/err" </dev/null
        grep -q 'no such option' "$WORK/err" && fail "$verb: help names $option, which is no option"
    done < <(sed -n 's/^ .*\(--[a-z]\+\).*/\1/p' "$WORK/out")
    expect 2 'no such option' "$verb" --nonsense
    expect 2 'no such option' "$verb" -Z
done
"$PROFCTL" --help | grep -nE '.{81}' && fail "--help: lines of more than 80 columns"
"$BUILD_DIR/bin/cpu-profilerd" -h | cmp -s - <("$BUILD_DIR/bin/cpu-profilerd" --help) || fail "cpu-profilerd -h is not --help"
"$BUILD_DIR/bin/cpu-profilerd" --help 2>"$WORK/err" >/dev/full && fail "cpu-profilerd --help on a full disk is no failure"
grep -q '^cpu-profilerd: standard output cannot be written: No space' "$WORK/err" || fail "cpu-profilerd --help on a full disk: $(cat "$WORK/err")"
"$BUILD_DIR/bin/cpu-profilerd" --help | grep -nE '.{81}' && fail "cpu-profilerd --help: lines of more than 80 columns"
"$PROFCTL" --version | grep -q '^profctl [0-9]' || fail "--version"

expect 2 'name a verb, such as: profctl record'
expect 2 'no such verb; see profctl --help' nonsense
expect 2 'reprot: there is no such verb; did you mean report?' reprot
expect 2 'reprot: there is no such verb; did you mean report?' help reprot
expect 2 'one verb at a time' help report record
expect 2 '--josn: there is no such option; did you mean --json?' report --josn a
expect 2 '--josn=x: there is no such option; did you mean --json?' report --josn=x a
expect 2 '-f: there is no such option; did you mean --format?' export -f folded a
"$PROFCTL" help | cmp -s - <("$PROFCTL" --help) || fail "help is not --help"
"$PROFCTL" --complete help re | grep -q '^report' || fail "help is not completed"
# The words of the books are explained where a verb prints them.
for verb in record read stop status report top; do
    "$PROFCTL" help "$verb" >"$WORK/out"
    for word in expected received kept filtered dropped lost throttled missed idle unexplained; do
        grep -qw "$word" "$WORK/out" || fail "$verb --help does not explain '$word'"
    done
done
expect 2 'a verb comes first' --nonsense
expect 2 'did you mean --version' --versoin
expect 2 'did you mean --version' -V
expect 2 'name a recording, such as: profctl report profile.fxt; there is no profile.fxt here' report
expect 2 'did you mean process' report --by proces a
expect 2 'lock.fxt was taken as what --callers is to be' report --callers lock.fxt
expect 2 'one recording at a time; join parts with: cat a b | profctl report -' report a b
expect 2 '-n x: ' report -n x a
expect 2 '-n -1: ' report -n -1 a
expect 2 'takes a value' report a -n
expect 2 '--by planet: give one of function, .*, line$' report --by planet a
# perf's name for it.
expect 2 '--by comm: give one of .*; did you mean command?$' report --by comm a
expect 2 '--sort name: give one of self, total' report --sort name a
for percent in x -1 101 nan 1x 0x10 ''; do
    expect 2 "--min $percent: give a percentage" report --tree --min "$percent" a
done
expect 2 '--tree, --callers, --callees, --processes, --threads and --annotate are one view each' report --callers f --callees g a
for option in --callers --callees --annotate; do
    expect 2 "$option is empty; give a name" report "$option" '' a
done
expect 2 'an operand is empty; give a name' report ''
expect 2 'an operand is empty; give a command' record -- ''
expect 2 '--inverted turns a tree round; add --tree' report --inverted a
expect 2 '--waits counts waits; add --event off-cpu' report --waits a
expect 2 '--waits counts waits; add --event off-cpu' report --waits --event cs a
expect 2 '--waits has columns of its own in a list' report --waits --event off-cpu --tree a
expect 2 '--waits has columns of its own in a list' report --waits --event off-cpu --per-second a
expect 2 'a tree is one of functions' report --tree --by thread a
expect 2 'a tree is by total' report --tree --sort total a
expect 2 '--by and --processes cannot be combined' report --processes --by thread a
expect 2 'are one view each' report --processes --tree a
expect 2 'are one view each' report --processes --threads a
expect 2 'shows times and no functions' report --threads --by thread a
expect 2 'shows times and no functions' report --threads --lines a
expect 2 'are of the whole recording' report --threads --from 1 a
expect 2 'are of the whole recording' report --threads --event off-cpu a
expect 2 '--inverted turns a tree round' report --processes --inverted a
expect 2 'a tree has no limit of rows' report --tree -n 3 a
expect 2 '--per-second is for lists' report --tree --per-second a
expect 2 '--min cuts trees' report --min 3 a
expect 2 'name a format with --format, one of folded, ' export a
expect 2 '--format pdf: give one of folded, ' export a --format pdf
expect 2 '--by pid: give one of command, process, thread' export a --format folded --by pid
expect 2 'pprof has processes and threads of its own' export a --format pprof --by thread
expect 2 'no operand' status now
expect 2 'stop takes no operand' stop now
expect 2 'close takes no operand' close now
expect 2 'start takes no operand; to record a command, use record' start -- sleep 1
expect 2 '-F 0: ' start -F 0
for duration in 0 0.5 1500ms 31536001 8761h 5d x ''; do
    expect 2 "-d $duration: give a whole number of seconds, 1 to 31536000" start -d "$duration"
done
expect 1 'no socket' start -d 30
expect 1 'no socket' start -d 90s
expect 1 'no socket' start -d 5m
expect 2 'a file goes after -o' read file
expect 2 'name a file with -o FILE, or standard output with -o -' read
expect 2 '--append and --force cannot be combined' read -o a.fxt --append --force
expect 2 '-o is empty' read -o ''
expect 2 'name a config, such as: profctl check web.json' check
expect 2 '-F 0: ' record -F 0
expect 1 'no socket' record -F 4k -d 1
expect 2 '-F 101k: give a number from 1 to 100000, such as 999 or 4k' record -F 101k
expect 2 '-F 4M: ' record -F 4M
expect 2 '-F k: ' record -F k
expect 2 '-F 99999999999999999999: ' record -F 99999999999999999999
for duration in 0 0ms inf 1e400 x '' 5d 1000000001; do
    expect 2 "-d $duration: give a time above 0, at most 1000000000 s, such as 5, 1.5, 250ms, 90s, 2m or 1h" record -d "$duration"
done
for duration in 5 .5 5s 250ms 2m 1h 7us; do
    expect 1 'no socket' record -d "$duration"
done
for time in x 0 601 11m; do
    expect 2 "--window $time: give a number of seconds from 1 to 600" top --window "$time"
done
expect 2 '--interval 50ms: give a number of seconds from 0.1 to 60, or 500ms, 2m' top --interval 50ms
expect 1 'no socket' top -b --interval 500ms --window 2m
# Options of perf record name what is done here in their place.
for option in -g '--call-graph dwarf' --call-graph=dwarf; do
    # shellcheck disable=SC2086
    expect 2 'there is no such option; stacks of programs are always recorded, and without --no-kernel the kernel.s' record $option
done
expect 2 '-c: there is no such option; -e EVENT:COUNT' record -c 1000
expect 2 '--user-callchains: there is no such option; --no-kernel leaves out' record --user-callchains
expect 2 '-a: there is no such option; the whole machine is recorded where' start -a
expect 2 '--off-cpu: there is no such option; --wall' record --off-cpu
expect 2 '--off-cpu: there is no such option; --event off-cpu' report --off-cpu
expect 2 '--wall: there is no such option; --event off-cpu' report --wall
expect 2 '-e sched:sched_switch: tracepoints are not recorded; --wall' record -e sched:sched_switch
# A name that promises a compression which is not there, before anything is recorded.
for end in zst xz bz2; do
    expect 2 "-o x.fxt.$end: .$end is not supported; name x.fxt, or x.fxt.gz, which is compressed" record -o "x.fxt.$end"
    expect 2 "-o x.json.$end: .$end is not supported" export a --format perfetto -o "x.json.$end"
done
expect 2 '--socket is empty' record -d 1 --socket ''
expect 2 '--socket is empty' start --socket ''
expect 2 '--socket is empty' status --socket ''
expect 2 'a command goes after --' record sleep 1
expect 2 'name a file' record -o - -- true
expect 2 "a command must follow '--'" record -d 1 --
expect 2 'a command goes after --' record -o -- sleep 1
expect 2 '-o is empty' record -d 1 -o ''
expect 2 '-o is empty' export a --format folded -o ''
script -qec "'$PROFCTL' record -d 1 -o -" /dev/null >"$WORK/out" </dev/null
status=$?
[ "$status" -eq 2 ] || fail "record -o - to a terminal: status $status"
grep -q 'standard output is a terminal' "$WORK/out" || fail "record -o - to a terminal: $(cat "$WORK/out")"

# Files that cannot be read, or are something else.
echo 'hello, world: this is a text' >"$WORK/text"
# A function that no stack has, and those that were meant.
python3 - "$SOURCE_DIR/tests/system" "$BUILD_DIR/bin/recording_maker" "$WORK/like.fxt" <<'PYTHON' || fail "no recording is made"
import sys
sys.path.insert(0, sys.argv[1])
from recording_maker import Recording, SYMBOLS
recording = Recording()
recording.name(7, 7, "app")
recording.module(7, 1, "/opt/app", "ab", 0x10000, 0x10000)
recording.data(SYMBOLS, *({"build_id": "ab", "module": "/opt/app", "start": hex(at), "size": 256, "name": name}
                          for at, name in ((0, "__lll_lock_wait"), (0x100, "render"))))
for address in (0x10008, 0x10108):
    recording.stack(7, [address])
recording.write(sys.argv[2], sys.argv[3])
PYTHON
expect 1 "no stack has a function 'lll_lock'; did you mean __lll_lock_wait, or '\*lll_lock\*'?" report "$WORK/like.fxt" --callers lll_lock
expect 1 "no stack has a function 'rneder'; did you mean render?" report "$WORK/like.fxt" --callees rneder
# Without a file, report and flamegraph take profile.fxt of the folder.
mkdir "$WORK/default" && : >"$WORK/default/profile.fxt"
for verb in report flamegraph; do
    (cd "$WORK/default" && "$PROFCTL" "$verb" 2>&1) | grep -q '^profctl: profile.fxt:\? .*empty' || fail "$verb does not take profile.fxt"
done
rm -r "$WORK/default"
: >"$WORK/empty"
printf '\020\000\004\106\170\124\026\000' >"$WORK/magic"
printf '\020\000\004\106\170\124\026\000\042\000\001\000' >"$WORK/cut"
gzip -k "$WORK/magic"
head -c 20 "$WORK/magic.gz" >"$WORK/cut.gz"
printf '\020\000\004\106\170\124\026\000\000\000\000\000\000\000\000\000' >"$WORK/damaged"
for verb in report dump 'export --format folded'; do
    # shellcheck disable=SC2086
    {
        expect 1 'missing cannot be opened: No such file' $verb "$WORK/missing"
        expect 1 'is a directory' $verb "$WORK"
        expect 1 'text is not a recording' $verb "$WORK/text"
        expect 1 'is empty' $verb "$WORK/empty"
        expect 1 'is empty' $verb -
        expect 1 'damaged is damaged at byte 8; showing the samples before that' $verb "$WORK/damaged"
        expect 1 'cut ends within the record at byte 8; showing the samples before that' $verb "$WORK/cut"
        expect 1 'cut.gz.* ends within' $verb "$WORK/cut.gz"
        "$PROFCTL" $verb "$WORK/magic" >"$WORK/out" || fail "$verb of an empty recording: status $?"
        "$PROFCTL" $verb "$WORK/magic.gz" | cmp -s - "$WORK/out" || fail "$verb: .gz differs"
        "$PROFCTL" $verb - <"$WORK/magic.gz" | cmp -s - "$WORK/out" || fail "$verb: stdin differs"
    }
done

expect 1 "magic: no stack has a function 'main'" report "$WORK/magic" --callers main
expect 1 "magic: no stack has a function 'main'" report "$WORK/magic" --annotate main
expect 2 'are one view each; leave all but one out' report "$WORK/magic" --annotate main --tree
expect 2 '--annotate shows one function whole; leave --by' report "$WORK/magic" --annotate main --by module
expect 2 '--annotate is read from files' report "$WORK/magic" --annotate main --addresses
expect 1 "magic: no sample was in a module 'libc'" report "$WORK/magic" --module libc

# Outputs that cannot be written; nothing is left behind.
mkdir "$WORK/folder"
expect 1 'folder is a directory' export "$WORK/magic" --format folded -o "$WORK/folder"
expect 1 'missing/file cannot be written: No such file' \
    export "$WORK/magic" --format folded -o "$WORK/missing/file"
expect 1 'folder is a directory' record -d 1 -o "$WORK/folder"
expect 1 'missing/file cannot be written: No such file.*make that folder first' record -d 1 -o "$WORK/missing/file"
"$PROFCTL" dump "$WORK/magic" 2>"$WORK/err" >/dev/full && fail "a full disk is no failure"
grep -q '^profctl: standard output cannot be written: No space' "$WORK/err" ||
    fail "a full disk: says '$(cat "$WORK/err")'"
"$PROFCTL" export "$WORK/magic" --format folded -o "$WORK/folded" || fail "export -o: status $?"
[ -e "$WORK/folded" ] || fail "export -o: no file"
ln -s magic "$WORK/link"
cp "$WORK/magic" "$WORK/kept"
expect 2 "link is the recording itself; name another file" export "$WORK/magic" --format folded -o "$WORK/link"
cmp -s "$WORK/magic" "$WORK/kept" || fail "export has replaced the recording"
for format in folded speedscope; do # behind itself, as a shell has it opened
    "$PROFCTL" export "$WORK/magic" --format $format >>"$WORK/magic" 2>"$WORK/err" && fail "export >>: no failure"
    "$PROFCTL" export - --format $format <"$WORK/magic" >>"$WORK/magic" 2>>"$WORK/err" && fail "export - >>: no failure"
    [ "$(grep -c 'is the recording itself; name another file' "$WORK/err")" -eq 2 ] || fail "export >>: says '$(cat "$WORK/err")'"
    cmp -s "$WORK/magic" "$WORK/kept" || fail "export has written behind the recording"
done
for verb in dump report "report --threads" "diff $WORK/kept"; do
    # shellcheck disable=SC2086 # a verb and its options
    "$PROFCTL" $verb "$WORK/magic" >>"$WORK/magic" 2>"$WORK/err" && fail "$verb >>: no failure"
    grep -q '^profctl: standard output is the recording itself; send it to another file' "$WORK/err" ||
        fail "$verb >>: says '$(cat "$WORK/err")'"
    cmp -s "$WORK/magic" "$WORK/kept" || fail "$verb has written behind the recording"
done
"$PROFCTL" export "$WORK/magic" --format folded -o "$WORK/folded.gz" || fail "export -o .gz: status $?"
gzip -dc "$WORK/folded.gz" | cmp -s - "$WORK/folded" || fail "export -o .gz is not compressed, or something else"
for path in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
    "$PROFCTL" export "$WORK/magic" --format folded -o $path | cmp -s - "$WORK/folded" || fail "export -o $path"
done

# No daemon.
expect 1 "no socket .*no.sock.*no daemon was started there: .*cpu-profilerd --socket $WORK/no.sock" status
expect 1 "no socket .*other.sock" status --socket "$WORK/other.sock"
expect 1 "magic is no socket: name the socket of the daemon with --socket" status --socket "$WORK/magic"
expect 1 "no socket .*no.sock" record -d 1 -o "$WORK/profile.fxt"
expect 1 "no socket .*no.sock" record -o "$WORK/profile.fxt" -- touch "$WORK/touched"
[ -e "$WORK/touched" ] && fail "the command ran although nothing was recorded"
expect 1 "no socket .*no.sock" start
expect 1 "no socket .*no.sock" stop
expect 1 "no socket .*no.sock" read -o "$WORK/profile.fxt"
expect 1 "no socket .*no.sock" close
expect 1 "no socket .*no.sock" record -d 1 -o /dev/stdout

# One that hangs up: it may have died, or have too many clients, which looks the same.
python3 -c '
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    listener.accept()[0].close()' "$WORK/mute.sock" &
mute_pid=$!
trap 'kill "$mute_pid"; rm -rf "$WORK"' EXIT
tries=100
until [ -S "$WORK/mute.sock" ] || [ $((tries -= 1)) -eq 0 ]; do
    sleep 0.05
done
for verb in status start stop close "read -o $WORK/profile.fxt" "record -d 1 -o $WORK/profile.fxt"; do
    # shellcheck disable=SC2086
    expect 1 'without an answer: it has ended, or serves 8 of a user already; see its log' \
        $verb --socket "$WORK/mute.sock"
done

# Configs.
echo '{"frequency_hz": 4000}' >"$WORK/good.json"
echo '{"frequency_hz": 0}' >"$WORK/bad.json"
"$PROFCTL" check "$WORK/good.json" >"$WORK/out" || fail "check of a good config: status $?"
grep -q 'good.json: ok' "$WORK/out" || fail "check of a good config: $(cat "$WORK/out")"
grep -q '^  sample_period_ns  *249753$' "$WORK/out" || fail "check shows no values: $(cat "$WORK/out")"
expect 1 'bad.json: frequency_hz: ' check "$WORK/bad.json"
head -c 65537 /dev/zero | tr '\0' ' ' >"$WORK/long.json"
expect 1 'long.json is too long: it may have 65536 bytes' check "$WORK/long.json"
# What this machine's kernel may not do is warned of, and only where the kernel walks the stacks.
limit=$(cat /proc/sys/kernel/perf_event_max_stack)
if [ "$limit" -lt 510 ]; then
    echo '{"unwind": "fp", "max_stack_depth": 510}' >"$WORK/deep.json"
    expect 0 "deep.json: max_stack_depth: warning: 510 .*perf_event_max_stack is $limit" check "$WORK/deep.json"
    "$PROFCTL" check --json "$WORK/deep.json" | grep -q '"ok":true.*"warnings":\[{"member":"max_stack_depth"' ||
        fail "check --json of a deep config says no warning"
    echo '{"unwind": "auto", "max_stack_depth": 510}' | "$PROFCTL" check - >"$WORK/out" 2>&1 ||
        fail "check of a deep config with auto: status $?"
    grep -q warning "$WORK/out" && fail "check of a deep config with auto warns: $(cat "$WORK/out")"
fi
echo '{"targets": {"pids": [1]}}' >"$WORK/targets.json"
expect 1 'targets.json: targets: cannot be combined with a command' \
    record -o "$WORK/profile.fxt" --config "$WORK/targets.json" -- true
expect 1 'bad.json: frequency_hz: ' start --config "$WORK/bad.json"

# With --json, messages are objects too, one a line.
expect_message() {
    local status=$1 expression=$2 got=0
    shift 2
    "$PROFCTL" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || got=$?
    [ "$got" -eq "$status" ] || fail "profctl $*: status $got, not $status"
    python3 -c 'import json, sys
d = json.loads(sys.stdin.read())
sys.exit(not eval(sys.argv[1]))' "$expression" <"$WORK/err" || fail "profctl $*: says $(cat "$WORK/err")"
}
for verb in status start stop close "read -o $WORK/r.fxt" "record -d 1 -o $WORK/r.fxt"; do
    # shellcheck disable=SC2086
    expect_message 1 "'no socket' in d['message'] and d['usage'] is None" $verb --json
done
expect_message 1 "'cannot be opened' in d['message']" report "$WORK/missing" --json
expect_message 2 "'no operand' in d['message'] and d['usage'].startswith('profctl status')" status now --json
expect_message 2 "d['message'].startswith('-d 0')" record -d 0 --json
expect_message 2 "'--json and -o - cannot be combined' in d['message']" read --json -o /dev/stdout

# Long options that are not what they look like.
expect 2 '--kernel=yes takes no value' record --kernel=yes
expect 2 '--help=x takes no value' status --help=x
expect 2 '--co may be one of several options; write it out' record --co x
expect 2 '--comx: there is no such option' record --comx x
expect 2 '-Z: there is no such option' record -Z

# Targets: what the daemon would refuse is refused here, and of the option.
for verb in record start; do
    expect 2 "-p 'x' is not a number; separate several by commas" $verb -p 1,x
    expect 2 "-p '0' is out of range; an integer from 1 to 4194304" $verb --pid 0
    expect 2 "-t '4194305' is out of range" $verb -t 4194305
    expect 2 "-u 'nobody-is-called-so': there is no such user" $verb -u root,nobody-is-called-so
    expect 2 "--comm 'chromium-browser' matches no name, since the kernel keeps 15 bytes" $verb --comm chromium-browser
    expect 2 "-G 'nginx.service' does not begin with '/'" $verb -G nginx.service
    expect 2 '-p takes a value' $verb -p
    expect 1 'no socket' $verb -p "1,$$" -p "$PPID" -t "$$" -u root,65534 --comm 'cc1*' -G /
    # No process has the highest number that a config takes.
    expect 1 '-p 4194304: there is no such process' $verb -p 1,4194304
    expect 1 '-t 4194304: there is no such thread' $verb -t 4194304
    if grep -q cgroup /proc/self/mounts; then
        expect 1 '-G /no-such-group: there is no such control group' $verb -G / -G /no-such-group
    fi
    echo '{"targets": {"pids": [1, 4194304]}}' >"$WORK/gone.json"
    expect 1 'gone.json: targets.pids: there is no process 4194304' $verb --config "$WORK/gone.json"
done
expect 2 '-a and -p cannot be combined' record -a -p 1
expect 2 '--comm and a command cannot be combined' record --comm x -- true
for verb in record start; do
    expect 2 '--kernel and --no-kernel cannot be combined' $verb --kernel --no-kernel
done
expect 1 'targets.pids: is too long; an array of 1 to 1024 integers' \
    record -o "$WORK/profile.fxt" -p "$(seq -s, 1 1025)"
expect 1 'text: config: line 1, column 1: a value is expected; ' check "$WORK/text"
printf '{\n  "frequency_hz": 99,\n}\n' >"$WORK/comma.json"
expect 1 "comma.json: config: line 3, column 1: a comma before '}'; " check "$WORK/comma.json"
expect 1 'missing cannot be opened: No such file' check "$WORK/missing"
expect 1 'missing cannot be opened: No such file' \
    record -o "$WORK/profile.fxt" --config "$WORK/missing"
expect 1 'text: config: line 1, column 1: ' record -o "$WORK/profile.fxt" --config "$WORK/text"
expect 1 'bad.json: frequency_hz: ' record -o "$WORK/profile.fxt" --config "$WORK/bad.json"

left=$(find "$WORK" -name 'profile.fxt*' -o -name '*.partial-*')
[ -z "$left" ] || fail "files are left behind: $left"
[ "$failures" -eq 0 ]
