#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user without any right runs a program from a file that cannot be closed: a thread that closes it waits for as long
# as the user likes, and cannot be killed (see fuse_program.c). The worker reads this file. The daemon must answer, stop
# its session and end, and its main thread may not close the file. Three stories at one time, each with a daemon and a
# user of its own: the worker is taken over and sends the file back, which its system call filter does not allow; the
# same without that filter; and an honest worker.
#
# Code comes into the worker by /etc/ld.so.preload, in a copy of /etc that the daemon alone sees. The release build
# runs, since the sanitizers' libraries must come first.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can show the daemon another /etc/ld.so.preload"
at_once filtered unfiltered honest
declare -A users=([filtered]=4711 [unfiltered]=4713 [honest]=4714)
uid=${users[$STORY]}
chmod 711 "$WORK"
mkdir "$WORK/mnt" "$WORK/bin"
cp "$WORKLOADS/fuse_program" "$WORKLOADS/busy" "$BUILD_DIR"/lib/taken_over*.so "$WORK/"
chmod 755 "$WORK/mnt" "$WORK/fuse_program" "$WORK/busy"
# A machine without udev has none that users may open.
mknod -m 666 "$WORK/fuse" c 10 229 2>/dev/null || skip "no device can be made"
# The daemon's own /etc.
cp -a /etc "$WORK/etc" || fail "/etc cannot be copied"
cat >"$WORK/bin/cpu-profilerd" <<SCRIPT
#!/bin/bash
exec unshare --mount bash -c 'mount --bind "$WORK/etc" /etc && exec "$BIN/cpu-profilerd" "\$@"' bash "\$@"
SCRIPT
chmod 755 "$WORK/bin/cpu-profilerd"
cat >"$WORK/user.sh" <<'SCRIPT'
mount --bind "$1/fuse" /dev/fuse && exec setpriv --reuid="$2" --regid="$2" --clear-groups \
    "$1/fuse_program" "$1/mnt" "$1/busy" --seconds 100
SCRIPT

# daemon_closes: whether a thread of the daemon waits to have closed the file.
daemon_closes() {
    local word thread
    while read -r word thread; do
        [ "$word" != flush ] || [ ! -d "/proc/$daemon_pid/task/$thread" ] || return 0
    done <"$WORK/user.out"
    return 1
}

# is_ready LIBRARY: the daemon has had the file, and the worker has begun to do what the library has it do.
is_ready() {
    daemon_closes && { [ -z "$1" ] || [ -s "$WORK/worker.log" ]; }
}

# ended_by SIGNAL: that is what a worker which sends the file back is dying of. It stays until the file is closed, as a
# rule; one that was waited for already is told of by the log, if it was the filter's.
ended_by() {
    local word pid fields
    while read -r word pid; do
        { read -r -a fields <"/proc/$pid/stat"; } 2>/dev/null && [ $((fields[${#fields[@]} - 1] & 127)) -eq "$1" ] && return 0
    done <"$WORK/worker.log"
    [ "$1" -eq 31 ] && grep -q 'a system call that its filter does not know' "$WORK/daemon.log"
}

# has_other_worker: the daemon has seen that the worker is not to be trusted, and has one that has sent nothing.
has_other_worker() {
    local pid
    for pid in $(pgrep -P "$daemon_pid"); do
        grep -q " $pid\$" "$WORK/worker.log" || return 0
    done
    return 1
}

# not_ready USER_PID
not_ready() {
    ! process_ended "$1" || skip "no file can be unclosable here: $(cat "$WORK/user.out")"
    fail "the daemon never had the file, so this shows nothing: $(cat "$WORK/user.out" "$WORK/worker.log")"
}

# expect_answers [LIBRARY SIGNAL]: a session in which a worker with that code in it has the file, and ends by SIGNAL.
expect_answers() {
    local library=${1:-} signal=${2:-} user
    rm -f "$WORK/etc/ld.so.preload"
    [ -z "$library" ] || echo "$WORK/$library" >"$WORK/etc/ld.so.preload"
    : >"$WORK/worker.log"
    daemon_start "$WORK/bin" "$WORK" || fail "the daemon did not start"
    profctl start -F 999 -u "$uid" >"$WORK/out" 2>&1 || fail "start: $(cat "$WORK/out")"
    run_in_background unshare --mount bash "$WORK/user.sh" "$WORK" "$uid" >"$WORK/user.out" 2>&1
    user=$BACKGROUND_PID
    wait_until 20 is_ready "$library" || not_ready "$user"

    [ -z "$library" ] || wait_until 20 has_other_worker ||
        fail "no worker in the place of that one; the main thread is in $(cat "/proc/$daemon_pid/wchan")"
    [ -z "$library" ] || wait_until 10 ended_by "$signal" || fail "the worker does not end by signal $signal"
    timeout $((10 * PATIENCE)) profctl status >"$WORK/out" 2>&1 || fail "no status: $(cat "$WORK/out")"
    timeout $((10 * PATIENCE)) profctl stop >"$WORK/out" 2>&1 || fail "no stop: $(cat "$WORK/out")"
    # A session that is there keeps the daemon for 5 s, which one story is enough for.
    [ -z "$library" ] || timeout $((10 * PATIENCE)) profctl close >"$WORK/out" 2>&1 ||
        fail "no close: $(cat "$WORK/out")"
    ! grep -qx "flush $daemon_pid" "$WORK/user.out" || fail "the daemon's main thread closes the file"
    echo "$(grep -c '^flush' "$WORK/user.out") threads wait; the worker: $(tr '\n' ' ' <"$WORK/worker.log")"
    kill -TERM "$daemon_pid"
    # It serves what was recorded for 5 s, and waits up to 1 s for each of two workers and 2 s for threads: 9 s, and as much again
    # for the machine.
    wait_until 18 process_ended "$daemon_pid" || {
        say_threads "$daemon_pid"
        fail "the daemon does not end"
    }
    # Threads that wait for the filesystem end with it, and only then is the status known.
    kill -KILL "$user"
    stop_daemon || exit 1
}

case $STORY in
filtered) expect_answers taken_over.so 31 ;;            # SIGSYS: the filter's
unfiltered) expect_answers taken_over_unfiltered.so 9 ;; # the daemon's
honest) expect_answers ;;
esac
