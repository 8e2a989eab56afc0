#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the administrator allows holds: who is not listed and what is above a limit is refused with a sentence
# that names file and member, and defaults give way. Every refusal is in the log, with fields for the journal,
# and no client can fill it. A config that is wrong keeps the daemon from starting.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "being several users takes root"
chmod 755 "$WORK"
config=$WORK/daemon.json

# refused STATUS PATTERN COMMAND...
refused() {
    local status=$1 pattern=$2
    shift 2
    expect_status "$status" "$@" >"$WORK/out" 2>&1
    grep -q "$pattern" "$WORK/out" || fail "'$*' says: $(cat "$WORK/out"), not '$pattern'"
}

as_user() {
    setpriv --reuid "$1" --regid "$2" --clear-groups env CPU_PROFILERD_SOCKET="$CPU_PROFILERD_SOCKET" profctl "${@:3}"
}

cat >"$config" <<'JSON'
{"allowed_uids": [4001], "allowed_gids": [4002], "max_frequency_hz": 500, "max_stack_copy_bytes": 8192,
 "max_duration_s": 1, "allow_kernel_stacks": false}
JSON
refused 0 'ok: root, 1 other user and the members of 1 group; at most 500 Hz, at most 8192 bytes of a stack, at most 1 s, stopped when unread for 600 s, without kernel stacks' \
    "$BIN/cpu-profilerd" --check "$config"
start_daemon --config "$config"
chmod 666 "$CPU_PROFILERD_SOCKET"

refused 1 "uid 4003 is not in allowed_uids, and none of its groups in allowed_gids, of $config" as_user 4003 4003 start
as_user 4001 4003 status >/dev/null || fail "a listed user is refused"
as_user 4003 4002 status >/dev/null || fail "a member of a listed group is refused"
grep -q '^peer pid [0-9]* uid 4003: refused, PermissionDenied: ' "$WORK/daemon.log" || fail "the log does not say who was refused"

refused 1 "session: -F: is above the administrator's limit; at most 500 is allowed (max_frequency_hz in $config)" profctl start -F 501
refused 1 "session: --kernel: is kept from sessions by the administrator; false is allowed (allow_kernel_stacks in $config)" profctl start --kernel
echo '{"stack_copy_bytes": 8200}' >"$WORK/session.json"
refused 1 "stack_copy_bytes: is above the administrator's limit; at most 8192 is allowed" profctl start --config "$WORK/session.json"
echo '{"max_duration_s": 2}' >"$WORK/session.json"
refused 1 "max_duration_s: is above the administrator's limit; at most 1 is allowed" profctl record --config "$WORK/session.json" -o "$WORK/p.fxt"

# Defaults give way, and an attached session has an end too.
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null
timeout 15 profctl record --native -d 12 -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"
grep -q '^profctl: note: stacks of the kernel are not recorded, since the administrator does not allow them' "$WORK/out" ||
    fail "record does not say that it goes without kernel stacks: $(cat "$WORK/out")"
profctl report --json "$WORK/p.fxt" >"$WORK/report.json" || fail "report"
kill "$BACKGROUND_PID"
expect_json "$WORK/report.json" "d['period_ns'] == 2005958 and d['duration_ns'] < 3e9" "the limits do not hold by default"
grep -q 'stopped by max_duration' "$WORK/daemon.log" || fail "the session did not end by itself"
stop_daemon || exit 1

# A file that is wrong, or that others could have written.
chmod 664 "$config"
for arguments in "--check" "--socket $WORK/x.sock --config"; do
    # shellcheck disable=SC2086
    refused 1 "$config: may be written to by others (its mode is 0664)" "$BIN/cpu-profilerd" $arguments "$config"
done
echo '{"max_frequency": 500}' >"$config"
chmod 644 "$config"
refused 1 "$config: max_frequency: is not a member of the config; did you mean 'max_frequency_hz'?" \
    "$BIN/cpu-profilerd" --socket "$WORK/x.sock" --config "$config"
refused 1 "$WORK/none.json: cannot be opened: No such file" "$BIN/cpu-profilerd" --socket "$WORK/x.sock" --config "$WORK/none.json"
refused 1 "$WORK/none.json: cannot be opened: No such file" "$BIN/cpu-profilerd" --check "$WORK/none.json"

# 20 refusals of a user in 10 s, and a line that counts the rest; sessions are not hidden behind them.
start_daemon
PYTHONPATH=${0%/*} python3 "${0%/*}/service_limits.py" flood "$CPU_PROFILERD_SOCKET" || fail "the flood"
wait_until 13 grep -q 'further lines about its refusals were left out' "$WORK/daemon.log" || fail "what was left out is not counted"
lines=$(grep -cE 'refused|cut off' "$WORK/daemon.log")
left_out=$(sed -n 's/^uid 0: \([0-9]*\) further lines about its refusals were left out$/\1/p' "$WORK/daemon.log")
[ "$lines" -ge 20 ] && [ "$lines" -le 40 ] || fail "$lines lines of a flood"
[ $((lines + left_out)) -eq 1000 ] || fail "$lines lines and $left_out that were left out are not 1000"
[ "$(grep -cE 'created for|closed, by a client' "$WORK/daemon.log")" -eq 20 ] || fail "sessions are missing from the log"
stop_daemon || exit 1

# The notes of sessions are lines about sessions: where a window has no room for a session's beginning, it has none for
# its note, but for the session in whose middle a window ends.
start_daemon
status=0
PYTHONPATH=${0%/*} python3 "${0%/*}/service_limits.py" notes "$CPU_PROFILERD_SOCKET" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "the sessions with notes"
[ "$status" -eq 77 ] || wait_until 13 grep -q 'further lines about its sessions were left out' "$WORK/daemon.log" ||
    fail "what was left out is not counted"
begun=$(grep -c 'created for' "$WORK/daemon.log")
noted=$(grep -c 'sample_period_ns is in step' "$WORK/daemon.log")
cut=$(grep -c 'instead of 4194304' "$WORK/daemon.log")
windows=$(grep -c 'lines about its sessions were left out' "$WORK/daemon.log")
[ "$noted" -ge 1 ] && [ "$noted" -le $((begun + windows)) ] && [ "$cut" -le $((begun + windows)) ] ||
    fail "$noted and $cut notes of $begun sessions are in the log"
stop_daemon || exit 1

unshare --mount bash -c 'mount -t tmpfs tmpfs /run && PYTHONPATH=$1 python3 "$1/service_limits.py" journal "$2" "$3"' \
    - "${0%/*}" "$BIN/cpu-profilerd" "$WORK" || fail "the journal's fields"
