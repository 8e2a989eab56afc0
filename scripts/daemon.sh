# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by whatever runs a private daemon: scripts/quickstart.sh, system tests, benches. The caller
# runs under `set -u` and calls daemon_stop from its EXIT trap.

# How many times longer than elsewhere things may take here: an emulated machine says 6.
PATIENCE=${CPU_PROFILERD_PATIENCE:-1}

# nap_briefly: for 0.05 s, and where NAP_FIFO is a pipe of the caller's without a writer, without a process.
nap_briefly() {
    if [ -p "${NAP_FIFO:-}" ]; then
        read -rt 0.05 <>"$NAP_FIFO" || true # the time is up
    else
        sleep 0.05
    fi
}

# wait_until SECONDS COMMAND...: polls 20 times a second; status 1 when the time is up, PATIENCE times as long.
wait_until() {
    local tries=$(($1 * 20 * PATIENCE))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        if [ "$tries" -le 0 ]; then
            return 1
        fi
        nap_briefly
    done
}

daemon_pid=
daemon_starter=() # what starts it, if anything

daemon_listens_or_died() {
    grep -qF -- "$CPU_PROFILERD_SOCKET" "$1" || ! kill -0 "$daemon_pid" 2>/dev/null
}

# daemon_start BIN_DIR WORK_DIR [ARGUMENT...]: starts BIN_DIR/cpu-profilerd on a socket in WORK_DIR, its
# output in WORK_DIR/daemon.log, and exports CPU_PROFILERD_SOCKET. Returns once the daemon has said that
# it listens; else prints what it said and returns 1.
daemon_start() {
    local bin=$1 log=$2/daemon.log
    export CPU_PROFILERD_SOCKET=$2/control.sock
    shift 2
    : >"$log"
    "${daemon_starter[@]}" "$bin/cpu-profilerd" --socket "$CPU_PROFILERD_SOCKET" "$@" >>"$log" 2>&1 &
    daemon_pid=$!
    wait_until 10 daemon_listens_or_died "$log" || true
    if kill -0 "$daemon_pid" 2>/dev/null && grep -qF -- "$CPU_PROFILERD_SOCKET" "$log"; then
        return 0
    fi
    echo "the daemon does not listen; it said:" >&2
    cat "$log" >&2
    daemon_stop
    return 1
}

# say_threads PID: what each thread does, of a process that should have ended: its name and state, where in the kernel it
# waits, and for how many ns it ran, and was kept from a CPU.
say_threads() {
    local thread stat
    echo "its threads, at a load of $(cut -d ' ' -f 1-3 /proc/loadavg):"
    for thread in /proc/"$1"/task/*; do
        stat=$(cat "$thread/stat" 2>/dev/null) || continue
        stat=${stat##*) }
        echo "${thread##*/} $(cat "$thread/comm"): ${stat:0:1} $(cat "$thread/wchan") $(cut -d ' ' -f 1-2 "$thread/schedstat")"
        cat "$thread/stack"
    done 2>/dev/null
    pgrep -l -P "$1"
}

# daemon_stop: asks the daemon to end, kills it after 10 s, and returns its exit status; 0 without one.
daemon_stop() {
    local pid=$daemon_pid status=0
    if [ -z "$pid" ]; then
        return 0
    fi
    daemon_pid=
    kill -TERM "$pid" 2>/dev/null
    # An ended child stays visible to kill -0 until it is waited for, so the state is asked for.
    wait_until 10 process_ended "$pid" || {
        say_threads "$pid"
        kill -KILL "$pid" 2>/dev/null
    }
    wait "$pid" || status=$?
    return "$status"
}

# Without a process, since it is asked again and again.
process_ended() {
    local stat=
    # All of it: a name may have a newline.
    read -rd '' stat 2>/dev/null <"/proc/$1/stat" || true
    stat=${stat##*) }
    [ -z "$stat" ] || [ "${stat:0:1}" = Z ]
}
