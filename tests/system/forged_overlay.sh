#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user starts a program of root with the set-user-id bit, which is gone before its file is looked for. The way left is
# the root of its parent, the user's own process, where an overlay shows another file under the same path and with
# the same inode number. No sample of root's program has a name out of that file.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make a program with the set-user-id bit"
here=$SOURCE_DIR/tests/system
user=(setpriv --reuid=4711 --regid=4711 --clear-groups)
chmod 755 "$WORK"
mkdir "$WORK/shown"
# Small inode numbers, which the user comes to soon; of a disk's it takes minutes.
mount -t tmpfs none "$WORK/shown" || skip "no tmpfs can be mounted"
unmount() {
    umount "$WORK/shown"
}
at_end unmount
chmod 755 "$WORK/shown"
seq -f "$WORK/shown/%g" 300 | xargs touch
gcc -O1 -o "$WORK/forged_overlay" "$here/forged_overlay.c" || fail "no forged_overlay"
cat >"$WORK/program.c" <<'PROGRAM'
#include <time.h>
__attribute__((noinline)) static void true_name(void) { for (volatile int i = 0; i < 20000; i++) { } }
int main(void) { while (clock() < CLOCKS_PER_SEC / 80) { true_name(); } }
PROGRAM
gcc -O1 -o "$WORK/true" "$WORK/program.c" || fail "no program"
objcopy --redefine-sym true_name=forged_name "$WORK/true" "$WORK/forged" || fail "no forged program"
install -m 4755 "$WORK/true" "$WORK/shown/program"

start_daemon
mkfifo "$WORK/go"
"${user[@]}" "$WORK/forged_overlay" "$WORK/shown/program" "$WORK/forged" <"$WORK/go" >"$WORK/said" 2>&1 &
background_pids+=($!)
exec 9>"$WORK/go"
wait_until 30 grep -q ready "$WORK/said" || skip "no overlay can be made here: $(cat "$WORK/said")"
run_in_background profctl record --native --no-kernel -F 4000 -d 5 -o "$WORK/p.fxt" >"$WORK/record.out" 2>&1
sleep 1
echo >&9
wait "$BACKGROUND_PID" || fail "record: $(cat "$WORK/record.out")"
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
json "$WORK/p.json" "[(r['name'], r['module'], r['self']) for r in d['rows'] if '/program' in (r['module'] or '')][:8]"
# Two runs of it, of 50 ticks each.
expect_json "$WORK/p.json" "sum(r['self'] for r in d['rows'] if r['name'] in ('true_name', 'forged_name') or (r['module'] or '').endswith('/program')) > 100" \
    "the program is hardly seen, so nothing is proved"
expect_json "$WORK/p.json" "not [r for r in d['rows'] if r['name'] == 'forged_name']" \
    "a user's file names what root's program does"
