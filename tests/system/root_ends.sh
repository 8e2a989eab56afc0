#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Root stops, reads and closes a session whose client stands still, an attached one as well, whatever its state; another
# member does not. It need not be ended: an attached session that is not read is stopped by itself, and its user fetches what
# it recorded.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "being other users takes root"
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null

member=4711 other=4811 group=4712 client_PID=
mkdir "$WORK/for_others"
cp "$BIN/profctl" "$WORK/for_others"
chmod 755 "$WORK/for_others"
chmod 711 "$WORK"
mkdir -m 777 "$WORK/files"

share_socket() {
    chgrp "$group" "$CPU_PROFILERD_SOCKET" && chmod 660 "$CPU_PROFILERD_SOCKET" || fail "the socket cannot be given to a group"
}

# as_user UID profctl...
as_user() {
    setpriv --reuid "$1" --regid "$1" --groups "$group" env "PATH=$WORK/for_others:$PATH" "CPU_PROFILERD_SOCKET=$CPU_PROFILERD_SOCKET" "${@:2}"
}

# stand_still STEP...: a client of the member goes so far, and is stopped there; its pid is in client_pid.
stand_still() {
    coproc client { exec python3 "${0%/*}/root_ends.py" "$CPU_PROFILERD_SOCKET" "$member" "$group" "$@" 2>&1; }
    local answer
    read -r -t 30 answer <&"${client[0]}" && [ "$answer" = ready ] || fail "the client says: $answer"
    kill -STOP "$client_PID"
}

# go_on SENTENCE: the client asks for its session, and must hear that sentence.
go_on() {
    local answer pid=$client_PID
    kill -CONT "$pid"
    echo >&"${client[1]}"
    read -r -t 30 answer <&"${client[0]}" || fail "the client hears nothing"
    [[ $answer == *"$1"* ]] || fail "the client hears: $answer"
    echo >&"${client[1]}"
    wait "$pid"
}

state() {
    profctl status --json >"$WORK/status.json" || fail "status"
    json "$WORK/status.json" 'd["session"] and d["session"]["state"] or "none"'
}
state_is() {
    [ "$(state)" = "$1" ]
}

expect_refusal() {
    as_user "$other" profctl "$@" >"$WORK/out" 2>&1 && fail "another member may $1: $(cat "$WORK/out")"
    grep -qE "belongs to uid $member|uid $member is recording" "$WORK/out" || fail "another member is told: $(cat "$WORK/out")"
}

start_daemon
share_socket
for steps in "" "Start" "Start Read" "Start Stop"; do
    echo "== root ends what a client began with Create $steps"
    # shellcheck disable=SC2086
    stand_still $steps
    expect_refusal stop
    expect_refusal read -o "$WORK/files/other.fxt"
    expect_refusal close
    case $steps in
    *Stop | "") ;;
    *)
        profctl stop >"$WORK/out" 2>&1 || fail "root cannot stop: $(cat "$WORK/out")"
        grep -q "it belongs to uid $member since .*taken from the client" "$WORK/out" || fail "root is not told whose it is: $(cat "$WORK/out")"
        state_is stopped || fail "it is $(state)"
        ;;
    esac
    if [ -n "$steps" ]; then
        profctl read --native --force -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "root cannot read: $(cat "$WORK/out")"
        profctl report -n 0 "$WORK/p.fxt" | grep -q spin_three_fifths || fail "root did not read what was recorded"
    fi
    profctl close >"$WORK/out" 2>&1 || fail "root cannot close: $(cat "$WORK/out")"
    state_is none || fail "it is $(state)"
    go_on "root (pid "
done

echo "== what root has left alone is its user's"
stand_still Start
profctl stop >"$WORK/out" 2>&1 || fail "root cannot stop: $(cat "$WORK/out")"
killed=$client_PID # which bash forgets as soon as it has ended
kill -KILL "$killed"
wait "$killed" 2>/dev/null
expect_refusal read -o "$WORK/files/other.fxt"
as_user "$member" profctl read --native -o "$WORK/files/own.fxt" >"$WORK/out" 2>&1 || fail "its user cannot read: $(cat "$WORK/out")"
profctl report -n 0 "$WORK/files/own.fxt" | grep -q spin_three_fifths || fail "its user did not read what was recorded"
as_user "$member" profctl close >"$WORK/out" 2>&1 || fail "its user cannot close: $(cat "$WORK/out")"
stop_daemon || exit 1

echo "== what is not read ends by itself"
echo '{"max_unread_s": 2}' >"$WORK/daemon.json"
start_daemon --config "$WORK/daemon.json"
share_socket
stand_still Start Read
wait_until 20 state_is stopped || fail "it is $(state) for ever"
grep -q 'not read for 2 s (max_unread_s): sampling ends' "$WORK/daemon.log" || fail "the log does not say why"
expect_refusal stop
as_user "$member" profctl stop >"$WORK/out" 2>&1 || fail "its user cannot learn why: $(cat "$WORK/out")"
grep -q '(max_unread)' "$WORK/out" || fail "its user is told: $(cat "$WORK/out")"
as_user "$member" profctl read --native -o "$WORK/files/unread.fxt" >"$WORK/out" 2>&1 || fail "its user cannot read: $(cat "$WORK/out")"
profctl report -n 0 "$WORK/files/unread.fxt" | grep -q spin_three_fifths || fail "what was recorded is not there"
go_on "was not read in time (max_unread_s)"
as_user "$member" profctl close >"$WORK/out" 2>&1 || fail "its user cannot close: $(cat "$WORK/out")"

echo "== a recording that is read goes on"
profctl record --native -d 5 -o "$WORK/long.fxt" >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"
stop_daemon || exit 1
