#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Users who hold as many of the daemon's threads as they can, by processes that keep what looks at their memory
# waiting: two users with two such processes each, then three more, and then one user under ten of its subordinate
# uids. A program of somebody else that has never run before has its names and whole stacks meanwhile.
. "${0%/*}/lib.sh"
require_perf
use_build release
mkdir "$WORK/mnt"
chmod 711 "$WORK"
VICTIM=20100

# The daemon sees an /etc/subuid by which ten uids are one user's.
[ -e /etc/subuid ] || skip "there is no /etc/subuid to be replaced"
echo "20010:20011:10" >"$WORK/subuid"
mkdir "$WORK/bin"
cat >"$WORK/bin/cpu-profilerd" <<SCRIPT
#!/bin/bash
exec unshare --mount bash -c 'mount --bind "$WORK/subuid" /etc/subuid && exec "$BIN/cpu-profilerd" "\$@"' bash "\$@"
SCRIPT
chmod 755 "$WORK/bin/cpu-profilerd"

# stick UID...: a stuck process of each; skips where none can be.
stick() {
    local uid file files=()
    for uid in "$@"; do
        file=$WORK/stuck.${#background_pids[@]}
        install -m 755 "$WORKLOADS/stuck_process" "$file.copy"
        run_in_background nice -n 19 "$WORKLOADS/stuck_process" "$WORK/mnt" "$uid" "$file.copy" >"$file" 2>&1
        files+=("$file")
    done
    for file in "${files[@]}"; do
        wait_until 10 grep -q '^stuck' "$file" || skip "no process can be stuck here: $(cat "$file")"
    done
}

# holds_still BEFORE: more than BEFORE threads are held, and no more than a second ago.
held=0
holds_still() {
    local last=$held
    sleep 1
    held=$(count_held)
    [ "$held" -gt "$1" ] && [ "$held" -eq "$last" ]
}

# expect_names STORY UID...: a new program of the victim is named whole although these hold threads. What is
# mapped by a process that hung before the session cannot be read, so they begin in it.
expect_names() {
    local program=$WORK/victim.$1 story=$1 before
    shift
    install -m 755 "$WORKLOADS/busy" "$program"
    run_in_background profctl record --native --no-kernel -F 2000 -a -o "$WORK/$story.fxt" >"$WORK/$story.out" 2>&1
    local recorder=$BACKGROUND_PID
    wait_until 10 session_runs || fail "$story: nothing is recorded: $(cat "$WORK/$story.out")"
    before=$(count_held)
    stick "$@"
    # 20 looks: what will be held is held when no more follow.
    wait_until 1 holds_still "$before" || fail "$story: they hold no threads, so this shows nothing"
    nice -n -10 setpriv --reuid="$VICTIM" --regid="$VICTIM" --clear-groups "$program" --seconds 2 >/dev/null ||
        fail "$story: the victim ended with status $?"
    kill -TERM "$recorder"
    wait "$recorder" || fail "$story: record: $(cat "$WORK/$story.out")"
    profctl export --format folded "$WORK/$story.fxt" >"$WORK/$story.folded" || fail "$story: export"
    expect_busy_whole "victim.$story" "$WORK/$story.folded"
    echo "$story: $(cat "$WORK/verdict"), with $held threads held"
}

daemon_start "$WORK/bin" "$WORK" || fail "the daemon did not start"
expect_names two 20001 20001 20002 20002
expect_names five 20003 20003 20004 20004 20005 20005
# shellcheck disable=SC2046
expect_names sub $(seq 20011 20020) $(seq 20011 20020)
stop_daemon || exit 1
