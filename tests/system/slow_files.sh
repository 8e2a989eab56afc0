#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Users without any right run programs whose files keep a worker busy for ten seconds each, again and again other
# files: first one user, who also runs each of the victim's programs before the victim does, so that its files are
# asked for on that user's account; then three users at once; then the victim itself, as the user of a large library
# does. Programs of uid 4712 that start meanwhile, with libraries that were never read before, have whole stacks.
#
# The bounds: a sample waits 2 s for its tables. A victim's file waits for 0.3 s until the first worker counts as slow,
# for 0.3 s of each attacker whose file the second worker tries first (0.9 s), and for what starts a process, so no
# stack of the victim is cold; 0.5 % of its stacks may end early for other reasons, which is what the unwinder is held
# to for this program. All that an attacker's program had on its stack may be cold.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can run programs of other users"
chmod 711 "$WORK"
rounds=2
python3 "${0%/*}/slow_files.py" "$WORKLOADS/busy" "$WORK/slow" >"$WORK/bytes" || fail "no slow file"

# Programs as a distribution has them, each with libraries of its own.
for round in $(seq $rounds); do
    folder=$WORK/victim-$round
    mkdir "$folder"
    cp -L "$(readlink -f /usr/bin/python3)" "$folder/sf-victim-$round"
    ln "$folder/sf-victim-$round" "$folder/sf-ahead-$round"
    ldd /usr/bin/python3 | awk '$3 ~ "^/" { print $3 }' | xargs -I{} cp -L {} "$folder/"
    chown -R 4712:4712 "$folder"
done

# run_victim USER NAME SECONDS
run_victim() {
    LD_LIBRARY_PATH=${2%/*} setpriv --reuid="$1" --regid="$1" --clear-groups "$2" -c '
import sys, time
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    sorted(range(1000))' "$3"
}

# What each worker may use, in bytes: the second an eighth of what the daemon may, at most 512 MiB.
worker_memory() {
    local pid
    for pid in $(pgrep -P "$daemon_pid" -f elf-worker); do
        awk '/^Max address space/ { print $4 }' "/proc/$pid/limits"
    done | sort -n | paste -sd' '
}

has_two_workers() {
    local first second rest
    read -r second first rest < <(worker_memory)
    [ "${first:-0}" = 1610612736 ] && [ "$second" -ge 134217728 ] && [ "$second" -le 536870912 ] && [ -z "$rest" ]
}

# attack STORY UID...: the users' slow files, one after the other, and the victim's programs beside them.
attack() {
    local story=$1 record_pid round user slow targets=(-u 4712)
    shift
    for user in "$@"; do
        targets+=(-u "$user")
    done
    start_daemon
    run_in_background profctl record --native --no-kernel -F 999 "${targets[@]}" -o "$WORK/$story.fxt" >"$WORK/$story.out" 2>&1
    record_pid=$BACKGROUND_PID
    wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/$story.out")"
    for round in $(seq $rounds); do
        for user in "$@"; do
            slow=$WORK/slow-$story-$user-$round
            cp "$WORK/slow" "$slow"
            chown "$user:$user" "$slow"
            run_in_background setpriv --reuid="$user" --regid="$user" --clear-groups "$slow" --seconds 0.5 >/dev/null
        done
        sleep 1
        if [ $# -eq 1 ]; then
            run_victim "$1" "$WORK/victim-$round/sf-ahead-$round" 0.2 || fail "the attacker ended with status $?"
        fi
        run_victim 4712 "$WORK/victim-$round/sf-victim-$round" 1 || fail "the victim ended with status $?"
        [ "$round" -gt 1 ] || wait_until 5 has_two_workers || fail "the workers may use: $(worker_memory)"
    done
    kill -TERM "$record_pid"
    wait "$record_pid" || fail "record: $(cat "$WORK/$story.out")"
    stop_daemon || fail "the daemon did not end well"
    profctl export --format folded "$WORK/$story.fxt" >"$WORK/$story.folded" || fail "export"
    profctl report --json "$WORK/$story.fxt" >"$WORK/$story.json" || fail "report"
    python3 - "$WORK/$story" <<'PYTHON' || fail "the attack '$story' costs others their stacks"
import collections, json, sys
samples = collections.Counter()
for line in open(sys.argv[1] + ".folded", encoding="utf-8"):
    stack, _, count = line.rpartition(" ")
    process, root = (stack.split(";") + [""])[:2]
    kind = "none" if root in ("", "[unknown]", "[kernel]") else "cut" if root == "[truncated]" else "whole"
    samples["victim" if process.startswith("sf-victim") else "other", kind] += int(count)
cold = json.load(open(sys.argv[1] + ".json", encoding="utf-8"))["books"]["cold_stacks"]
others = sum(count for (whose, _), count in samples.items() if whose == "other")
whole, cut = samples["victim", "whole"], samples["victim", "cut"]
print(f"victims: {whole} whole stacks, {cut} cut; {others} samples of others; {cold} cold stacks")
allowed = 0.005 * (whole + cut)
sys.exit(not (whole >= 500 and cut <= allowed and cold <= others + allowed))
PYTHON
}

attack one 4711
attack three 4711 4713 4714
attack own 4712
