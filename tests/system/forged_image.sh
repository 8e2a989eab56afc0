#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two images of a filesystem, one after the other on one loop device, each with a program at the same inode, of the same
# size and times, as local users may mount their own with udisks, and as sticks in one port are. The table of the first
# is still kept when the second is there: no sample of its program has a name out of the first.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can mount an image"
chmod 711 "$WORK"
mkdir "$WORK/mnt"
cat >"$WORK/program.c" <<'PROGRAM'
#include <time.h>
__attribute__((noinline)) static void true_name(void) { for (volatile int i = 0; i < 20000; i++) { } }
int main(void) { while (clock() < 0.75 * CLOCKS_PER_SEC) { true_name(); } }
PROGRAM
gcc -O1 -o "$WORK/program" "$WORK/program.c" || fail "no program"

# The one that is free now; every image is on it. Profilers have its files open for as long as they read them, and the
# kernel frees it later.
loop=$(losetup -f) || skip "there are no loop devices"
free_loop() {
    umount "$WORK/mnt" 2>/dev/null
    losetup -d "$loop" 2>/dev/null
}
at_end free_loop

set_up() {
    losetup "$loop" "$WORK/$1" 2>/dev/null
}

# attach IMAGE OPTIONS: the image at $WORK/mnt.
attach() {
    wait_until 20 set_up "$1" && mount -o "$2" "$loop" "$WORK/mnt"
}

detach() {
    wait_until 20 umount "$WORK/mnt" 2>/dev/null || fail "the image stays mounted"
    losetup -d "$loop" || fail "the loop device stays in use"
}

truncate -s 8M "$WORK/second"
mkfs.ext4 -q -F "$WORK/second" || skip "no image can be made"
attach second rw || skip "no image can be mounted"
cp "$WORK/program" "$WORK/mnt/program"
detach
LC_ALL=C sed 's/true_name/fake_name/g' "$WORK/second" >"$WORK/first"

# run IMAGE UID OPTIONS: prints what the program is known by.
run() {
    attach "$1" "$3" || fail "$1: cannot be mounted any more"
    stat -c '%Hd:%Ld inode %i size %s changed %z' "$WORK/mnt/program"
    setpriv --reuid="$2" --regid="$2" --clear-groups "$WORK/mnt/program" || fail "$1: the program ended with status $?"
    # It is read within that time, or not at all.
    sleep 1
    detach
}

# expect_true STORY UID OPTIONS: the first image's program is uid 4711's.
expect_true() {
    local story=$1 recorder
    start_daemon
    run_in_background profctl record --native --no-kernel -F 4000 -o "$WORK/$story.fxt" >"$WORK/record.out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "$story: nothing is recorded: $(cat "$WORK/record.out")"
    run first 4711 "$3" >"$WORK/known.1"
    run second "$2" "$3" >"$WORK/known.2"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat "$WORK/record.out")"
    stop_daemon || fail "$story: the daemon"
    cmp -s "$WORK/known.1" "$WORK/known.2" || skip "the files differ: $(cat "$WORK"/known.*)"
    profctl report --json -n 0 "$WORK/$story.fxt" >"$WORK/p.json" || fail "report"
    echo "$story: $(json "$WORK/p.json" "[(r['name'], r['module'], r['self']) for r in d['rows'] if r['name'] in ('true_name', 'fake_name')]")"
    # A third of the ticks of a busy CPU for 0.75 s each.
    expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'fake_name') > 1000" \
        "$story: the first program has no names, so nothing is proved"
    expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'true_name') > 1000" \
        "$story: the first program's file names what the second does"
}

expect_true users 4712 nosuid,nodev
[ -r /sys/dev/block/7:0/diskseq ] || skip "one user's images are told apart from Linux 5.15 on; all else holds"
expect_true disks 4711 rw
