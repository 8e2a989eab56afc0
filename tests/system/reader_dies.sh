#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A reader that is killed with -9 between Read and its acknowledgement takes nothing along: the next reader gets every
# sample that the dead one had, and all reads together have each that the books say was kept, once. Once while the
# session runs, and once when it has stopped. (A full disk, and profctl killed half-way: start_stop_read.sh.)
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null

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

# read_and_die N: what Reads gave goes to dead_N.fxt, and their reader is killed. The first may have nothing but names, and are
# acknowledged; the one with samples is not.
read_and_die() {
    PYTHONPATH=${0%/*} python3 - "$CPU_PROFILERD_SOCKET" "$WORK/dead_$1.fxt" "$BIN/profctl" <<'PYTHON'
import os, signal, subprocess, sys
from sampler import Connection

def has_samples(path):
    lines = subprocess.run([sys.argv[3], "dump", "--json", path], check=True, stdout=subprocess.PIPE).stdout
    return b'"record":"sample"' in lines.replace(b" ", b"")

daemon = Connection(sys.argv[1])
daemon.call("Attach")
sequence, end = None, False
while not end:
    data, sequence, end = daemon.read_next(sequence)
    with open(sys.argv[2], "ab") as file:
        file.write(data)
    if data and has_samples(sys.argv[2]):
        break
os.kill(os.getpid(), signal.SIGKILL)
PYTHON
    [ $? -eq 137 ]
}

# expect_death N: bash's own word of the kill goes where the reader's errors go.
expect_death() {
    read_and_die "$1" 2>"$WORK/reader.err" || fail "reader $1 did not live until its kill: $(cat "$WORK/reader.err")"
}

profctl start -F 4000 >/dev/null || fail "start"
sleep 0.5
expect_death 1
profctl read -o "$WORK/1.fxt" >/dev/null || fail "read after a kill, running"
sleep 0.5
profctl stop >/dev/null || fail "stop"
expect_death 2
profctl read -o "$WORK/2.fxt" >/dev/null || fail "read after a kill, stopped"

for n in 1 2; do
    samples "$WORK/dead_$n.fxt" >"$WORK/dead"
    samples "$WORK/$n.fxt" >"$WORK/next"
    count=$(wc -l <"$WORK/dead")
    [ "$count" -gt 0 ] || fail "reader $n had no samples when it was killed"
    missing=$(comm -23 "$WORK/dead" "$WORK/next" | wc -l)
    [ "$missing" -eq 0 ] || fail "the read after kill $n lacks $missing of the $count samples that the dead reader had"
    echo "kill $n: $count samples, and the next read had them all, and $(($(wc -l <"$WORK/next") - count)) others"
done
for n in 1 2; do
    samples "$WORK/$n.fxt"
done >"$WORK/all"
[ -z "$(sort "$WORK/all" | uniq -d)" ] || fail "a sample was read twice"
kept=$(json "$WORK/dump.json" "[l['value']['total']['kept'] for l in lines if l['record'] == 'data' and l['name'] == 'cpu-profilerd.books'][-1]")
[ "$(wc -l <"$WORK/all")" -eq "$kept" ] || fail "$(wc -l <"$WORK/all") samples were read, and $kept were kept"
profctl close >/dev/null || fail "close"
