#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user's filesystem does not answer a question for attributes that the daemon asks late, when it has looked at the
# machine's own filesystem meanwhile: once of the root of a program that runs from there, and once of the file of one
# that a path of the machine's leads to as well. Then a user holds the lock of a folder of the machine's own filesystem,
# to which the paths of its programs lead. That filesystem does not count as hanging for any of it: a new program of
# another user's has its names and whole stacks.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
chmod 711 "$WORK"
mkdir -p "$WORK/mnt/merged"
# A machine without udev has none that users may open.
mknod -m 666 "$WORK/fuse" c 10 229 2>/dev/null || skip "no device can be made"
# With --become PATH, a link to that path stands in the program's own place as soon as it has begun.
cat >"$WORK/hog.c" <<'SOURCE'
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--become") == 0 && (unlink(argv[0]) != 0 || symlink(argv[2], argv[0]) != 0))
        return 1;
    for (;; usleep(20000)) {
        for (volatile long i = 0; i < 2000000; i++) { }
    }
}
SOURCE
gcc -O1 -static -o "$WORK/hog" "$WORK/hog.c" || fail "no program"
cp "$WORK/hog" "$WORK/mnt/merged/file"
cp "$WORKLOADS/fuse_program" "$WORK/"
cat >"$WORK/attacker.sh" <<'SCRIPT'
mount --bind "$1/fuse" /dev/fuse && exec nice -n 19 setpriv --reuid=4711 --regid=4711 --clear-groups \
    "$1/fuse_program" "$2" "$1/mnt" "$1/hog" "$1/held"
SCRIPT
install -d -o 4711 -g 4711 "$WORK/held" "$WORK/own"

# lead_into_held: programs of that user, in whose places links to the folder stand before the daemon looks at them.
lead_into_held() {
    local program
    for program in "$WORK"/own/hog.{1..8}; do
        install -m 755 "$WORK/hog" "$program"
        run_in_background nice -n 19 setpriv --reuid=4711 --regid=4711 --clear-groups "$program" --become "$WORK/held/nothing"
        wait_until 5 test -L "$program" || fail "no link stands in the place of $program"
    done
}

# attacker_ran: a program of that user has run for long enough to be sampled.
attacker_ran() {
    local pid
    for pid in $(pgrep -u 4711 '^(hog|file)'); do
        ! read_cpu_ms "$pid" || [ "$CPU_MS" -lt 50 ] || return 0
    done
    return 1
}

# expect_names STORY: while the attack lasts.
expect_names() {
    local story=$1 program=$WORK/victim_$1 recorder held
    install -m 755 "$WORKLOADS/busy" "$program"
    start_daemon
    run_in_background profctl record --native --no-kernel -F 2000 -a -o "$WORK/$story.fxt" >"$WORK/$story.out" 2>&1
    recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "$story: nothing is recorded: $(cat "$WORK/$story.out")"
    run_in_background unshare --mount bash "$WORK/attacker.sh" "$WORK" "--$story" >"$WORK/$story.attacker" 2>&1
    if [ "$story" = hold ]; then
        wait_until 10 grep -q '^held' "$WORK/$story.attacker" || skip "no folder can be held: $(cat "$WORK/$story.attacker")"
        lead_into_held
    fi
    # Longer than a thread is waited for.
    sleep 4
    ! process_ended "$BACKGROUND_PID" || skip "no program can run from FUSE here: $(cat "$WORK/$story.attacker")"
    wait_until 60 attacker_ran || fail "$story: the attacker does not run"
    nice -n -10 setpriv --reuid=4712 --regid=4712 --clear-groups "$program" --seconds 1.5 >/dev/null || fail "$story: the victim"
    held=$(sort -u "$WORK/$story.attacker" | grep -c stat)
    if [ "$story" = hold ]; then
        held=$(count_held)
        [ "$held" -gt 0 ] || fail "$story: no thread is held, so this shows nothing"
    fi
    kill -TERM "$recorder"
    wait "$recorder" || fail "$story: record: $(cat "$WORK/$story.out")"
    stop_background
    profctl export --format folded "$WORK/$story.fxt" >"$WORK/$story.folded" || fail "$story: export"
    grep -q '^hog[;.]\|^file;' "$WORK/$story.folded" || fail "$story: the attacker has no samples, so this shows nothing"
    expect_busy_whole "victim_$story" "$WORK/$story.folded"
    echo "$story: $(cat "$WORK/verdict"), $held threads held"
    stop_daemon || fail "$story: the daemon"
}

expect_names root
expect_names silent
expect_names hold
