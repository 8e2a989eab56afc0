# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced behind lib.sh: a control group of memory for the daemon alone, as a service manager makes one.

memory_group='' memory_group_limit='' memory_group_usage=''

remove_memory_group() {
    rmdir "$memory_group"
}

# make_memory_group NAME: its folder is in memory_group, the files of its limit and its usage in the other two. The
# test is skipped where none can be made.
make_memory_group() {
    local folder type options
    while read -r _ folder type options _; do
        if [ "$type" = cgroup2 ] && grep -qsw memory "$folder/cgroup.subtree_control"; then
            memory_group=$folder/$1.$$ memory_group_limit=memory.max memory_group_usage=memory.current
        elif [ "$type" = cgroup ] && [[ ,$options, == *,memory,* ]]; then
            memory_group=$folder/$1.$$ memory_group_limit=memory.limit_in_bytes memory_group_usage=memory.usage_in_bytes
        fi
    done </proc/self/mounts
    { [ -n "$memory_group" ] && mkdir "$memory_group" 2>/dev/null; } || skip "no control group of memory can be made here"
    at_end remove_memory_group
    memory_group_limit=$memory_group/$memory_group_limit
    memory_group_usage=$memory_group/$memory_group_usage
}

# start_daemon_in_memory_group [ARGUMENT...]
start_daemon_in_memory_group() {
    local program=$BIN/cpu-profilerd
    mkdir "$WORK/bin"
    printf '#!/bin/sh\necho $$ >%q/cgroup.procs\nexec %q "$@"\n' "$memory_group" "$program" >"$WORK/bin/cpu-profilerd"
    chmod +x "$WORK/bin/cpu-profilerd"
    BIN=$WORK/bin
    start_daemon "$@"
    BIN=${program%/*}
}
