#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Readers of one session that come, acknowledge some of what they read, and die. What each of them
# acknowledged is a recording by itself, in which every function has its name; all of them together, one
# file behind the other, have each sample that the books say was kept, once. A client that comes when all has been
# read still gets the books. And what an unread session took of memory the daemon gives back.
. "${0%/*}/lib.sh"
require_perf
use_build release # names come within the time for which samples wait for them
start_daemon

# Programs that are there all the time, and programs that are gone when their samples are read.
work() {
    while :; do
        "$WORKLOADS/forker" --seconds 0.2
        "$WORKLOADS/brief"
    done
}
# One on each CPU: a piece has samples of one.
for cpu in $(lscpu --online --parse=CPU | grep -v '^#'); do
    run_in_background "$WORKLOADS/busy" --seconds 280 --rest 2 --cpu "$cpu" >/dev/null
done
run_in_background work >/dev/null
worker=$BACKGROUND_PID

python3 "${0%/*}/segments.py" "$CPU_PROFILERD_SOCKET" "$WORK" >"$WORK/books.json" || fail "the readers: $(cat "$WORK/daemon.log")"
kill "$worker"
kept=$(json "$WORK/books.json" "d['total']['kept']")

# is_linkers MODULE ADDRESS: whether the address lies in a section that the linker makes. The programs were built
# with symbols, and nothing else of them has none: the head of .plt, where a call goes that is not bound yet.
is_linkers() {
    local start size
    while read -r start size; do
        [ $(($2)) -ge $((16#$start)) ] && [ $(($2)) -lt $((16#$start + 16#$size)) ] && return 0
    done < <(readelf --sections --wide "$1" | sed 's/^ *\[ *[0-9]*\]//' | awk '$1 ~ /^\.plt/ { print $3, $5 }')
    return 1
}

sum=0
for n in 0 1 2 3 4 5 6 7 8; do
    [ -s "$WORK/$n.fxt" ] || continue
    profctl report --json -n 0 "$WORK/$n.fxt" >"$WORK/$n.json" || fail "what reader $n acknowledged is no recording"
    samples=$(json "$WORK/$n.json" "d['samples']")
    sum=$((sum + samples))
    unnamed=0
    while read -r module address count; do
        [ -n "$module" ] || continue
        is_linkers "$module" "$address" || fail "reader $n has no name for $module+$address"
        unnamed=$((unnamed + count))
    done < <(json "$WORK/$n.json" "'\n'.join(r['module'] + ' ' + r['name'].rsplit('+', 1)[1] + ' %d' % r['self'] for r in d['rows'] if '+0x' in r['name'] and (r['module'] or '').startswith('$WORKLOADS'))")
    named=$(json "$WORK/$n.json" "sum(r['self'] for r in d['rows'] if '+0x' not in r['name'] and (r['module'] or '').startswith('$WORKLOADS'))")
    echo "reader $n: $samples samples, $named in functions of the programs, $unnamed in the linker's own code"
    [ "$named" -gt 0 ] || [ "$samples" -lt 500 ] || fail "reader $n has nothing of the programs"
done
[ "$sum" -eq "$kept" ] || fail "the readers acknowledged $sum samples, and $kept were kept"

cat "$WORK"/[0-8].fxt >"$WORK/all.fxt"
profctl report --json "$WORK/all.fxt" >"$WORK/all.json" || fail "all together they are no recording"
expect_json "$WORK/all.json" "d['samples'] == $kept and d['books']['total']['kept'] == $kept" "all together they are another recording"
profctl report --json "$WORK/late.fxt" >"$WORK/late.json" || fail "a late client gets no recording"
expect_json "$WORK/late.json" "d['samples'] == 0 and d['books']['total']['kept'] == $kept" "a late client gets something else than the books"

# Two sessions in one file: their books add up.
profctl record --native -d 1 -o "$WORK/other.fxt" >/dev/null 2>&1 || fail "record"
cat "$WORK/other.fxt" "$WORK/all.fxt" >"$WORK/both.fxt"
profctl report --json "$WORK/both.fxt" >"$WORK/both.json" || fail "two sessions are no recording"
expect_json "$WORK/both.json" "d['samples'] > $kept and d['books']['total']['kept'] == d['samples']" "the books of two sessions do not add up"

# resident: KiB of the daemon's own memory, without the tables of files, which may come at any time.
resident() {
    awk '$1 == "RssAnon:" { print $2 }' "/proc/$daemon_pid/status"
}
profctl start --no-kernel -F 20000 >/dev/null || fail "start"
before=$(resident)
sleep 4
profctl stop >/dev/null || fail "stop"
unread=$(resident)
profctl read --native -o "$WORK/big.fxt" >/dev/null || fail "read"
after=$(resident)
profctl close >/dev/null || fail "close"
size=$(($(stat -c %s "$WORK/big.fxt") / 1024))
echo "resident: $before KiB, $unread with $size KiB unread, $after when they are read"
[ $((unread - before)) -ge $((size * 3 / 4)) ] || fail "what is unread is not in memory"
[ $((unread - after)) -ge $((size / 2)) ] || fail "what was read is still in memory"
