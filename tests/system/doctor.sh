#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# profctl doctor finds a machine well, and each of these set-ups that are not: no daemon, a paranoid kernel, one that hides
# its names or holds the timer back, one that lacks a feature, a daemon without rights or without memory to lock, a
# session in the way, a program without a build-id, and one that makes code without naming it. Each remedy is followed
# to the letter, and then that is well. Sysctls are changed, and are as they were in the end.
. "${0%/*}/lib.sh"
# shellcheck source=tests/system/machine_settings.sh
. "${0%/*}/machine_settings.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "this changes sysctls"

kernel=/proc/sys/kernel
rate_sysctl=$kernel/perf_event_max_sample_rate
keep_settings "$rate_sysctl" $kernel/{perf_cpu_time_max_percent,perf_event_paranoid,kptr_restrict} \
    || fail "the machine would not be as it was"
[ "$(cat "$rate_sysctl")" -ge 4000 ] || fail "$rate_sysctl is $(cat "$rate_sysctl"); it must be 4000 or more here"
trap finish_restored EXIT

# examine STATUS [OPTION...]: what the doctor finds is in $WORK/doctor.json.
examine() {
    local expected=$1
    shift
    expect_status "$expected" profctl doctor --json "$@" >"$WORK/doctor.json" 2>"$WORK/doctor.err"
    cat "$WORK/doctor.json" >>"$WORK/all.json"
}

has_cause() {
    [ "$(json "$WORK/doctor.json" "any(f['cause'] == '$1' for f in d['findings'])")" = true ]
}

found() {
    local cause
    for cause in "$@"; do
        has_cause "$cause" || fail "the doctor does not find $cause: $(cat "$WORK/doctor.json" "$WORK/doctor.err")"
    done
}

# follow CAUSE: pastes its commands into a shell.
follow() {
    json "$WORK/doctor.json" "'\n'.join(c for f in d['findings'] if f['cause'] == '$1' for c in f['commands'])" >"$WORK/commands"
    [ -s "$WORK/commands" ] || fail "$1 has no command"
    bash -e "$WORK/commands" >>"$WORK/followed" 2>&1 || fail "$1: $(cat "$WORK/commands" "$WORK/followed")"
}

answers() {
    profctl status --json >"$WORK/status.json" 2>/dev/null
}

# adopt: the daemon that a remedy has started ends with the test.
adopt() {
    wait_until 10 answers || fail "the daemon that was started does not answer: $(cat "$WORK/followed")"
    background_pids+=("$(json "$WORK/status.json" "d['daemon']['pid']")")
}

# ends_with CAUSE COMMAND...: its complaint ends with what the doctor says of the cause, in one line.
ends_with() {
    local cause=$1 line
    shift
    "$@" >"$WORK/out" 2>"$WORK/err" && fail "'$*' has worked"
    line=$(json "$WORK/doctor.json" "next(f['text'] + ': ' + ' && '.join(f['commands']) for f in d['findings'] if f['cause'] == '$cause')")
    [[ $(cat "$WORK/err") == "profctl: "*"$line"* ]] || fail "'$*' says '$(cat "$WORK/err")', not '$line'"
}

run_daemon() {
    export CPU_PROFILERD_SOCKET=$WORK/$1.sock
    shift
    run_in_background "$@" cpu-profilerd --socket "$CPU_PROFILERD_SOCKET" >>"$WORK/others.log" 2>&1
    wait_until 10 answers || fail "the daemon does not answer: $(cat "$WORK/others.log")"
}

# No daemon. Its remedy brings one, and then all is well.
export CPU_PROFILERD_SOCKET=$WORK/none.sock
examine 1
found socket-missing-elsewhere
ends_with socket-missing-elsewhere profctl record -d 1 -o "$WORK/p.fxt"
ends_with socket-missing-elsewhere profctl read -o "$WORK/p.fxt"
follow socket-missing-elsewhere
adopt
expect_status 0 profctl doctor >"$WORK/well" 2>&1
grep -vE '^ {11}[^ ]' "$WORK/well" | grep -nE '.{81}' && fail "a line is too long: $(cat "$WORK/well")"
grep -qx 'nothing is wrong' "$WORK/well" || fail "no sum: $(cat "$WORK/well")"
for check in kernel kernel-names socket group daemon rights session sample stacks names build-ids clock; do
    grep -q "^ok  *$check " "$WORK/well" || fail "$check is not well: $(cat "$WORK/well")"
done

# The kernel's settings. What was recorded all the same is not wrong, but worse.
echo 4 >$kernel/perf_event_paranoid
echo 2 >$kernel/kptr_restrict
echo 200 >$kernel/perf_event_max_sample_rate
examine 0
found paranoid-borne kernel-names-hidden rate-low ticks-throttled
follow kernel-names-hidden
follow rate-low
examine 0
found kernel-names-good rate-good
has_cause ticks-throttled && fail "the timer is held back still: $(cat "$WORK/doctor.json")"

# Another session.
profctl start >"$WORK/out" || fail "start: $(cat "$WORK/out")"
examine 1
found session-held not-known
profctl record -d 1 -o "$WORK/p.fxt" 2>"$WORK/err" && fail "two sessions"
# Its age goes on.
said=$(json "$WORK/doctor.json" "next(f['advice'] for f in d['findings'] if f['cause'] == 'session-held')")
grep -qF "$said" "$WORK/err" || fail "record says: $(cat "$WORK/err")"
[[ $said == *"'profctl close' discards it"* ]] || fail "the advice is: $said"
profctl close >"$WORK/out" || fail "close"

# A daemon without rights, on a kernel that asks for more.
echo 3 >$kernel/perf_event_paranoid
run_daemon rights setpriv --bounding-set=-perfmon,-sys_admin
examine 1
found sample-refused paranoid-high rights-lacking
ends_with paranoid-high profctl start
follow paranoid-high
[ "$(cat $kernel/perf_event_paranoid)" = 2 ] || fail "the remedy has not set it"
examine 1
found paranoid-good rights-lacking
ends_with rights-lacking profctl start
follow rights-lacking
adopt
examine 0
found rights-good sample-good

# No memory to lock.
run_daemon memory setpriv --bounding-set=-ipc_lock,-sys_resource prlimit --memlock=65536:65536
examine 1
found memory-locked sample-refused
ends_with memory-locked profctl start
follow memory-locked
adopt
examine 0
found memory-good sample-good

# A container's filter.
run_daemon filter "$BUILD_DIR/bin/under_filter" no_events /usr/bin/env
examine 1
found sample-refused rights-refused
ends_with rights-refused profctl start
follow rights-refused
adopt
examine 0
found rights-good sample-good

# An older kernel; and a profctl as packages have it.
mkdir "$WORK/stripped"
strip -o "$WORK/stripped/profctl" "$BIN/profctl" || fail "strip"
PATH=$WORK/stripped:$PATH
run_daemon older env LD_PRELOAD="$BUILD_DIR/lib/old_kernel.so"
examine 0
found kernel-lacks sample-good stacks-good names-good build-ids-good

# alone COMMANDS [COMMAND]: the doctor, for whom no other program runs than those of COMMANDS, with a /tmp of their own.
mkdir "$WORK/tmp"
alone() {
    # shellcheck disable=SC2016 # for the shell inside
    env CPU_PROFILERD_SOCKET=/none unshare --mount --propagation private --pid --fork --mount-proc --kill-child \
        bash -ec 'mount --bind "$1" /tmp; cd /tmp; eval "$2"; profctl doctor --json' - "$WORK/tmp" "$1" >"$WORK/doctor.json" 2>"$WORK/doctor.err"
    [ $? -eq 1 ] || fail "the doctor ended otherwise: $(cat "$WORK/doctor.err")"
}

# A program without a build-id, whose name would clear a terminal.
program=$'evil\033[2J'
echo 'int sleep(unsigned); int main(void) { return sleep(60); }' >"$WORK/tmp/program.c"
gcc -Wl,--build-id=none -o "$WORK/tmp/$program" "$WORK/tmp/program.c" || fail "gcc"
# shellcheck disable=SC2016
run="./$'evil\\033[2J' & until grep -q evil /proc/\$!/comm; do kill -0 \$!; sleep 0.01; done"
alone "$run"
found programs-no-build-id
expect_json "$WORK/doctor.json" "any('/evil?[2J' in f['text'] for f in d['findings'])" "another program has none"
grep -q $'\033' "$WORK/doctor.json" && fail "an escape is alive"
gcc -Wl,--build-id -o "$WORK/tmp/$program" "$WORK/tmp/program.c" || fail "gcc"
alone "$run"
found programs-good

# One that makes code, and does not name it.
if command -v node >/dev/null; then
    run="node -e 'setTimeout(() => {}, 60000)' & until grep -q node /proc/\$!/maps; do kill -0 \$!; sleep 0.01; done"
    alone "$run"
    found made-code-restart
    export_it=$(json "$WORK/doctor.json" "next(f['commands'][0] for f in d['findings'] if f['cause'] == 'made-code-restart')")
    (
        NODE_OPTIONS=--no-warnings
        eval "$export_it"
        [ "$NODE_OPTIONS" = '--no-warnings --perf-basic-prof' ]
    ) || fail "it throws options away: $export_it"
    alone "$export_it; $run; until [ -s \"perf-\$!.map\" ]; do kill -0 \$!; sleep 0.01; done"
    found made-code-good
fi

python3 - "$WORK/all.json" "$SOURCE_DIR/docs/doctor.schema.json" <<'PYTHON' || fail "the objects are not as their schema"
import json, sys
import jsonschema

schema = json.load(open(sys.argv[2], encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
for part in (schema, schema["properties"]["findings"]["items"]):
    part["additionalProperties"] = False
checks = set(schema["properties"]["findings"]["items"]["properties"]["check"]["enum"])
for line in open(sys.argv[1], encoding="utf-8"):
    report = json.loads(line)
    jsonschema.validate(report, schema)
    if checks != {finding["check"] for finding in report["findings"]}:
        sys.exit(f"these checks were not made, or are not in the schema: {checks ^ {f['check'] for f in report['findings']}}")
PYTHON
