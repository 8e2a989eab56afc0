#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl top` on a terminal of its own: what is hot stands first, keys do what the help says, any size shows something
# right, what it saves is a recording, it waits for the daemon and for other sessions, and however it ends, the terminal
# is as it was before. With --wall a key shows what a program sleeps in, in place of what it works in. Two stories at one
# time, each with a daemon: the screen, and what is printed without a terminal.
. "${0%/*}/lib.sh"
use_build release
require_perf
command -v tmux >/dev/null || skip "there is no tmux"
at_once screen lines
cd "$WORK" || exit 1

# The terminal: a shell in it, whose prompt nothing else prints. Its output is what capture-pane shows.
terminal() {
    tmux -S "$WORK/tmux" -f /dev/null "$@"
}
end_terminal() {
    terminal kill-server 2>/dev/null
}
at_end end_terminal
keys() {
    terminal send-keys -t top "$@"
}
screen() {
    terminal capture-pane -p -t top "$@"
}
shows() {
    screen | grep -qE -- "$1"
}
shows_not() {
    ! shows "$1"
}
expect_shown() {
    wait_until 20 shows "$1" || fail "'$1' is not on the screen: $(screen)"
}
expect_not_shown() {
    wait_until 20 shows_not "$1" || fail "'$1' stays on the screen: $(screen)"
}
# A row of the table: its first words are numbers.
first_row() {
    screen | grep -m 1 -E '^ *[0-9]+\.[0-9][0-9] '
}
first_row_has() {
    [[ $(first_row) == *"$1"* ]]
}
expect_first() {
    wait_until 20 first_row_has "$1" || fail "'$1' is not the first row: $(screen)"
}
# So many samples at least are in the window.
has_samples() {
    local count
    count=$(screen | sed -n '1s/.* \([0-9]*\) samples .*/\1/p')
    [ "${count:-0}" -ge "$1" ]
}
expect_samples() {
    wait_until 30 has_samples "$1" || fail "there are not $1 samples: $(screen)"
}
session_is() {
    "$BIN/profctl" status --json 2>/dev/null | grep -q "\"session\":$1"
}
top_pid() {
    pgrep -P "$(terminal list-panes -t top -F '#{pane_pid}')" -x profctl
}
top_is_gone() {
    [ -z "$(top_pid)" ]
}

# A program that is busy for an eighth of the time, so that the test is cheap.
"$WORKLOADS/busy" --seconds 600 --rest 7 >/dev/null &
busy=$!
background_pids+=("$busy")
start_napper() {
    "$WORKLOADS/napper" 4000 36000 --seconds 600 >/dev/null &
    napper=$!
    background_pids+=("$napper")
}
start_daemon

if [ "$STORY" = lines ]; then
    start_napper
    # Without a terminal.
    expect_status 1 profctl top >"$WORK/out" 2>"$WORK/err"
    grep -q 'standard output is not a terminal; -b prints' "$WORK/err" || fail "no remedy: $(cat "$WORK/err")"
    expect_status 2 profctl top -n 1 >"$WORK/out" 2>"$WORK/err"
    profctl top -p "$busy" -b -n 2 --interval 0.5 --rows 2 >"$WORK/out" || fail "top -b failed"
    [ "$(grep -c 'samples in' "$WORK/out")" -eq 2 ] || fail "there are not two looks: $(cat "$WORK/out")"
    grep -qE '^ +[0-9.]+ +[0-9.]+ +[0-9]+  spin_three_fifths  busy$' "$WORK/out" || fail "no row of spin_three_fifths: $(cat "$WORK/out")"
    for view in function process unit; do
        COLUMNS=40 profctl top -p "$busy" -b -n 1 --interval 0.5 --rows 2 --by "$view" >"$WORK/out" || fail "top -b failed"
        [ "$(wc -L <"$WORK/out")" -le 40 ] || fail "wider than 40 columns: $(cat "$WORK/out")"
        grep -qE "^ .* %.*  $view$" "$WORK/out" || fail "no titles in 40 columns: $(cat "$WORK/out")"
    done
    profctl top -p "$busy" --json -n 2 --interval 0.5 >"$WORK/out" || fail "top --json failed"
    # Of 50 samples either of the two functions may have more: 3 of 5 are no more than half of them in one of twelve runs.
    expect_json "$WORK/out" "len(lines) == 2 and {f['name'] for f in lines[1]['functions'][:2]} == {'spin_three_fifths', 'spin_two_fifths'} and lines[1]['processes'][0]['pid'] == $busy and lines[0]['pending'] >= 0" \
        "the two objects are not as they should be"
    profctl top -p "$napper" --wall --event off-cpu --sort total -b -n 1 --interval 3 >"$WORK/out" || fail "top -b --event failed"
    grep -qE '^[0-9:]+: off-cpu [0-9]+\.[0-9][0-9] ms, [0-9]+ samples? in [0-9.]+ s; [0-9]+ CPU' "$WORK/out" || fail "no head of the waits: $(cat "$WORK/out")"
    grep -qE '^  self %   total % +total ms  function' "$WORK/out" || fail "no column of times: $(cat "$WORK/out")"
    grep -qE '^ +[0-9.]+ +[0-9.]+ +[0-9.]+  nap_sleep +napper$' "$WORK/out" || fail "no row of nap_sleep: $(cat "$WORK/out")"
    profctl top -p "$napper" --wall --event off-cpu --json -n 1 --interval 3 --rows 0 >"$WORK/out" || fail "top --json --event failed"
    expect_json "$WORK/out" "d['event'] == 'off-cpu' and d['unit'] == 'ns' and d['value'] == sum(p['value'] for p in d['processes'] if p['pid'] == $napper)" \
        "the waits are not as they should be"
    expect_json "$WORK/out" "next(r for r in d['functions'] if r['name'] == 'nap_sleep')['total'] > 0" "nap_sleep is not what it waits in"
    profctl top -p "$napper" --wall --json -n 1 >"$WORK/out" || fail "top --json --wall failed"
    expect_json "$WORK/out" "'event' not in d and d['samples'] == sum(p['samples'] for p in d['processes'])" "the clock is not as without --wall"
    profctl top -p "$napper" -e page-faults:1 --event faults --json -n 1 >"$WORK/out" || fail "top -e failed"
    expect_json "$WORK/out" "d['event'] == 'page-faults' and d['unit'] == 'faults'" "the other event is not shown"
    profctl top -p "$napper" -e cs --event cs -b -n 1 --interval 0.5 >"$WORK/out" || fail "top -b --event cs failed"
    grep -qE '^  self %   total % +switches  function' "$WORK/out" || fail "no column of switches: $(cat "$WORK/out")"
    profctl top -p "$busy" -b -n 1 --interval 0.5 2>"$WORK/err" >/dev/full && fail "a full disk is no failure"
    [ "$(cat "$WORK/err")" = "profctl: standard output cannot be written: No space left on device" ] || fail "a full disk: says '$(cat "$WORK/err")'"
    expect_status 1 profctl top -p "$napper" --event off-cpu -b -n 1 >"$WORK/out" 2>"$WORK/err"
    grep -q "the session has no event 'off-cpu'; it has cpu-clock alone: --wall adds" "$WORK/err" || fail "no remedy: $(cat "$WORK/err")"
    exit
fi

# One that was started in the background has stopped before it shows anything, with the session; a signal ends it.
cat >"$WORK/behind.sh" <<'BEHIND'
set -m
profctl top &
until [ "$(ps -o stat= -p $! | cut -c1)" = T ]; do sleep 0.05; done
kill -TERM $!
kill -CONT $!
wait $!
echo "ended with $?"
BEHIND
TERM=screen timeout 20 script -qec "bash --norc $WORK/behind.sh" /dev/null </dev/null >"$WORK/behind" 2>&1 || true
grep -q 'ended with' "$WORK/behind" || fail "a signal does not end top in the background: $(cat -v "$WORK/behind")"

terminal new-session -d -x 80 -y 24 -s top env PS1='prompt> ' TERM=screen "PATH=$PATH" "CPU_PROFILERD_SOCKET=$CPU_PROFILERD_SOCKET" \
    bash --norc --noprofile
expect_shown 'prompt>'
keys "stty -a >before; profctl top -p $busy --window 20; echo status \$?; stty -a >after" Enter

# What cannot move its cursor gets no screen.
script -qec "TERM=dumb profctl top" /dev/null </dev/null >"$WORK/dumb" 2>&1 && fail "a dumb terminal is taken"
grep -q "a terminal of the kind 'dumb' cannot move its cursor" "$WORK/dumb" || fail "a dumb terminal: $(cat "$WORK/dumb")"

# What is hot, and what called it.
expect_samples 200
expect_first spin_three_fifths
shows '^callers of spin_three_fifths' || fail "no callers: $(screen)"
shows '100\.00 +[0-9]+ +alternate' || fail "alternate is not the caller: $(screen)"
shows '^lost [0-9]+  missed [0-9]+ .*truncated .*kept' || fail "no books: $(screen)"
shows '^CPU .*%' || fail "no CPUs: $(screen)"
screen -e | grep -q $'\033\[31m.*spin_two_fifths' || fail "what is hot is not red: $(screen -e)"

# Keys.
keys s
expect_shown 'by total'
keys s
expect_shown 'by self'
keys Down
keys p
expect_shown "$busy  busy"
keys u
expect_shown 'processes  unit'
keys f
keys / two_f
expect_first spin_two_fifths
expect_not_shown '[0-9]  spin_three_fifths'
keys Enter
keys Escape
expect_first spin_three_fifths
keys e
expect_shown '^the session has no other event: --wall adds'
keys '?'
expect_shown 'any other key goes back'
keys x
expect_first spin_three_fifths
keys Space
expect_shown FROZEN
frozen=$(screen | head -1 | sed 's/.*FROZEN//; s/[^ ]* *$//')
clock=$(screen | head -1 | grep -oE '[0-9:]+$')
clock_has_moved() {
    ! shows "$clock"
}
wait_until 10 clock_has_moved || fail "a frozen screen has no clock: $(screen)"
[ "$frozen" = "$(screen | head -1 | sed 's/.*FROZEN//; s/[^ ]* *$//')" ] || fail "a frozen screen changes: $(screen)"
keys Space
expect_not_shown FROZEN

# Sizes.
terminal resize-window -t top -x 20 -y 5
expect_shown '^ *[0-9]+\.[0-9][0-9]  spin_.*fths$'
expect_shown '^q quit  \? help$'
expect_shown '^self %  function$'
keys s
expect_shown '^total%  function$'
keys s
expect_shown '^self %  function$'
terminal resize-window -t top -x 19 -y 5
expect_shown '^too small'
terminal resize-window -t top -x 200 -y 50
expect_shown '^ +[0-9.]+ +[0-9.]+  spin_three_fifths {90,}busy'
terminal resize-window -t top -x 80 -y 24
expect_shown '^ +[0-9.]+ +[0-9.]+  spin_three_fifths {10,40}busy'
expect_shown '^q quit  \? help .* w save '

# Another rate is another session; both are in what is saved.
keys +
expect_shown 'at 998 Hz'
expect_samples 100
keys w
expect_shown '^save as: top-.*fxt_'
keys Enter
expect_shown '^saved [0-9]+ samples of [0-9]+ s in top-'
read -r count file < <(screen | sed -n 's/^saved \([0-9]*\) samples of [0-9]* s in \(top-.*fxt\).*/\1 \2/p')
profctl report --json "$file" >"$WORK/saved.json" || fail "what was saved is no recording"
expect_json "$WORK/saved.json" "d['samples'] == $count" "report does not have the $count samples that were saved"
expect_json "$WORK/saved.json" "d['rows'][0]['name'] == 'spin_three_fifths' and d['rows'][1]['name'] == 'spin_two_fifths'" \
    "what was hot is not so in what was saved"

# The daemon stands still, goes, and comes back.
kill -STOP "$daemon_pid"
expect_shown 'the daemon has not answered for'
kill -CONT "$daemon_pid"
expect_not_shown 'the daemon has not answered for'
kill -KILL "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_pid=
expect_shown 'no daemon listens'
start_daemon
expect_not_shown 'no daemon listens'
expect_samples 100

# A shell has the terminal meanwhile, and gives it back with its own modes.
kill -STOP "$(top_pid)"
expect_shown 'Stopped'
keys fg Enter
expect_not_shown 'Stopped'
keys p
expect_shown "$busy  busy"
keys f

# A program that stops itself keeps no session from others.
keys C-z
expect_shown 'Stopped'
wait_until 10 session_is null || fail "top is stopped, and its session is there"
rm -f after
keys 'fg; echo status $?; stty -a >after' Enter
expect_shown '^profctl top'
expect_first spin_three_fifths
keys q
expect_shown '^status 0'
wait_until 10 test -s after
cmp before after || fail "q does not leave the terminal as it was"

# Another session is there; it is named, and then is gone.
run_in_background profctl record -o "$WORK/other.fxt" >/dev/null
other=$BACKGROUND_PID
wait_until 10 session_runs || fail "record does not begin"
expect_status 1 profctl top -b -n 1 >"$WORK/out" 2>"$WORK/err"
grep -q "is already recording (profctl, pid $other" "$WORK/err" || fail "who has the daemon is not said: $(cat "$WORK/err")"
rm -f after
keys "clear; NO_COLOR=1 profctl top -p $busy; echo status \$?; stty -a >after" Enter
expect_shown 'waiting: .*is already recording'
expect_shown "pid $other"
kill -TERM "$other"
wait "$other" || fail "record failed"
expect_not_shown waiting
expect_first spin_three_fifths
screen -e | grep -q $'\033\[[0-9;]*3[0-7]m' && fail "there are colours in spite of NO_COLOR"

# However it ends, the terminal is as it was.
kill -TERM "$(top_pid)"
expect_shown '^status 0'
wait_until 10 test -s after
cmp before after || fail "SIGTERM does not leave the terminal as it was"
for signal in HUP QUIT SEGV ABRT; do
    rm -f after
    keys "clear; profctl top -p $busy; echo \"ended \$?\"; stty -a >after" Enter
    expect_shown '^profctl top'
    kill "-$signal" "$(top_pid)"
    expect_shown '^ended [0-9]+'
    wait_until 10 test -s after
    cmp before after || fail "SIG$signal does not leave the terminal as it was"
    shows '^profctl top  ' && fail "SIG$signal leaves the other screen: $(screen)"
done
wait_until 10 top_is_gone || fail "top goes on"

# What a program sleeps in, and what it works in.
start_napper
rm -f after
keys "clear; profctl top -p $napper --window 20 --wall --sort total --filter nap_; echo status \$?; stty -a >after" Enter
expect_samples 50
expect_first nap_spin
shows '^profctl top  cpu-clock  [0-9]+ samples .* at 499 Hz' || fail "the head line does not have the clock: $(screen)"
shows '^ self %  total %  function \(by total\)' || fail "the clock has other columns with --wall: $(screen)"
shows 'f p u views  e events' || fail "the foot does not have the key: $(screen)"
keys e
expect_first nap_sleep
shows ' schedule ' && fail "waits are in the scheduler: $(screen)"
expect_shown '^profctl top  off-cpu [0-9]+\.[0-9][0-9] ms  [0-9]+ samples'
shows '^ self %  total % +total ms  function \(by total\)' || fail "there is no column of times: $(screen)"
expect_shown '^ +[0-9.]+ +(9[0-9]|100)\.[0-9][0-9] +[0-9]{3,}\.[0-9][0-9]  nap_sleep +napper' # but for the wait that had begun before
expect_shown '^callers of nap_sleep'
expect_shown '^ 100\.00 +[0-9]{3,}\.[0-9][0-9]  main '
shows '^CPU .*%' || fail "no CPUs: $(screen)"
shows '^lost [0-9]+  missed [0-9]+ ' || fail "no books: $(screen)"
keys Escape
expect_not_shown 'filter:'
keys p
expect_shown '^ +[0-9.]+ +[0-9]{3,}\.[0-9][0-9] +'"$napper"'  napper$'
shows '^      % +ms      pid  process' || fail "there is no column of times: $(screen)"
keys u
expect_shown '^ +[0-9.]+ +[0-9]{3,}\.[0-9][0-9] +1  '
keys f / nap_ Enter
terminal resize-window -t top -x 20 -y 5
expect_shown '^top  off-cpu ms'
expect_shown '^ *[0-9]+\.[0-9][0-9]  nap_sleep$'
expect_shown '^q quit  \? help$'
terminal resize-window -t top -x 200 -y 50
expect_shown '^ +[0-9.]+ +[0-9.]+ +[0-9.]+  nap_sleep {90,}napper'
terminal resize-window -t top -x 80 -y 24
expect_shown '^ +[0-9.]+ +[0-9.]+ +[0-9.]+  nap_sleep {10,40}napper'
keys e
expect_shown '^profctl top  preempted [0-9.]+ ms  [0-9]+ samples?'
keys e
expect_first nap_spin
keys w
expect_shown '^save as: top-.*fxt_'
keys Enter
expect_shown '^saved [0-9]+ samples, [0-9]+ of other events, of [0-9]+ s in top-'
file=$(screen | sed -n 's/^saved .* in \(top-.*fxt\).*/\1/p')
profctl report --event off-cpu --json -n 0 "$file" >"$WORK/saved.json" || fail "the waits are not in what was saved"
expect_json "$WORK/saved.json" "d['event'] == 'off-cpu' and next(r for r in d['rows'] if r['name'] == 'nap_sleep')['total'] > d['value'] / 2" \
    "what the program slept in is not so in what was saved"
keys q
expect_shown '^status 0'

echo "keys, sizes, events, a saved recording, other sessions, and six ways to end"
