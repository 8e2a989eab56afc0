#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Where code keeps data in rbp, the kernel's walk of frame pointers takes a word of that data for a return address.
# An unprivileged member of the group records what root runs, in every way in which the kernel's chain is the stack:
# with "unwind": "fp"; where daemon.json allows no copies; with copies, but of a 32-bit program; and of a program
# that the daemon cannot know, outside its pid namespace. No secret of secret_frame is in a recording, and no part of
# the key of an `openssl enc`; of their samples what is known to be code is there.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make processes of other users"
# The group is for this test alone.
if [ -z "${OWN_MOUNTS:-}" ]; then
    rm -rf "$WORK"
    unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
    OWN_MOUNTS=1 exec unshare --mount "$0"
fi
judge="$SOURCE_DIR/tests/system/no_chain_bytes.py"
user=4711 group=4700
member=(setpriv --reuid="$user" --regid="$user" --groups="$group")
chmod 755 "$WORK"
{ grep -v '^cpu-profiler:' /etc/group && echo "cpu-profiler:x:$group:"; } >"$WORK/group"
chmod 644 "$WORK/group"
mount --bind "$WORK/group" /etc/group || fail "no group can be made"
cp "$BIN/profctl" "$WORK/profctl"
echo '{"unwind": "fp", "frequency_hz": 4000}' >"$WORK/session.json"
echo '{"max_stack_copy_bytes": 0}' >"$WORK/daemon.json"
failed=0

build() {
    gcc "$@" -O1 -ffreestanding -fno-pie -fno-stack-protector -nostdlib -static -no-pie \
        "$SOURCE_DIR/tests/workloads/secret_frame.c" -o "$WORK/secret_frame"
}

# attack NAME "PID..." OPTION...: what the member gets of these programs, in NAME.fxt and, as the client reads it, in NAME.json. Each
# runs for 400 ms meanwhile: 1,600 ticks, of which the judge asks for 500.
attack() {
    local name=$1 pids recorder
    read -ra pids <<<"$2"
    shift 2
    "${member[@]}" "$WORK/profctl" record "$@" -o - >"$WORK/$name.fxt" 2>"$WORK/record.out" &
    recorder=$!
    background_pids+=("$recorder")
    wait_until 10 session_runs || fail "$name: $(cat "$WORK/record.out")"
    expect_run 400 "${pids[@]}"
    kill -TERM "$recorder"
    wait "$recorder" || fail "$name: $(cat "$WORK/record.out")"
    kill "${pids[@]}"
    profctl dump --json "$WORK/$name.fxt" >"$WORK/$name.json" || fail "dump of $name"
}

# secrets NAME WORD_BYTES KIND: judges a recording of secret_frame.
secrets() {
    python3 "$judge" secrets "$WORK/$1" "$2" "$3" || failed=1
}

cp "$WORKLOADS/secret_frame" "$WORK/secret_frame"
start_daemon
run_in_background "$WORK/secret_frame"
attack fp "$BACKGROUND_PID" --config "$WORK/session.json"
secrets fp 8 known

if command -v openssl >/dev/null; then
    key=$(head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
    # One that encrypts keeps what it works on in rbp, one that decrypts its round keys.
    run_in_background openssl enc -aes-128-cbc -e -K "$key" -iv "$key" -in /dev/zero -out /dev/null
    encrypts=$BACKGROUND_PID
    run_in_background openssl enc -aes-128-cbc -d -K "$key" -iv "$key" -in /dev/zero -out /dev/null
    attack openssl "$encrypts $BACKGROUND_PID" --config "$WORK/session.json"
    python3 "$judge" openssl "$WORK/openssl" "$key" || failed=1
else
    echo "openssl is missing: its key is not looked for"
fi

if build -m32 2>"$WORK/gcc.out" && kernel_runs "$WORK/secret_frame"; then
    run_in_background "$WORK/secret_frame"
    attack thirty_two "$BACKGROUND_PID" -F 4000
    secrets thirty_two 4 known
else
    echo "no 32-bit program can be built or run here: $(cat "$WORK/gcc.out")"
fi
stop_daemon || failed=1

cp "$WORKLOADS/secret_frame" "$WORK/secret_frame"
start_daemon --config "$WORK/daemon.json"
run_in_background "$WORK/secret_frame"
attack no_copies "$BACKGROUND_PID" -F 4000
secrets no_copies 8 known
stop_daemon || failed=1

# A daemon that sees nothing but itself; unshare ends as it does.
listens() {
    grep -qsF -- "$CPU_PROFILERD_SOCKET" "$WORK/daemon.log"
}
rm "$WORK/daemon.log" # the daemon before listened on the same socket
unshare --pid --fork --mount-proc --kill-child "$BIN/cpu-profilerd" --socket "$WORK/control.sock" >"$WORK/daemon.log" 2>&1 &
background_pids+=($!)
export CPU_PROFILERD_SOCKET="$WORK/control.sock"
wait_until 10 listens || fail "the daemon in a namespace does not listen: $(cat "$WORK/daemon.log")"
run_in_background "$WORK/secret_frame"
attack outside "$BACKGROUND_PID" -F 4000
secrets outside 8 unknown
[ "$failed" -eq 0 ] || fail "recordings have what they must not have"
