#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A socket that is passed starts the daemon with the first connection, which is served, and lets it end when it
# has had nothing to do; one that cannot be served is refused with a sentence.
. "${0%/*}/lib.sh"
require_perf
export CPU_PROFILERD_SOCKET=$WORK/passed.sock

# activate ARGUMENT...: systemd-socket-activate, until what it has started ends.
activate() {
    rm -f "$CPU_PROFILERD_SOCKET"
    : >"$WORK/log"
    systemd-socket-activate "$@" >"$WORK/log" 2>&1 &
    background_pids+=($!)
    activated=$!
    wait_until 5 grep -q 'Listening on' "$WORK/log" || fail "systemd-socket-activate: $(cat "$WORK/log")"
}

run_in_background "$WORKLOADS/busy" --seconds 280 --rest 4 >/dev/null
activate -l "$CPU_PROFILERD_SOCKET" "$BIN/cpu-profilerd" --idle-exit-s 2
grep -q cpu-profilerd "/proc/$activated/comm" && fail "the daemon runs before anybody wants it"
profctl record --native -d 1 -o "$WORK/p.fxt" >"$WORK/out" 2>&1 &
recording=$!
wait_until 10 grep -q created "$WORK/log" || fail "the first connection is not served: $(cat "$WORK/out")"
# Keeps the daemon until the next session is there, however long that takes.
python3 -c 'import socket, sys, time
held = socket.socket(socket.AF_UNIX)
held.connect(sys.argv[1])
time.sleep(600)' "$CPU_PROFILERD_SOCKET" &
holder=$!
background_pids+=("$holder")
wait "$recording" || fail "the first connection: $(cat "$WORK/out")"
profctl report "$WORK/p.fxt" >/dev/null || fail "no recording"
grep -q 'listening on the socket of the service manager' "$WORK/log" || fail "it made a socket of its own: $(cat "$WORK/log")"

# A session without a connection keeps it.
profctl start >/dev/null || fail "start"
kill "$holder"
sleep 3.5
kill -0 "$activated" || fail "the daemon ended with a session"
profctl close >/dev/null || fail "close"
wait_until 6 process_ended "$activated" || fail "the daemon does not end without a session and a connection"
wait "$activated" || fail "an idle daemon ended with status $?"
grep -q 'no session and no connection for 2 s' "$WORK/log" || fail "it does not say why it ended"
[ -S "$CPU_PROFILERD_SOCKET" ] || fail "the manager's socket is gone"

activate -l "$CPU_PROFILERD_SOCKET" "$BIN/cpu-profilerd"
profctl status >/dev/null || fail "status"
grep -q 'ends after 60 s without' "$WORK/log" || fail "a passed socket does not let it end by itself: $(cat "$WORK/log")"
kill "$activated"
wait "$activated" || fail "a passed socket: status $? at the end"

# refused PATTERN ARGUMENT...
refused() {
    local pattern=$1 status=0
    shift
    activate "$@" "$BIN/cpu-profilerd"
    python3 - "$CPU_PROFILERD_SOCKET" "$WORK/other.sock" <<'PYTHON' || true
import socket, sys
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
    with socket.socket(socket.AF_UNIX, kind) as knocking:
        try:
            knocking.connect(sys.argv[1])
            knocking.send(b"x")
        except OSError:
            pass
PYTHON
    wait_until 5 process_ended "$activated" || fail "$*: the daemon serves it"
    wait "$activated" || status=$?
    [ "$status" -eq 1 ] || fail "$*: status $status"
    grep -q "$pattern" "$WORK/log" || fail "$*: says $(cat "$WORK/log")"
}

refused 'is no listening Unix stream socket' -d -l "$CPU_PROFILERD_SOCKET"
refused 'is no listening Unix stream socket' --seqpacket -l "$CPU_PROFILERD_SOCKET"
refused '2 sockets were passed, one is expected' -l "$CPU_PROFILERD_SOCKET" -l "$WORK/other.sock"
expect_status 2 "$BIN/cpu-profilerd" --idle-exit-s soon 2>"$WORK/err"
grep -q "'soon' is not a number of seconds" "$WORK/err" || fail "--idle-exit-s soon: $(cat "$WORK/err")"
