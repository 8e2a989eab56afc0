# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests that need a service manager: boots a real systemd as pid 1 of its own namespaces (mounts, pids,
# cgroups, network, hostname, ipc), whose files are this machine's with changes in memory only. The machine
# itself, whatever its init is, notices nothing. The caller runs under `set -u` and calls lab_stop from its
# EXIT trap.
#
# Perf events are not in a namespace: what runs outside is sampled inside as pid 0, and limits of cgroups hold
# only as far as this machine's controllers go.

lab_pid=    # of the systemd inside, as it is outside
lab_cgroup= # which everything inside is in
lab_keeper=

# lab_why_not: prints why this machine cannot do it, and nothing where it can.
lab_why_not() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "a systemd in namespaces needs root"
    elif [ ! -x /lib/systemd/systemd ]; then
        echo "there is no systemd here"
    elif ! grep -qw overlay /proc/filesystems && ! modprobe -q overlay; then
        echo "the kernel has no overlay filesystem"
    elif [ -z "$(find_cgroup2)" ]; then
        echo "no cgroup2 is mounted here that can be written to"
    elif ! unshare --mount --uts --ipc --net --cgroup --pid --fork true 2>/dev/null; then
        echo "no namespaces can be made here"
    fi
}

find_cgroup2() {
    local folder
    while read -r folder; do
        if [ -w "$folder/cgroup.procs" ]; then
            echo "$folder"
            return
        fi
    done < <(awk '$3 == "cgroup2" { print $2 }' /proc/self/mounts)
}

# lab_start FOLDER SOURCE_DIR SETUP: boots to basic.target, after the commands SETUP, which find the new root before
# its systemd runs. FOLDER is private and empty; SOURCE_DIR can be written to inside, without a change of it
# outside. Where LAB_BASE is exported, it is the folder of the system to boot, in the place of this machine's. What was
# said is in FOLDER/boot.log; status 1 when it failed.
lab_start() {
    local child
    lab_cgroup=$(find_cgroup2)/systemd-lab.$$
    mkdir "$lab_cgroup" || return 1
    (
        echo "$BASHPID" >"$lab_cgroup/cgroup.procs"
        # Nothing outlives its starter, however that ends.
        exec setpriv --pdeathsig KILL unshare --mount --propagation private --uts --ipc --net --cgroup --pid --fork --kill-child \
            bash "${BASH_SOURCE[0]%/*}/systemd_lab_boot.sh" "$@"
    ) >"$1/boot.log" 2>&1 &
    lab_keeper=$!
    wait_until 5 lab_has_child_or_ended || return 1
    child=$(cat "/proc/$lab_keeper/task/$lab_keeper/children")
    lab_pid=${child// /}
    # A group that hands controllers down may hold no process itself, and the one that waits outside is in it.
    echo "$lab_keeper" >"${lab_cgroup%/*}/cgroup.procs"
    : >"$1/go"
    wait_until 10 lab_is_up_or_ended && ! process_ended "$lab_pid"
}

lab_has_child_or_ended() {
    process_ended "$lab_keeper" || [ -n "$(cat "/proc/$lab_keeper/task/$lab_keeper/children")" ]
}

lab_is_up_or_ended() {
    process_ended "$lab_pid" || {
        [ "$(cat "/proc/$lab_pid/comm" 2>/dev/null)" = systemd ] &&
            lab systemctl is-active -q basic.target 2>/dev/null
    }
}

# lab COMMAND...: runs it inside, as root.
lab() {
    nsenter -t "$lab_pid" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        "$@"
}

# lab_online COMMAND...: the same, in the network of this machine, for what downloads packages.
lab_online() {
    nsenter -t "$lab_pid" -m -u -i -p -C env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy" https_proxy="$http_proxy"} "$@"
}

# lab_as USER COMMAND...: with that user's groups, and without any capability.
lab_as() {
    local user=$1
    shift
    lab setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all --bounding-set=-all "$@"
}

lab_stop() {
    local folder
    if [ -n "$lab_keeper" ]; then
        [ -z "$lab_pid" ] || kill -KILL "$lab_pid" 2>/dev/null
        kill -KILL "$lab_keeper" 2>/dev/null
        wait "$lab_keeper" 2>/dev/null
        lab_keeper=
        lab_pid=
    fi
    if [ -n "$lab_cgroup" ] && [ -d "$lab_cgroup" ]; then
        wait_until 5 lab_is_empty
        while read -r folder; do
            rmdir "$folder"
        done < <(find "$lab_cgroup" -depth -type d)
    fi
    lab_cgroup=
}

lab_is_empty() {
    grep -q 'populated 0' "$lab_cgroup/cgroup.events"
}
