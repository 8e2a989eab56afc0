#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves remedies of `profctl doctor` that the tests leave out, since they take programs that are not everywhere or long to
# start: Java and Python from 3.12 on are found without names for their code, the one command of each is followed to the
# letter, and a recording then has the names. Needs root, java with jcmd, and a python3.12 or newer in PATH or below
# ~/.pyenv; what is missing is left out and said. Prints each command that is followed.
#
#   scripts/proof-doctor.sh
set -euo pipefail
# shellcheck source=scripts/proof.sh
. "${0%/*}/proof.sh"
need_built "$bin/profctl" "$bin/cpu-profilerd"
PATH=$bin:$PATH
runs=()
end_runs() {
    [ ${#runs[@]} -eq 0 ] || kill "${runs[@]}" 2>/dev/null || true
}
trap 'end_runs; clean_up' EXIT

# doctor_says PID: the cause and the command that the doctor has for a program, in $cause and $command.
doctor_says() {
    profctl doctor --json >"$work/doctor.json" || die "something is wrong: $(cat "$work/doctor.json")"
    read -r cause command < <(python3 -c '
import json, sys
for finding in json.load(open(sys.argv[1]))["findings"]:
    if finding["check"] == "made-code" and f"pid {sys.argv[2]}," in finding["text"]:
        print(finding["cause"], *finding["commands"])
        break
else:
    print("none")' "$work/doctor.json" "$1")
}

# expect_name PID NAME: two seconds of the program have samples in a function with that in its name. The command line, which
# the report has too, is no function.
expect_name() {
    profctl record -p "$1" -d 2 -o "$work/p.fxt" >/dev/null || die "record"
    profctl report --json -n 0 "$work/p.fxt" >"$work/report.json"
    python3 -c '
import json, sys
sys.exit(not any(sys.argv[2] in (row["name"] or "") for row in json.load(open(sys.argv[1]))["rows"]))' \
        "$work/report.json" "$2" || die "no function has the name $2"
}

daemon_start "$bin" "$work"

if command -v jcmd >/dev/null && command -v javac >/dev/null; then
    cat >"$work/Spin.java" <<'JAVA'
public class Spin {
    static long spinning(long n) { long sum = 0; for (long i = 0; i < n; i++) { sum += i ^ sum; } return sum; }
    public static void main(String[] args) { long all = 0; while (true) { all += spinning(100000000L); } }
}
JAVA
    javac -d "$work" "$work/Spin.java"
    java -cp "$work" Spin &
    java=$!
    runs+=("$java")
    sleep 3
    doctor_says "$java"
    [ "$cause" = made-code-running ] || die "java: the doctor says $cause"
    grep -q 'PreserveFramePointer' "$work/doctor.json" || die "java: nothing is said of frame pointers"
    echo "$ $command"
    eval "$command" || die "java: the command fails"
    doctor_says "$java"
    [ "$cause" = made-code-frames ] || die "java: after its command the doctor says $cause"
    expect_name "$java" Spin.spinning
    kill "$java"
    rm -f "/tmp/perf-$java.map"
    echo "$ $command"
    eval "$command" # export JDK_JAVA_OPTIONS=...
    java -cp "$work" Spin 2>/dev/null &
    java=$!
    runs+=("$java")
    sleep 3
    jcmd "$java" Compiler.perfmap >/dev/null
    doctor_says "$java"
    [ "$cause" = none ] || die "java: with frame pointers the doctor says $cause"
    kill "$java"
    rm -f "/tmp/perf-$java.map"
    echo "ok java"
else
    echo "left out: java, for want of javac and jcmd"
fi

python=
for candidate in python3.14 python3.13 python3.12 ~/.pyenv/versions/3.1[2-9]*/bin/python3.1[2-9]; do
    if "$candidate" -c '' 2>/dev/null; then
        python=$candidate
    fi
done
if [ -n "$python" ]; then
    program='
def spinning(n):
    return sum(i * i for i in range(n))
while True:
    spinning(100000)'
    "$python" -c "$program" &
    snake=$!
    runs+=("$snake")
    sleep 1
    doctor_says "$snake"
    [ "$cause" = made-code-restart ] || die "python: the doctor says $cause"
    kill "$snake"
    echo "$ $command"
    eval "$command"
    "$python" -c "$program" &
    snake=$!
    runs+=("$snake")
    sleep 1
    doctor_says "$snake"
    [ "$cause" = none ] || die "python: with its option the doctor says $cause"
    expect_name "$snake" spinning
    kill "$snake"
    rm -f "/tmp/perf-$snake.map"
    echo "ok python"
else
    echo "left out: python, for want of 3.12"
fi
