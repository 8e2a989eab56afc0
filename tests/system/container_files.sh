#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Files of uid 0 in a container were written by the container's root, which is not the machine's: a worker that has
# read one of them reads nothing else. The container is a root of its own on a filesystem that root mounted. Names
# are found in it all the same.
. "${0%/*}/lib.sh"
require_perf
unshare --mount true 2>/dev/null || skip "a container needs root"
case $(findmnt -no OPTIONS -T "$WORK") in
*nosuid*) skip "$WORK is mounted without set-user-id, as what users bring along is" ;;
esac
use_build release
chmod 755 "$WORK"
for name in first second third; do
    install "$WORKLOADS/busy" "$WORK/km-$name"
done

# Only what these programs run is read: no call frames, and no other program's files.
echo '{"frequency_hz": 1000, "unwind": "fp", "targets": {"comms": ["km-*"]}}' >"$WORK/config.json"
mkdir "$WORK/root"
cat >"$WORK/container.sh" <<'SCRIPT'
mount -t tmpfs none "$1/root" || exit 1
ldd "$1/km-first" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$1/root${library%/*}" && cp "$library" "$1/root$library" || exit 1
done
cp "$1/km-first" "$1/root/km-inside"
exec chroot "$1/root" /km-inside --seconds 1
SCRIPT

worker() {
    pgrep -P "$daemon_pid" | head -n 1
}

# has_names NAME COMMAND...: runs the program; its function is in the recording with its name, so its file was read.
has_names() {
    local name=$1
    shift
    "$@" >"$WORK/run.out" 2>&1 || fail "$*: $(cat "$WORK/run.out")"
    profctl read --native --force -o "$WORK/p.fxt" >"$WORK/read.out" 2>&1 || fail "read: $(cat "$WORK/read.out")"
    profctl export --format folded "$WORK/p.fxt" | grep -q "^km-$name;.*spin_three_fifths"
}

# expect_names NAME COMMAND...: at the latest when the program runs for the tenth time; its file may be read slowly.
expect_names() {
    local try
    for try in {1..10}; do
        ! has_names "$@" || return 0
    done
    fail "km-$1 has no names after $try runs"
}

start_daemon
profctl start --config "$WORK/config.json" >"$WORK/out" 2>&1 || fail "start: $(cat "$WORK/out")"
expect_names first "$WORK/km-first" --seconds 1
before=$(worker)
[ -n "$before" ] || fail "there is no worker"
expect_names second "$WORK/km-second" --seconds 1
[ "$(worker)" = "$before" ] || fail "root's own files need no new worker, so this shows nothing"

expect_names inside unshare --mount bash "$WORK/container.sh" "$WORK"
expect_names third "$WORK/km-third" --seconds 1
after=$(worker)
echo "worker $before, and $after after a file of the container's root"
[ "$after" != "$before" ] || fail "the worker that read a file of the container's root read root's own after it"
