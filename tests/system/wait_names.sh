#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Stacks of waits name the function that waits, in Go, Python and Java as in C (off_cpu.sh). A program in each language
# sleeps, reads from a pipe and waits for a lock that another of its threads has, in functions of known names, and measures
# that by its own clock; wait_names.py holds the waits of a recording against that. Of Go, what a goroutine waits for
# without a system call is no function's, but the runtime's. Python before 3.12 has the interpreter's functions alone:
# those are judged of it. A language that is not installed is left out; NAMED_PYTHON is a Python from 3.12 on. The
# languages are judged at one time, each with a daemon.
. "${0%/*}/lib.sh"
require_perf
stories=(python)
command -v go >/dev/null && stories+=(go)
command -v java >/dev/null && command -v javac >/dev/null && stories+=(java)
at_once "${stories[@]}"
use_build release
start_daemon

echo '{"off_cpu": {"max_cost_percent": 100}}' >"$WORK/all.json" # whatever else runs, each switch is sampled

# judge LANGUAGE TRUTH: a recording, against what its program has printed.
judge() {
    echo "== $1"
    profctl export --format ndjson --event off-cpu "$WORK/p.fxt" >"$WORK/off_cpu.ndjson" || fail "$1: export"
    profctl export --format ndjson --event preempted "$WORK/p.fxt" >"$WORK/preempted.ndjson" 2>"$WORK/err" || : >"$WORK/preempted.ndjson"
    python3 "$SOURCE_DIR/tests/system/wait_names.py" "$1" "$2" "$WORK/off_cpu.ndjson" "$WORK/preempted.ndjson" 2>"$WORK/err" ||
        fail "$1: $(tail -n 2 "$WORK/err" | tr '\n' ' ')"
}

# judge_command LANGUAGE COMMAND...: one that prints when it is done.
judge_command() {
    local language=$1
    shift
    profctl record --native --names --config "$WORK/all.json" -o "$WORK/p.fxt" -- "$@" >"$WORK/truth" 2>"$WORK/out" ||
        fail "$language: record: $(cat "$WORK/out")"
    judge "$language" "$WORK/truth"
}

case $STORY in
go)
    cp "$SOURCE_DIR/tests/system/wait_names.go" "$WORK/waits.go"
    (cd "$WORK" && GOCACHE=$WORK/cache GOFLAGS=-mod=mod GO111MODULE=off go build -o waits_go waits.go) || fail "go build"
    judge_command go "$WORK/waits_go" 3
    ;;
python)
    judge_command python /usr/bin/env python3 "$SOURCE_DIR/tests/system/wait_names_program.py" 0 3
    for python in ${NAMED_PYTHON:-} python3.14 python3.13 python3.12 python3; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue
        judge_command named_python "$python" "$SOURCE_DIR/tests/system/wait_names_program.py" 3 3
        break
    done
    [ ${#stories[@]} -gt 1 ] || skip "neither Go nor Java is installed"
    ;;
java)
    # It is asked for its names, and writes them, before it measures: what is compiled by then stays where it is.
    javac -d "$WORK" "$SOURCE_DIR/tests/system/WaitNames.java" || fail "javac"
    mkfifo "$WORK/pipe"
    run_in_background java -Xcomp -XX:TieredStopAtLevel=1 -XX:+PreserveFramePointer \
        -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,WaitNames.* \
        -cp "$WORK" WaitNames "$WORK/pipe" "$WORK/go" 3 >"$WORK/truth"
    java_pid=$BACKGROUND_PID
    remove_map() {
        rm -f "/tmp/perf-$java_pid.map" "/tmp/.java_pid$java_pid"
    }
    at_end remove_map
    wait_until 60 grep -q warm "$WORK/truth" || fail "Java has not begun"
    run_in_background profctl record --native --names --config "$WORK/all.json" -p "$java_pid" -o "$WORK/p.fxt" >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 60 grep -q "has written its map" "$WORK/out" || fail "Java has not written its map: $(cat "$WORK/out")"
    sleep 2 # the daemon reads a map again after a second
    : >"$WORK/go"
    wait_until 60 grep -q wall_ns "$WORK/truth" || fail "Java has not measured"
    kill -INT "$recorder"
    wait "$recorder" || fail "record: $(cat "$WORK/out")"
    judge java "$WORK/truth"
    ;;
esac
