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

# One program under many names, run by carol, all of them together behind systemd, which need not wait for them. Each is a place of its own where a file can be.
busy=$WORKLOADS/busy
seconds=$((240 * PATIENCE))
lab install -m 755 "$busy" /usr/bin/in_usr
lab install -m 711 "$busy" /usr/bin/unreadable
lab install -m 755 "$busy" /tmp/in_tmp
lab install -m 755 "$busy" /tmp/deleted
lab install -m 700 -o carol "$busy" /home/carol/in_home
lab install -m 700 -o carol "$WORKLOADS/brief" /home/carol/exited
# Its names are in a file of its own, as distributions have them.
build_id=$(readelf -n "$busy" | sed -n 's/.*Build ID: //p')
objcopy --only-keep-debug "$busy" "$WORK/debug"
objcopy --strip-all "$busy" "$WORK/stripped"
lab mkdir -p "/usr/lib/debug/.build-id/${build_id:0:2}"
lab tee "/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug" <"$WORK/debug" >/dev/null
lab tee /usr/bin/stripped <"$WORK/stripped" >/dev/null
lab chmod 755 /usr/bin/stripped
for program in /usr/bin/in_usr /usr/bin/stripped /usr/bin/unreadable /tmp/in_tmp /tmp/deleted /home/carol/in_home; do
    run_in_lab carol nice -n 10 "$program" --seconds "$seconds"
done
run_in_lab carol nice -n 10 dd if=/dev/zero of=/dev/null bs=1M
# Gone before anybody looks, and so is its parent.
run_in_lab carol nice -n 10 sh -c 'while :; do (/home/carol/exited --seconds 0.003 &); sleep 0.03; done'
# shellcheck disable=SC2016 # for the shell inside
lab unshare --mount --pid --fork sh -c 'mount -t tmpfs tmpfs /mnt && install -m 755 "$1" /mnt/in_container &&
    exec setpriv --reuid=carol --regid=carol --clear-groups nice -n 10 /mnt/in_container --seconds "$2"' sh "$busy" "$seconds" >/dev/null 2>&1 &
for place in in_usr stripped in_home in_tmp in_container deleted unreadable dd; do
    wait_until 5 lab pgrep -x "$place" >/dev/null || fail "$place does not run"
done
lab rm /tmp/deleted
places=(in_usr stripped in_home in_tmp in_container exited deleted unreadable)

# record NAME: as alice; the recording as folded stacks. Status 1, and what profctl said, without a session. As many
# samples as a member may have: what else runs leaves little of a CPU to nine programs that are nice.
record() {
    lab_as alice profctl record --native --kernel -F 9973 -d "$PATIENCE" -o /home/alice/p.fxt >"$WORK/$1.out" 2>&1 || return 1
    lab_as alice profctl export --format folded /home/alice/p.fxt >"$WORK/$1.folded"
}

# verdict GOOD BAD SAMPLES: yes, no, or how many of those with a stack; ten are the least that can tell.
verdict() {
    local all=$(($1 + $2))
    if [ "$3" -gt 0 ] && [ "$3" -lt 10 ]; then
        echo "only $3 samples"
    elif [ "$all" -lt 10 ]; then
        echo "no"
    elif [ $((100 * $1)) -ge $((95 * all)) ]; then
        echo "yes"
    elif [ $((100 * $1)) -le $((5 * all)) ]; then
        echo "no"
    else
        echo "$1 of $all"
    fi
}

# count NAME COMM GOOD BAD: samples of a program whose stack matches one of the two, and all.
count() {
    awk -v comm="$2;" -v good="$3" -v bad="$4" 'index($0, comm) == 1 {
        if ($0 ~ good) goods += $NF
        else if ($0 ~ bad) bads += $NF
        all += $NF
    } END { print goods + 0, bads + 0, all + 0 }' "$WORK/$1.folded"
}

# row LABEL NAME: a line of the table. Named is a program with a stack from main on, all of it with names.
row() {
    local place cells=
    if record "$2"; then
        cells=" yes |"
        for place in "${places[@]}"; do
            # shellcheck disable=SC2046
            cells="$cells $(verdict $(count "$2" "$place" ';main;.*_spin|;main;.*_fifths' "${place}[+]0x")) |"
        done
        # shellcheck disable=SC2046
        cells="$cells $(verdict $(count "$2" dd 'do_syscall_64_[[]k[]]' '[[]kernel[]][+]0x')) |"
    else
        cells=" no | | | | | | | | | |"
    fi
    echo "| $1 |$cells" | tee -a "$WORK/table"
}

# with CAPABILITIES [LINE...]: the service with these, and with other lines in its drop-in.
with() {
    local capabilities=$1
    shift
    set_service AmbientCapabilities= CapabilityBoundingSet= "AmbientCapabilities=$capabilities" \
        "CapabilityBoundingSet=$capabilities" "$@"
}

capabilities=$(sed -n 's/^AmbientCapabilities=//p' "$SOURCE_DIR/systemd/cpu-profilerd.service.in")
row "nothing" all
[ -s "$WORK/all.folded" ] || fail "with everything: $(cat "$WORK/all.out")"
for capability in $capabilities; do
    with "${capabilities/$capability/} $LIMITS"
    row "$capability" "$capability"
done
grep -q 'CAP_PERFMON is needed' "$WORK/CAP_PERFMON.out" || fail "without CAP_PERFMON: $(cat "$WORK/CAP_PERFMON.out")"
with "$capabilities" LimitMEMLOCK=8M
row "\`LimitMEMLOCK=infinity\`" memlock
grep -q 'higher LimitMEMLOCK= is needed' "$WORK/memlock.out" || fail "without LimitMEMLOCK=: $(cat "$WORK/memlock.out")"
with "$capabilities $LIMITS"
lab cp /usr/share/doc/cpu-profilerd/kernel-names.conf "/etc/systemd/system/$UNIT.d/z.conf" # after test.conf, which empties the sets
lab systemctl daemon-reload
row "nothing, with \`kernel-names.conf\`" kernel

sed -n '/^| without |/,/^$/p' "$SOURCE_DIR/SECURITY.md" | sed '1,2d; /^$/d' >"$WORK/documented"
diff "$WORK/documented" "$WORK/table" || fail "SECURITY.md has (<) another table than it was found to be (>)"
