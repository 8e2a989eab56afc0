#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program in a subvolume of a btrfs, for which stat() tells another device than the kernel's records do: its functions
# have their names, and so have those of a program in a snapshot of it under the same inode number.
. "${0%/*}/lib.sh"
require_perf
use_build release
# Where there is no such filesystem, nothing of the test can be done, on any machine.
if ! command -v mkfs.btrfs >/dev/null || ! truncate -s 256M "$WORK/disk" || ! mkfs.btrfs -q "$WORK/disk" ||
    ! mkdir "$WORK/mounted" || ! mount -o loop "$WORK/disk" "$WORK/mounted"; then
    echo "no btrfs can be made and mounted here"
    exit 77
fi
unmount() {
    umount "$WORK/mounted"
}
at_end unmount
btrfs -q subvolume create "$WORK/mounted/sub" || fail "no subvolume"
cat >"$WORK/program.c" <<'PROGRAM'
#include <time.h>
__attribute__((noinline)) static void true_name(void) { for (volatile int i = 0; i < 20000; i++) { } }
int main(void) { while (clock() < CLOCKS_PER_SEC * 2) { true_name(); } }
PROGRAM
gcc -O1 -o "$WORK/mounted/sub/program" "$WORK/program.c" || fail "no program"
btrfs -q subvolume snapshot "$WORK/mounted/sub" "$WORK/mounted/taken" || fail "no snapshot"
[ "$(stat -c %i "$WORK/mounted/sub/program")" = "$(stat -c %i "$WORK/mounted/taken/program")" ] || fail "other inode numbers"

start_daemon
for folder in sub taken; do
    profctl record --native --no-kernel -F 999 -o "$WORK/p.fxt" -- "$WORK/mounted/$folder/program" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
    profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
    json "$WORK/p.json" "[(r['name'], r['module'], r['self']) for r in d['rows']][:4]"
    expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'true_name' and r['module'].endswith('/$folder/program')) > 500" \
        "$folder: the function has no name"
done
