#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The service as it is installed names what runs on the machine, wherever its file is; and each of its capabilities
# is needed: taken away alone, something is lost. What is lost is the table in SECURITY.md, to the letter.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab
lab systemctl start cpu-profilerd.socket || fail "the socket does not start"

# One program under many names, run by carol. Each is a place of its own where a file can be.
busy=$WORKLOADS/busy
lab install -m 755 "$busy" /usr/bin/in_usr
lab install -m 711 "$busy" /usr/bin/unreadable
lab install -m 755 "$busy" /tmp/in_tmp
lab install -m 700 -o carol "$busy" /home/carol/in_home
lab install -m 755 "$busy" /tmp/deleted
for program in /usr/bin/in_usr /usr/bin/unreadable /tmp/in_tmp /home/carol/in_home /tmp/deleted; do
    run_in_lab carol "$program" --seconds 240
done
# shellcheck disable=SC2016 # for the shell inside
lab unshare --mount --pid --fork sh -c 'mount -t tmpfs tmpfs /mnt && install -m 755 "$1" /mnt/in_container &&
    exec setpriv --reuid=carol --regid=carol --clear-groups /mnt/in_container --seconds 240' sh "$busy" &
wait_until 5 lab pgrep -x deleted >/dev/null || fail "no workload"
lab rm /tmp/deleted
places=(in_usr in_home in_tmp in_container deleted unreadable)
for place in "${places[@]}"; do
    wait_until 5 lab pgrep -x "$place" >/dev/null || fail "$place does not run"
done

# record NAME OPTION...: as alice; the recording as folded stacks. Status 1, and what profctl said, without a session.
record() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # for the shell inside
    lab_as alice sh -c 'cd /home/alice && profctl record -F 999 -d 1 -o p.fxt "$@"' sh "$@" >"$WORK/$name.out" 2>&1 || return 1
    lab_as alice profctl export --format folded /home/alice/p.fxt >"$WORK/$name.folded"
}

# named NAME COMM: yes, no, or how many of 100 samples are named and rooted; ten samples are the least.
named() {
    awk -v comm="$2" '{
        count = $NF
        sub(/ [0-9]+$/, "")
        frames = split($0, frame, ";")
        if (frame[1] == comm) {
            all += count
            if ($0 ~ /;main;/ && frame[frames] !~ /\+0x|^\[/) good += count
        }
    } END {
        share = all ? 100 * good / all : 0
        if (all < 10) print "not seen"
        else if (share >= 95) print "yes"
        else if (share <= 5) print "no"
        else printf "%d of 100\n", share
    }' "$WORK/$1.folded"
}

# row LABEL NAME [OPTION...]: one line of the table.
row() {
    local label=$1 place cells=
    shift
    if record "$@"; then
        for place in "${places[@]}"; do
            cells="$cells $(named "$1" "$place") |"
        done
    else
        for place in "${places[@]}"; do
            cells="$cells no session |"
        done
    fi
    echo "| $label |$cells" | tee -a "$WORK/table"
}

capabilities=$(sed -n 's/^AmbientCapabilities=//p' "$SOURCE_DIR/systemd/cpu-profilerd.service.in")
row "nothing" all
for capability in $capabilities; do
    rest="${capabilities/$capability/} $LIMITS"
    set_service AmbientCapabilities= CapabilityBoundingSet= "AmbientCapabilities=$rest" "CapabilityBoundingSet=$rest"
    row "$capability" "$capability"
done
cat "$WORK"/CAP*.out
