#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user's FUSE filesystem below an overlay shows a program with the inode number, size and times of another user's file
# (fuse_program.c). The overlay is unmounted, and the other user's takes its device number: to stat() its file is the
# one that was there before, whose table is still kept. No sample of it has a name out of the forged file.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
chmod 755 "$WORK"
mkdir "$WORK/mnt" "$WORK/image" "$WORK/upper" "$WORK/merged" "$WORK/filler"
# A machine without udev has none that users may open.
mknod -m 666 "$WORK/fuse" c 10 229 2>/dev/null || skip "no device can be made"
cat >"$WORK/program.c" <<'PROGRAM'
#include <time.h>
__attribute__((noinline)) static void true_name(void) { for (volatile int i = 0; i < 20000; i++) { } }
int main(void) { while (clock() < 2 * CLOCKS_PER_SEC) { true_name(); } }
PROGRAM
# As long as their paths are in the overlays, so that nothing but the names tells the two apart.
gcc -O1 -o "$WORK/image/file" "$WORK/program.c" || fail "no program"
LC_ALL=C sed 's/true_name/fake_name/g' "$WORK/image/file" >"$WORK/forged"
cp "$WORKLOADS/fuse_program" "$WORK/"
chmod 755 "$WORK/fuse_program" "$WORK/forged" "$WORK/image" "$WORK/image/file" "$WORK/upper" "$WORK/merged" "$WORK/filler"
cat >"$WORK/attacker.sh" <<'SCRIPT'
mount --bind "$1/fuse" /dev/fuse && exec setpriv --reuid=4711 --regid=4711 --clear-groups \
    "$1/fuse_program" --as "$1/image/file" "$1/mnt" "$1/forged"
SCRIPT
cat >"$WORK/victim.sh" <<'SCRIPT'
for _ in {1..50}; do
    mount -t overlay -o "lowerdir=$1/image:$1/upper,userxattr" none "$1/merged" || exit 77
    found=$(stat -c 'device %Hd:%Ld' "$1/merged/file")
    [ "$found" != "$2" ] || exec "$1/merged/file"
    # The least number that is free is the next one's.
    umount "$1/merged" && mount -t tmpfs none "$1/filler" || exit 77
done
echo "not used again: $2, but $found"
exit 77
SCRIPT

start_daemon
run_in_background profctl record --native --no-kernel -F 4000 -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
recorder=$BACKGROUND_PID
sleep 1
unshare --mount bash "$WORK/attacker.sh" "$WORK" >"$WORK/attacker.out" 2>&1 &
attacker=$!
background_pids+=("$attacker")
attacker_is_done() {
    grep -q gone "$WORK/attacker.out" || process_ended "$attacker"
}
wait_until 30 attacker_is_done || fail "the attacker: $(cat "$WORK/attacker.out")"
! process_ended "$attacker" || skip "no program can run from FUSE here: $(cat "$WORK/attacker.out")"
setpriv --reuid=4712 --regid=4712 --clear-groups unshare --user --map-root-user --mount \
    bash "$WORK/victim.sh" "$WORK" "$(grep device "$WORK/attacker.out")" >"$WORK/victim.out" 2>&1 ||
    skip "no overlay can be made here: $(cat "$WORK/victim.out")"
kill -TERM "$recorder"
wait "$recorder" || fail "record: $(cat "$WORK/record.out")"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
json "$WORK/p.json" "[(r['name'], r['module'], r['self']) for r in d['rows'] if r['name'] in ('true_name', 'fake_name')]"
expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'fake_name') > 2000" \
    "the forged program has no names, so nothing is proved"
# Half of the ticks of a busy CPU for 2 s each.
expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'true_name') > 4000" \
    "another user's file names what the program does"
