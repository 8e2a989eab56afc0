#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `record --names` asks what passes for a virtual machine (asked_names.py): one that answers, one that answers without an
# end, one that refuses, one whose socket is another's, one that SIGQUIT would end, one that takes it for something else, one
# that lets no tool attach, one whose map another user has in hand, and one that never answers. Each has its sentence, none is ended, and none keeps `record`. A process of another user is left
# alone, and asked as that user where root asks. What a command starts finds its switches in the environment, and keeps
# those that it has.
#
# What is answered is judged of naming_probe, which waits for as long as it takes; `record` waits for 2 seconds.
. "${0%/*}/lib.sh"
# shellcheck source=tests/system/machine_settings.sh
. "${0%/*}/machine_settings.sh"
require_perf

: >"$WORK/libjvm.so"
truncate -s 4096 "$WORK/libjvm.so"
chmod 755 "$WORK"
cp "${0%/*}/asked_names.py" "$BIN/profctl" "$WORK"
machine() { # NAME: in PID_NAME
    run_in_background "${@:2}" /usr/bin/python3 "$WORK/asked_names.py" "$WORK/libjvm.so" "$1" >"$WORK/$1.out"
    pids[$1]=$BACKGROUND_PID
    wait_until 20 grep -q ready "$WORK/$1.out" || fail "$1 does not run"
}
declare -A pids
trap finish_restored EXIT
for kind in good endless refuses foreign bare silent server planted; do
    machine "$kind"
done
machine closed env JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism

# said NAME SENTENCE
said() {
    grep -qF "(pid ${pids[$1]}): $2" "$WORK/said" || fail "$1: not said: $2; but: $(cat "$WORK/said")"
}

# ask KIND...
ask() {
    local kind asked=()
    for kind in "$@"; do
        asked+=("${pids[$kind]}")
    done
    "$BUILD_DIR/bin/naming_probe" "${asked[@]}" 2>"$WORK/said" || fail "naming_probe: $(cat "$WORK/said")"
}
# Another user was there before, with a link to a file of this one's in the name of the map.
echo precious >"$WORK/precious"
planter=()
[ "$(id -u)" -ne 0 ] || planter=(setpriv --reuid 65534 --regid 65534 --clear-groups)
"${planter[@]}" ln -s "$WORK/precious" "/tmp/perf-${pids[planted]}.map" || fail "no link can be made"
ask good endless refuses foreign bare closed server planted
said server "has written no map: it has no thread 'Signal Dispatch', so SIGQUIT is not sent (-Xrs?)"
said planted "has written no map: /tmp/perf-${pids[planted]}.map is there and is no file of its user's"
[ "$(cat "$WORK/precious")" = precious ] || fail "a file was written through another's link"
rm "/tmp/perf-${pids[planted]}.map"
said good "has written its map"
said endless "has written no map: its answer is no virtual machine's"
said refuses "has written no map: it has no Compiler.perfmap, which Java has from 17 on: '?[31mno?'"
said foreign "has written no map: its socket for tools is of no use: Operation not permitted"
said bare "has written no map: it does not catch SIGQUIT, which would end it"
said closed "has written no map: it was started with -XX:+DisableAttachMechanism"
[ "$(grep -c "names:" "$WORK/said")" -eq 8 ] || fail "more is said: $(cat "$WORK/said")"
grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/${pids[closed]}/status" || fail "closed was sent a signal"
grep -qx "asked by $(id -u) $(id -g)" "$WORK/good.out" || fail "good: $(cat "$WORK/good.out")"

# One that never answers does not keep `record`, and each of the others has a sentence.
start_daemon
all=$(IFS=, && echo "${pids[*]}")
profctl record --names --native -d 0.5 -p "$all" -o "$WORK/p.fxt" >"$WORK/record.out" 2>"$WORK/said" ||
    fail "record: $(cat "$WORK/said")"
said silent "has written no map: it did not answer in time"
for kind in "${!pids[@]}"; do
    said "$kind" "has written "
done
[ "$(grep -c "names:" "$WORK/said")" -eq 9 ] || fail "more is said: $(cat "$WORK/said")"
kill -0 "${pids[@]}" || fail "a process was ended"
left=$(find /tmp -maxdepth 1 -name '.attach_pid*' | grep -E "pid($(IFS='|' && echo "${pids[*]}"))\$")
[ -z "$left" ] || fail "files are left: $left"

# Only processes that are targets are asked.
profctl record --names --native -d 0.2 -p "${pids[bare]}" -o "$WORK/p.fxt" >"$WORK/record.out" 2>"$WORK/said"
[ "$(grep -c "names:" "$WORK/said")" -eq 1 ] || fail "others are asked: $(cat "$WORK/said")"

# What a command finds in its environment. Where the kernel follows another user's link in /tmp, Node.js and .NET would
# write their maps through it.
environment_is() {
    # shellcheck disable=SC2016
    NODE_OPTIONS=--no-warnings PYTHONPERFSUPPORT=0 profctl record --names --native -o "$WORK/p.fxt" -- \
        sh -c 'echo "$NODE_OPTIONS" "$PYTHONPERFSUPPORT" "$DOTNET_PerfMapEnabled"; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' \
        >"$WORK/environment" 2>"$WORK/said" || fail "record: $(cat "$WORK/said")"
    [ "$(cat "$WORK/environment")" = "$1" ] || fail "the environment is $(cat "$WORK/environment"), not $1"
}
links=/proc/sys/fs/protected_symlinks
[ "$(id -u)" -ne 0 ] || keep_settings "$links" || fail "the machine would not be as it was"
for value in 0 1; do
    [ "$(id -u)" -ne 0 ] || echo "$value" >"$links"
    case $(cat "$links") in
    0)
        environment_is "--no-warnings 0 "
        grep -q 'names: Node.js and .NET are not told to name their code: fs.protected_symlinks is 0' "$WORK/said" || fail "not said: $(cat "$WORK/said")"
        ;;
    *) environment_is "--no-warnings --perf-basic-prof 0 1" ;;
    esac
done

# Of a command that is a Python which cannot be asked it is said too, once.
some_work='import time
while True:
    sum(range(100000))
    time.sleep(0.02)'
if python3 -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then
    profctl record --names --native -d 7 -o "$WORK/p.fxt" -- python3 -c "$some_work" >"$WORK/record.out" 2>"$WORK/said"
    kill "$(sed -n 's/.*still runs, as pid \([0-9]*\)$/\1/p' "$WORK/said")"
    [ "$(grep -c 'names: .*no Python before 3.12' "$WORK/said")" -eq 1 ] || fail "of an old Python: $(cat "$WORK/said")"
fi

[ "$(id -u)" -eq 0 ] || exit 0
# Root's question to a process of another user comes from that user; another user's to root does not come.
machine other setpriv --reuid 65534 --regid 65534 --clear-groups
ask other
said other "has written its map"
grep -qx "asked by 65534 65534" "$WORK/other.out" || fail "other: $(cat "$WORK/other.out")"
cd / || exit 1
# What is said of the process comes before the daemon, which may refuse that user.
setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/profctl" record --names --native -d 0.2 -p "${pids[good]}" -o - \
    2>"$WORK/said" | cat >/dev/null
said good "left alone, since it is another user's"
! grep "asked by" "$WORK/good.out" | grep -qvx "asked by 0 0" || fail "root's was asked by another"
