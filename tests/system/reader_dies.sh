#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A reader that is killed with -9 between Read and its acknowledgement takes nothing along: the next reader
# gets every sample that the dead one had, and all reads together have each that the books say was kept, once. Once while the session runs, and once when it has stopped. (A full disk, and profctl
# killed half-way: start_stop_read.sh.)
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon
run_in_background nice -n 10 "$WORKLOADS/busy" --seconds 280 >/dev/null

# samples FILE: a line each, sorted, since a later Read has more of the first CPU before the others.
samples() {
    profctl dump --json "$1" >"$WORK/dump.json" || fail "$1 is no recording"
    PYTHONPATH=$SOURCE_DIR/scripts python3 - "$WORK/dump.json" <<'PYTHON' | sort
import sys
from samples import whole_samples
with open(sys.argv[1], encoding="utf-8") as lines:
    for sample in whole_samples(lines):
        print(sample["time_ns"], sample["cpu"], sample["pid"], sample["tid"])
PYTHON
}

# read_and_die FILE: what one Read gave goes to FILE; its reader is killed without an acknowledgement.
read_and_die() {
    PYTHONPATH=${0%/*} python3 - "$CPU_PROFILERD_SOCKET" "$1" <<'PYTHON'
import os, signal, sys
from sampler import Connection

daemon = Connection(sys.argv[1])
daemon.call("Attach")
data, _, _ = daemon.read_next()
with open(sys.argv[2], "wb") as file:
    file.write(data)
os.kill(os.getpid(), signal.SIGKILL)
PYTHON
    [ $? -eq 137 ]
}

# expect_death N: bash's own word of the kill goes where the reader's errors go.
expect_death() {
    read_and_die "$WORK/dead_$1.fxt" 2>"$WORK/reader.err" || fail "reader $1 did not live until its kill: $(cat "$WORK/reader.err")"
}

profctl start -F 4000 >/dev/null || fail "start"
sleep 0.5
expect_death 1
profctl read -o "$WORK/1.fxt" >/dev/null || fail "read after a kill, running"
sleep 0.5
profctl stop >/dev/null || fail "stop"
expect_death 2
profctl read -o "$WORK/2.fxt" >/dev/null || fail "read after a kill, stopped"

had=0
for n in 1 2; do
    samples "$WORK/dead_$n.fxt" >"$WORK/dead"
    samples "$WORK/$n.fxt" >"$WORK/next"
    count=$(wc -l <"$WORK/dead")
    had=$((had + count))
    missing=$(comm -23 "$WORK/dead" "$WORK/next" | wc -l)
    [ "$missing" -eq 0 ] || fail "the read after kill $n lacks $missing of the $count samples that the dead reader had"
    echo "kill $n: $count samples, and the next read had them all, and $(($(wc -l <"$WORK/next") - count)) others"
done
# A Read may be names alone, but not both of them.
[ "$had" -gt 0 ] || fail "no reader had samples when it was killed"
for n in 1 2; do
    samples "$WORK/$n.fxt"
done >"$WORK/all"
[ -z "$(sort "$WORK/all" | uniq -d)" ] || fail "a sample was read twice"
kept=$(json "$WORK/dump.json" "[l['value']['total']['kept'] for l in lines if l['record'] == 'data' and l['name'] == 'cpu-profilerd.books'][-1]")
[ "$(wc -l <"$WORK/all")" -eq "$kept" ] || fail "$(wc -l <"$WORK/all") samples were read, and $kept were kept"
profctl close >/dev/null || fail "close"
