#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A member of the group records the machine. The command lines of the member's own programs are in the recording, and
# no others: not those of root and of another user; of programs with a set-user-id bit, whichever way round; of
# programs that changed their user, that are root's underneath, or that may not be looked into; nor what a process was
# called with before it became the member's. Each is there before the session begins, and begins in it as well. Root's
# session has all of them.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make processes of other users"
# The group is for this test alone.
if [ -z "${OWN_MOUNTS:-}" ]; then
    rm -rf "$WORK"
    unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
    OWN_MOUNTS=1 exec unshare --mount "$0"
fi
user=4711 other=4712 group=4700
as() {
    exec setpriv --reuid="$1" --regid="$1" --groups=$group "${@:2}"
}
chmod 755 "$WORK"
{ grep -v '^cpu-profiler:' /etc/group && echo "cpu-profiler:x:$group:"; } >"$WORK/group"
chmod 644 "$WORK/group"
mount --bind "$WORK/group" /etc/group || fail "no group can be made"
cp "$BIN/profctl" "$WORK/profctl"

cat >"$WORK/keep.c" <<'C'
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
/* keep HOW MS SECRET [UID [PROGRAM ARGUMENT...]]: spins for so long, as HOW says, and rests nine times as long. */
static long cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
static void spin(long ms)
{
    for (long at; (at = cpu_ms()) < ms; usleep(9000))
        while (cpu_ms() == at)
            continue;
}
int main(int argc, char **argv)
{
    uid_t uid = argc > 4 ? (uid_t)atoi(argv[4]) : 0;
    int r = 0;
    if (strcmp(argv[1], "drop") == 0)
        r = setgid(uid) | setuid(uid);
    if (strcmp(argv[1], "lend") == 0) /* and may be looked into, by those who have its user ids */
        r = setegid(uid) | seteuid(uid) | prctl(PR_SET_DUMPABLE, 1);
    if (strcmp(argv[1], "close") == 0)
        r = prctl(PR_SET_DUMPABLE, 0);
    if (r != 0)
        return 1;
    spin(atol(argv[2]));
    if (strcmp(argv[1], "hand") == 0 && (setgid(uid) | setuid(uid)) == 0)
        execv(argv[5], argv + 5);
    return 0;
}
C
gcc -O1 "$WORK/keep.c" -o "$WORK/keep" || fail "gcc"
cp "$WORK/keep" "$WORK/keep_root" && chmod 4755 "$WORK/keep_root" || fail "set-user-id"
cp "$WORK/keep" "$WORK/keep_member" && chown $user "$WORK/keep_member" && chmod 4755 "$WORK/keep_member" || fail "set-user-id"
[ "$(findmnt -no OPTIONS --target "$WORK" | grep -c nosuid)" -eq 0 ] || skip "no set-user-id programs in $WORK"

# run WHEN: one program of each kind, whose command lines say so.
run() {
    local ms=60000
    pids=()
    start() {
        run_in_background "$@" >/dev/null
        pids+=("$BACKGROUND_PID")
    }
    start "$WORK/keep" plain $ms "SECRET-root-$1"
    start setpriv --reuid=$other --regid=$other --clear-groups "$WORK/keep" plain $ms "SECRET-other-$1"
    start setpriv --reuid=$user --regid=$user --clear-groups "$WORK/keep_root" plain $ms "SECRET-setuid-$1"
    start setpriv --reuid=$other --regid=$other --clear-groups "$WORK/keep_member" plain $ms "SECRET-lent-$1"
    start "$WORK/keep" drop $ms "SECRET-drop-$1" $user
    start "$WORK/keep" lend $ms "SECRET-seteuid-$1" $user
    # One that closes itself may be looked into before it does.
    [ "$1" != before ] || start setpriv --reuid=$user --regid=$user --clear-groups "$WORK/keep" close $ms SECRET-close-before
    start setpriv --reuid=$user --regid=$user --clear-groups "$WORK/keep" plain $ms "OWN-plain-$1"
    start "$WORK/keep" hand 20 "SECRET-hand-$1" $user "$WORK/keep" plain $ms "OWN-hand-$1"
}
SECRETS=(root other setuid lent drop seteuid)

# record WHOSE NAME [COMMAND...]: what a session as that user has of all of them, and of 40 programs more that are handed
# over while they may be read.
record() {
    local name=$2 all
    run before
    all=("${pids[@]}")
    expect_run 30 "${pids[@]}"
    kill -STOP "${pids[@]}" # they are to leave the CPUs to the others
    (as "$1" "$WORK/profctl" record -F 1999 -o - >"$WORK/$name.fxt" 2>"$WORK/record.out") &
    recorder=$!
    background_pids+=("$recorder")
    wait_until 10 session_runs || fail "$name: $(cat "$WORK/record.out")"
    for _ in {1..40}; do
        "$WORK/keep" hand 1 SECRET-race $user "$WORK/keep" plain 5 OWN-race
    done
    run within
    kill -CONT "${all[@]}"
    all+=("${pids[@]}")
    expect_run 100 "${all[@]}" # command lines are read last of all that is to be read
    pkill -TERM -P "$recorder" -x profctl || kill -TERM "$recorder"
    wait "$recorder" || fail "$name: $(cat "$WORK/record.out")"
    kill "${all[@]}" 2>/dev/null
    wait "${all[@]}" 2>/dev/null
    profctl dump --json "$WORK/$name.fxt" | grep cmdline >"$WORK/$name.lines"
}

has() {
    grep -qF -- "$2" "$WORK/$1.lines"
}

start_daemon
record $user member
for token in OWN-plain-before OWN-plain-within OWN-hand-before OWN-hand-within OWN-race; do
    has member $token || fail "the member's own $token is not there"
done
! grep -aqF SECRET "$WORK/member.fxt" || fail "the member has $(grep -aoE 'SECRET-[a-z-]+' "$WORK/member.fxt" | sort | uniq -c)"
record 0 root
for secret in "${SECRETS[@]}"; do
    has root "SECRET-$secret-before" && has root "SECRET-$secret-within" || fail "root's session has no SECRET-$secret"
done
has root SECRET-close-before && has root OWN-plain-within || fail "root's session lacks one of the member's"
echo "$(grep -c OWN-race "$WORK/member.lines") of 40 handed over were read in the member's session, $(grep -c 'SECRET-race\|OWN-race' "$WORK/root.lines") lines of them in root's"
