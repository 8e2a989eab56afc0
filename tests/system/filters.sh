#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Targets of each kind, by option and by config: what matches one is in, all else is filtered and counted, and
# the books close. A process that changes its name and its uid, or its cgroup, while it is recorded is in when
# it matches: by its name at once, by the others after a second or so.
#
# Two stories at one time, each with a daemon: targets that any user may have, and those that take root to be tested.
. "${0%/*}/lib.sh"
require_perf
at_once tasks groups

UID_WANTED=54321
cgroups=() # that were made here

# A process that is still in one of them goes back to where its cgroup is.
remove_cgroups() {
    local status=$? folder pid
    for folder in "${cgroups[@]}"; do
        while read -r pid; do
            echo "$pid" >"$folder/../cgroup.procs"
        done <"$folder/cgroup.procs"
        rmdir "$folder"
    done 2>/dev/null
    return $status
}
trap 'remove_cgroups; finish' EXIT

# has_names LABEL: the program that was started last has begun, and its threads, if it has any, have their names.
has_names() {
    [ "$(cat "/proc/$BACKGROUND_PID/comm")" = "filter_$1" ] || return 1
    [ "$1" != threads ] || [ "$(cat "/proc/$BACKGROUND_PID/task"/*/comm | grep -cx 'alpha\|bravo\|charlie')" -eq 3 ]
}

declare -A task_of # each label's "PID/task/TID"
spinning=()        # pids

# spin LABEL COMMAND...: a program that works under a name of its own, with all its threads among the tasks. All
# of them together must leave the CPUs to the recorder, and stand still while nothing is recorded.
spin() {
    local label=$1 tid name
    shift
    run_in_background nice -n 10 "$@" --seconds 250 --rest 9 >/dev/null
    wait_until 10 has_names "$label" || fail "filter_$label does not begin: $(cat "/proc/$BACKGROUND_PID/task"/*/comm)"
    for tid in "/proc/$BACKGROUND_PID/task"/*; do
        read -r name <"$tid/comm"
        name=$label${name#"filter_$label"}
        task_of[$name]=$BACKGROUND_PID/task/${tid##*/}
        echo "$name $BACKGROUND_PID ${tid##*/}" >>"$WORK/tasks"
    done
    spinning+=("$BACKGROUND_PID")
    kill -STOP "$BACKGROUND_PID"
}

tid_of() {
    echo "${task_of[$1]##*/}"
}

# read_cpu_ns LABEL: how long a task has run, in CPU_NS. It starts no program, since it is asked again and again.
read_cpu_ns() {
    read -r CPU_NS _ <"/proc/${task_of[$1]}/schedstat"
}

# tasks_have_run LABEL=NS...: each has run for 30 ms since it had run for NS: some 30 ticks, of which the test asks for 5.
tasks_have_run() {
    local entry
    for entry in "$@"; do
        read_cpu_ns "${entry%=*}"
        [ "$CPU_NS" -gt $((${entry#*=} + 30000000)) ] || return 1
    done
}

# expect_in "LABEL..." OPTION...: what a recording with the options has samples of.
expect_in() {
    local labels=$1 label since=() recorder status
    shift
    echo "$*: $labels"
    rm -f "$WORK/in.fxt"
    kill -CONT "${spinning[@]}" # not during the recording: a thread that waits runs for it, and so for a stop
    run_in_background profctl record --native -F 999 -o "$WORK/in.fxt" "$@" >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "record $*: $(cat "$WORK/out")"
    for label in $labels; do
        read_cpu_ns "$label"
        since+=("$label=$CPU_NS")
    done
    [ -n "$labels" ] || sleep 0.7
    wait_until 30 tasks_have_run "${since[@]}" || fail "$labels hardly run"
    kill -TERM "$recorder"
    wait "$recorder"
    status=$?
    kill -STOP "${spinning[@]}"
    if [ -z "$labels" ]; then
        [ "$status" -eq 4 ] || fail "record $*: ended with $status"
        [ ! -e "$WORK/in.fxt" ] || fail "record $*: a file without a sample"
        return
    fi
    [ "$status" -eq 0 ] || fail "record $*: $(cat "$WORK/out")"
    # What is tested has been recorded. The release build reads it, since it starts quickest.
    "$RELEASE_DIR/bin/profctl" dump --json "$WORK/in.fxt" >"$WORK/in.json" || fail "dump"
    "$RELEASE_DIR/bin/profctl" report --json "$WORK/in.fxt" >"$WORK/in.report" || fail "report"
    # shellcheck disable=SC2086
    python3 "${0%/*}/filters.py" expect "$WORK/in.json" "$WORK/in.report" "$WORK/tasks" $labels ||
        fail "record $*: not what was asked for"
}

# make_cgroup TYPE: a cgroup in the first hierarchy of that type that lets a process in. Its folder is in CGROUP.
make_cgroup() {
    local mount status
    while read -r mount; do
        CGROUP=$mount/cpu-profilerd-test-$$
        mkdir "$CGROUP" || continue
        cgroups+=("$CGROUP")
        run_in_background sleep 600
        echo "$BACKGROUND_PID" >"$CGROUP/cgroup.procs" && status=0 || status=1
        # In a recording, a program that ends in the cgroup would be one of what is asked for.
        kill -KILL "$BACKGROUND_PID"
        wait "$BACKGROUND_PID"
        [ "$status" -ne 0 ] || return 0
    done < <(awk -v type="$1" '$3 == type { print $2 }' /proc/mounts | sort -r)
    return 1
} 2>/dev/null

# In the cgroup CGROUP from the start on.
spin_grouped() {
    # shellcheck disable=SC2016
    spin "$1" bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$CGROUP" "$WORK/filter_$1"
}

chmod 711 "$WORK"
start_daemon

if [ "$STORY" = tasks ]; then
    cp "$WORKLOADS/busy" "$WORK/filter_wanted"
    cp "$WORKLOADS/busy" "$WORK/filter_other"
    cp "$WORKLOADS/threads" "$WORK/filter_threads"
    spin wanted "$WORK/filter_wanted"
    wanted=$BACKGROUND_PID
    spin other "$WORK/filter_other"
    other=$BACKGROUND_PID
    spin threads "$WORK/filter_threads"
    threads=$BACKGROUND_PID
    cat "$WORK/tasks"

    expect_in wanted -p "$wanted"
    expect_in "wanted threadsalpha threadsbravo threadscharlie" -p "$wanted,$threads"
    expect_in threadsbravo -t "$(tid_of threadsbravo)"
    expect_in "wanted threadsalpha threadscharlie" -t "$(tid_of threadsalpha)" -t "$(tid_of threadscharlie),$(tid_of wanted)"
    expect_in other --comm filter_other
    expect_in "wanted threadsalpha threadsbravo threadscharlie" --comm 'filter_[tw]*'
    expect_in "threadsalpha threadscharlie" --comm 'alph?' --comm charlie
    expect_in "wanted other threadsbravo" -p "$wanted" -t "$(tid_of threadsbravo)" --comm '*_other'
    expect_in "" --comm 'filter_wante'
    grep -q "^profctl: no process matched --comm 'filter_wante'; nothing was recorded" "$WORK/out" ||
        fail "record says nothing of its missing targets: $(cat "$WORK/out")"
    echo "{\"targets\": {\"pids\": [$wanted], \"comms\": [\"bravo\"]}}" >"$WORK/config.json"
    expect_in "wanted threadsbravo" --config "$WORK/config.json"
    expect_in other --config "$WORK/config.json" --comm filter_other

    # A child that is started later, by a process that does nothing itself.
    mkfifo "$WORK/begin_child"
    exec 4<>"$WORK/begin_child"
    kill -CONT "$other"
    # shellcheck disable=SC2016
    run_in_background bash -c 'read -r <"$1"; "$0" --seconds 250 --rest 4; :' "$WORK/filter_wanted" "$WORK/begin_child" >/dev/null
    parent=$BACKGROUND_PID
    wait_until 10 grep -qx bash "/proc/$parent/comm" || fail "the shell does not begin"
    run_in_background profctl record --native -p "$parent" -o "$WORK/child.fxt" >"$WORK/out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "record -p: $(cat "$WORK/out")"
    echo >&4
    has_child() {
        child=$(pgrep -P "$parent" -x filter_wanted)
    }
    wait_until 10 has_child || fail "the shell's child does not begin"
    expect_run 100 "$child"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record -p: $(cat "$WORK/out")"
    kill -KILL "$child"
    profctl report --json --by process -n 0 "$WORK/child.fxt" >"$WORK/child.json" || fail "report"
    expect_json "$WORK/child.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'filter_wanted') > 50" "a target's child is not recorded"
    expect_json "$WORK/child.json" "all(r['name'] in ('bash', 'sleep', 'filter_wanted') and r['pid'] != $wanted for r in d['rows'])" "others than a target's children are recorded"

    # A detached session takes the same options.
    kill -CONT "$wanted"
    profctl start -p "$wanted" >/dev/null || fail "start -p"
    sleep 0.5
    profctl status --json >"$WORK/status.json" || fail "status"
    profctl stop >/dev/null || fail "stop"
    profctl read --native -o "$WORK/detached.fxt" >/dev/null || fail "read"
    profctl close >/dev/null || fail "close"
    expect_json "$WORK/status.json" "d['session']['config']['targets'] == {'pids': [$wanted]}" "start -p has other targets"
    profctl report --json --by process -n 0 "$WORK/detached.fxt" >"$WORK/detached.json" || fail "report"
    expect_json "$WORK/detached.json" "[r['pid'] for r in d['rows']] == [$wanted]" "start -p records others"
    exit
fi

[ "$(id -u)" -eq 0 ] || skip "uids and cgroups: only root can change its own; all else holds"
# No pattern of the other story matches these.
for name in known named user group1 group2; do
    cp "$WORKLOADS/busy" "$WORK/filter_$name"
done
spin known "$WORK/filter_known"
known=$BACKGROUND_PID
spin named "$WORK/filter_named"
spin user setpriv --reuid $UID_WANTED --clear-groups "$WORK/filter_user"
expect_in user -u $UID_WANTED
expect_in "user named" -u "$UID_WANTED" --comm filter_named

# Each version of cgroups that there is.
group=0
targets="\"uids\": [$UID_WANTED], \"comms\": [\"filter_change*\"]"
for type in cgroup cgroup2; do
    make_cgroup "$type" || continue
    group=$((group + 1))
    procs=$CGROUP/cgroup.procs
    spin_grouped group$group
    path=$(sed -n 's/^[^:]*:[^:]*://p' "/proc/$BACKGROUND_PID/cgroup" | grep -m1 "cpu-profilerd-test-$$\$") ||
        fail "$CGROUP: does not show in /proc/$BACKGROUND_PID/cgroup"
    expect_in group$group -G "$CGROUP"
    # An option would have to name a cgroup that exists.
    for other in "${CGROUP%?}" "$CGROUP/below"; do
        echo "{\"targets\": {\"cgroups\": [\"$other\"]}}" >"$WORK/config.json"
        expect_in "" --config "$WORK/config.json"
    done
    expect_in "group$group known" -G "$CGROUP/" -p "$known"
done
if [ "$group" -gt 0 ]; then
    # By its path, which is the same in both versions where both are.
    expect_in "$(seq -s ' ' -f 'group%g' $group)" -G "$path"
    targets="$targets, \"cgroups\": [\"$CGROUP\"]"
fi

# The other story's programs are nice. The one that changes twice and the one that changes its cgroup have a CPU each.
stop_background
echo "{\"targets\": {$targets}, \"exclude_self\": false}" >"$WORK/config.json"
run_in_background profctl record --native --config "$WORK/config.json" -o "$WORK/changes.fxt" >"$WORK/out" 2>&1
recorder=$BACKGROUND_PID
wait_until 10 session_runs || fail "record: $(cat "$WORK/out")"
stories=("$WORK/chameleon")
run_in_background python3 "${0%/*}/filters.py" chameleon filter_changed $UID_WANTED >"$WORK/chameleon"
changing=("$BACKGROUND_PID")
if [ "$group" -gt 0 ]; then
    run_in_background python3 "${0%/*}/filters.py" migrant "$procs" >"$WORK/migrant"
    changing+=("$BACKGROUND_PID")
    stories+=("$WORK/migrant")
fi
for pid in "${changing[@]}"; do
    wait "$pid" || fail "a process that changes ended with status $?"
done
kill -TERM "$recorder"
wait "$recorder" || fail "record: $(cat "$WORK/out")"
profctl dump --json "$WORK/changes.fxt" >"$WORK/changes.json" || fail "dump"
profctl report --json "$WORK/changes.fxt" >"$WORK/changes.report" || fail "report"
python3 "${0%/*}/filters.py" changes "$WORK/changes.json" "$WORK/changes.report" "${stories[@]}" || exit 1

[ "$group" -gt 0 ] || skip "cgroups: none can be made here, so NOTHING was seen of targets.cgroups; all else holds"
