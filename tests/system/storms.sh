#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Names under storm: libraries that take turns at one address, a pid that is used again and again, programs
# that live for some milliseconds or become one another, two threads that do nothing but map executable
# files. Each workload tells by the clock what ran when; a sample that says otherwise fails the test. How
# many samples are the least is derived from the ticks of 250 us in what ran; see timeline.py. What is lost
# or dropped meanwhile is in the books, which are printed: a machine that others keep busy may lose some.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

# record NAME: the whole machine at 4000 Hz in the background, until it is judged.
record() {
    name=$1
    run_in_background profctl record --native --no-kernel -F 4000 -a -o "$WORK/$1.fxt" >"$WORK/$1.out" 2>&1
    wait_until 10 session_runs || fail "record $1: $(cat "$WORK/$1.out")"
}

# judge STORY LOG: the recording NAME is whole; what it says against what the workload told is judged at the end.
judged=()
judge() {
    kill -TERM "$BACKGROUND_PID"
    wait "$BACKGROUND_PID" || fail "record $name: $(cat "$WORK/$name.out")"
    judged+=("$name $1 $2")
}

# verdict NAME STORY LOG
verdict() {
    profctl dump --json "$WORK/$1.fxt" >"$WORK/$1.json" || fail "dump $1"
    python3 "$SOURCE_DIR/tests/system/timeline.py" "$2" "$3" <"$WORK/$1.json"
}

record libraries
"$WORKLOADS/alternate" --seconds 2 >"$WORK/libraries.log" || fail "alternate"
judge libraries "$WORK/libraries.log"

record reuse
"$WORKLOADS/reuser" 200 >"$WORK/reuse.log"
status=$?
case $status in
0) judge lives "$WORK/reuse.log" ;;
77)
    echo "== reuse: no pid can be chosen here"
    kill -TERM "$BACKGROUND_PID"
    wait "$BACKGROUND_PID"
    ;;
*) fail "reuser" ;;
esac

# Two programs that become each other every 3 ms; four chains of 100.
for program in chain_a chain_b short_a short_b short_c short_d; do
    cp "$WORKLOADS/turn" "$WORK/$program"
done
: >"$WORK/chain.log"
record chain
chains=()
for _ in 1 2; do
    "$WORK/chain_a" "$WORK/chain.log" 3000 200 "$WORK/chain_b" &
    chains+=($!)
done
wait "${chains[@]}"
judge programs "$WORK/chain.log"

# 400 processes of 2 to 5 ms.
: >"$WORK/short.log"
record short
for ((i = 0; i < 100; i++)); do
    for program in short_a short_b short_c short_d; do
        "$WORK/$program" "$WORK/short.log" $((2000 + RANDOM % 3000))
    done
done
judge programs "$WORK/short.log"

# 1,200 processes of 0.2 ms, as fast as two shells can make them.
: >"$WORK/forks.log"
record forks
forks=()
for _ in 1 2; do
    (for ((i = 0; i < 300; i++)); do
        "$WORK/short_a" "$WORK/forks.log" 200
        "$WORK/short_b" "$WORK/forks.log" 200
    done) &
    forks+=($!)
done
wait "${forks[@]}"
judge programs "$WORK/forks.log"

# Of 100 turns of 20 us seven have a tick of 250 us, and the storm leaves the file of one of these known: 300 of these turns,
# however little of the CPUs they get, where the judge asks for 100.
record maps
"$WORKLOADS/map_storm" 15000 "$WORK/map_ping" "$WORK/map_pong" >"$WORK/maps.log" || fail "map_storm"
judge files "$WORK/maps.log"
stop_daemon || exit 1

# All at once, now that nothing is recorded.
verdicts=()
for story in "${judged[@]}"; do
    # shellcheck disable=SC2086
    verdict $story >"$WORK/${story%% *}.verdict" 2>&1 &
    verdicts+=("$!")
done
for i in "${!judged[@]}"; do
    status=0
    wait "${verdicts[i]}" || status=$?
    echo "== ${judged[i]%% *}"
    cat "$WORK/${judged[i]%% *}.verdict"
    [ "$status" -eq 0 ] || fail "${judged[i]%% *}"
done
