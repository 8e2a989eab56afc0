# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by every system test:
#   #!/bin/bash
#   . "${0%/*}/lib.sh"
#   require_perf
#   use_build release          # what depends on speed; default: the dev build, with sanitizers
#   start_daemon
#   profctl record -d 1 -o "$WORK/p.fxt" || fail "record failed"
# WORK is a private folder, WORKLOADS has the programs to profile. At the end, however the test ends, the
# daemon and what run_in_background() started are stopped; a daemon that does not end with status 0 after
# SIGTERM (a sanitizer's finding, a leak) fails the test.
set -u
# Whatever the caller has: what tools say and sort is compared, and other users must read what a test makes.
export LC_ALL=C.UTF-8
umask 022

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
RELEASE_DIR=${RELEASE_DIR:-$SOURCE_DIR/build/release}
WORKLOADS=$BUILD_DIR/bin/workloads
BIN=$BUILD_DIR/bin
search_path=$PATH
PATH=$BIN:$search_path
WORK=$(mktemp -d)
NAP_FIFO=$WORK/nap
mkfifo "$NAP_FIFO"
background_pids=()
end_functions=()

# shellcheck source=scripts/daemon.sh
. "$SOURCE_DIR/scripts/daemon.sh"

# A process that hears no SIGTERM (unshare, while it waits for its child) must not hold up the end of a failed test.
background_is_over() {
    local pid
    for pid in "${background_pids[@]}"; do
        process_ended "$pid" || return 1
    done
}

finish() {
    local status=$?
    if [ ${#background_pids[@]} -gt 0 ]; then
        kill "${background_pids[@]}" 2>/dev/null
        kill -CONT "${background_pids[@]}" 2>/dev/null # one that stands still hears no SIGTERM
        wait_until 5 background_is_over || kill -KILL "${background_pids[@]}" 2>/dev/null
        wait "${background_pids[@]}" 2>/dev/null
    fi
    if ! stop_daemon; then
        status=1
    fi
    local ending
    for ending in "${end_functions[@]}"; do
        "$ending"
    done
    if [ "$status" -ne 0 ] && [ -s "$WORK/daemon.log" ]; then
        echo "--- the daemon said:"
        cat "$WORK/daemon.log"
    fi
    rm -rf "$WORK"
    exit "$status"
}
trap finish EXIT

trap 'exit 130' INT
trap 'exit 143' TERM

# at_end FUNCTION: is called when the test ends, however it does.
at_end() {
    end_functions+=("$1")
}

fail() {
    echo "FAIL: $*"
    exit 1
}

# skip WHY: exit status 77, or a failure where CPU_PROFILERD_REQUIRE_PERF=1 says that nothing is skipped.
skip() {
    if [ "${CPU_PROFILERD_REQUIRE_PERF:-0}" = 1 ]; then
        fail "$* (and CPU_PROFILERD_REQUIRE_PERF=1 allows no skipping)"
    fi
    echo "SKIP: $*"
    exit 77
}

require_perf() {
    local why
    why=$("$WORKLOADS/perf_probe") || skip "$why"
}

# use_build dev|release: whose programs the rest of the test runs. profctl is found by PATH: a function of
# that name would put a shell between `profctl ... &` and its pid.
use_build() {
    case $1 in
    dev) BIN=$BUILD_DIR/bin ;;
    release) BIN=$RELEASE_DIR/bin ;;
    *) fail "no build '$1'" ;;
    esac
    PATH=$BIN:$search_path
    if [ ! -x "$BIN/cpu-profilerd" ] || [ ! -x "$BIN/profctl" ]; then
        skip "no programs in $BIN: build the preset '$1' first"
    fi
}

# kernel_runs PROGRAM: whether the kernel executes programs of that kind, such as those of 32 bits.
kernel_runs() {
    python3 - "$1" <<'PYTHON'
import errno, subprocess, sys
try:
    subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).kill()
except OSError as error:
    if error.errno != errno.ENOEXEC:
        raise
    sys.exit(1)
PYTHON
}

# start_daemon [ARGUMENT...]: on a socket in WORK. With CPU_PROFILERD_SERVICE=UNIT it is the installed service that is
# started and stopped, whatever use_build says; arguments it cannot have.
start_daemon() {
    if [ -n "${CPU_PROFILERD_SERVICE:-}" ]; then
        [ $# -eq 0 ] || skip "a service has no arguments"
        systemctl reset-failed "$CPU_PROFILERD_SERVICE" # the count of its starts
        systemctl start "$CPU_PROFILERD_SERVICE" || fail "the service did not start"
        export CPU_PROFILERD_SOCKET=/run/cpu-profilerd/control.sock
        daemon_pid=$(systemctl show "$CPU_PROFILERD_SERVICE" -p MainPID --value)
        return
    fi
    daemon_start "$BIN" "$WORK" "$@" || fail "the daemon did not start"
}

stop_service() {
    [ -n "$daemon_pid" ] || return 0
    daemon_pid=
    systemctl stop "$CPU_PROFILERD_SERVICE" 2>/dev/null
    journalctl --no-pager -o cat -u "$CPU_PROFILERD_SERVICE" >"$WORK/daemon.log"
    [ "$(systemctl show "$CPU_PROFILERD_SERVICE" -p Result --value)" = success ]
}

# stop_daemon: status 1 and a sentence when it did not end as it should. Nothing runs: status 0.
stop_daemon() {
    local status=0
    if [ -n "${CPU_PROFILERD_SERVICE:-}" ]; then
        stop_service || status=$?
    else
        daemon_stop || status=$?
    fi
    if [ "$status" -ne 0 ]; then
        echo "FAIL: the daemon ended with status $status"
        return 1
    fi
}

# session_runs: the daemon has a session, and samples. The release build asks, since it starts quickest.
session_runs() {
    "$RELEASE_DIR/bin/profctl" status --json 2>/dev/null | grep -q '"state": *"running"'
}

# run_in_background COMMAND...: stopped at the end of the test; its pid is in BACKGROUND_PID.
run_in_background() {
    "$@" &
    BACKGROUND_PID=$!
    background_pids+=("$BACKGROUND_PID")
}

# read_cpu_ms PID: how long a process and its children that have ended have run, to 10 ms, in CPU_MS. It starts no program,
# since it is asked again and again.
read_cpu_ms() {
    local stat fields
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    read -ra fields <<<"${stat##*) }"
    CPU_MS=$(((fields[11] + fields[12] + fields[13] + fields[14]) * 10)) # USER_HZ is 100 on every x86 kernel
}

# have_run PID=MS...: each has run for so long; one that has ended never will.
have_run() {
    local entry
    for entry in "$@"; do
        read_cpu_ms "${entry%=*}" || return 1
        [ "$CPU_MS" -ge "${entry#*=}" ] || return 1
    done
}

# expect_run MS PID...: waits until each has run for so long from now on, however little of the CPUs the rest of the
# machine leaves to it.
expect_run() {
    local ms=$1 pid until=()
    shift
    for pid in "$@"; do
        read_cpu_ms "$pid" || fail "a program has ended"
        until+=("$pid=$((CPU_MS + ms))")
    done
    wait_until 200 have_run "${until[@]}" || fail "the programs hardly run"
}

# record_while_run MS "PID..." FILE OPTION...: records until each of the processes has run for so long.
record_while_run() {
    local pids ms=$1 file=$3 recorder
    read -ra pids <<<"$2"
    shift 3
    run_in_background profctl record --native "$@" -o "$file" >"$WORK/record.out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
    expect_run "$ms" "${pids[@]}"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat "$WORK/record.out")"
}

# watch_cpus: notes from now on when a CPU keeps its highest priority waiting for 150 ms (cpu_gaps.c), in $WORK/gaps. A
# sample ring has room for 200 ms at least, and its reader is called when a quarter of that is full; without
# such a gap, a reader of any priority that loses a sample was too slow itself.
watch_cpus() {
    run_in_background "$BUILD_DIR/bin/cpu_gaps" 150 >>"$WORK/gaps"
}

# expect_none_lost REPORT: no tick is lost, but where watch_cpus() has noted a gap.
expect_none_lost() {
    local lost
    lost=$(json "$1" "d['books']['total']['lost']") || fail "no books"
    [ "$lost" -ne 0 ] || return 0
    echo "$lost ticks are lost; $(tr '\n' ';' <"$WORK/gaps")"
    [ -s "$WORK/gaps" ] || fail "ticks are lost, and no CPU stood still"
}

# stop_background: ends what run_in_background() started. For a test that has recorded, and needs the CPUs to judge.
stop_background() {
    {
        kill -KILL "${background_pids[@]}"
        wait "${background_pids[@]}"
    } 2>/dev/null
    background_pids=()
}

# at_once STORY...: for a test of stories that have a daemon each and wait most of the time. The test calls itself for
# each of them, all at one time, and ends as they did. In such a call at_once() returns, and STORY is the name.
at_once() {
    local story status=0 ended i=0 pids=()
    [ -z "${STORY:-}" ] || return 0
    for story in "$@"; do
        run_in_background env STORY="$story" "$0" >"$WORK/$story.out" 2>&1
        pids+=("$BACKGROUND_PID")
    done
    for story in "$@"; do
        ended=0
        wait "${pids[i]}" || ended=$?
        i=$((i + 1))
        echo "== $story ended with status $ended"
        cat "$WORK/$story.out"
        # A failure counts before a skip.
        if [ "$ended" -ne 0 ] && { [ "$status" -eq 0 ] || [ "$status" -eq 77 ]; }; then
            status=$ended
        fi
    done
    exit "$status"
}

# expect_status N COMMAND...
expect_status() {
    local expected=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -eq "$expected" ] || fail "'$*' ended with status $status, not $expected"
}

# json FILE EXPRESSION: prints a Python expression over the JSON text in FILE, which is `d` there. A file
# of a JSON object a line (dump --json) is the list `lines`.
json() {
    # Without site: that halves the time, and tests ask hundreds of times.
    python3 -I -S - "$1" "$2" <<'PYTHON'
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
try:
    names = {"d": json.loads(text), "lines": []}
except json.JSONDecodeError:
    names = {"d": None, "lines": [json.loads(line) for line in text.splitlines() if line]}
value = eval(sys.argv[2], names)
print(value if isinstance(value, str) else json.dumps(value))
PYTHON
}

# expect_json FILE EXPRESSION SENTENCE: fails with the sentence unless the expression is true.
expect_json() {
    local value
    value=$(json "$1" "bool($2)") || fail "$3 (cannot evaluate: $2)"
    [ "$value" = true ] || fail "$3 (not true of $(basename "$1"): $2): $(head -c 3000 "$1")"
}

# truth FILE NAME: the nanoseconds that a workload told of one function.
truth() {
    awk -v name="$2" '$1 == name { sum += $2 } END { print sum + 0 }' "$1"
}

# count_held: the threads of the daemon that wait for something without an end.
count_held() {
    # One that ends meanwhile has no file: awk would stop there.
    cat "/proc/$daemon_pid"/task/*/status 2>/dev/null | awk '/^State:/ && $2 == "D" { count++ } END { print count + 0 }'
}

# expect_busy_whole COMM FOLDED: nine of ten samples of the workload `busy` under that name, and more than 300, have
# stacks from main on in which every function has its name. The counts are in $WORK/verdict.
expect_busy_whole() {
    awk -v comm="$1;" 'index($0, comm) == 1 {
        all += $NF
        if ($0 ~ /;main;.*(_spin|_fifths)/ && $0 !~ /[+]0x|unknown/) whole += $NF
    } END {
        printf "%d of %d samples have whole stacks with names\n", whole, all
        exit !(all > 300 && whole * 10 > all * 9)
    }' "$2" >"$WORK/verdict" || fail "$1: $(cat "$WORK/verdict"): $(grep -F "$1;" "$2" | head -3)"
}
