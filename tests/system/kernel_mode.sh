#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that starts others spends a part of its time in exec and exit, where a task has no stack of its own.
# The file says of these samples that they were in the kernel. Without kernel stacks every view shows `[kernel]`,
# with them the kernel's frames, and nothing stands between those and the command.
. "${0%/*}/lib.sh"
require_perf
use_build release
start_daemon

# Two seconds of fork, exec and exit. At 4000 Hz a fifth of the samples is in the kernel without a user stack; the
# bound below, 10 samples, only shows that there were some.
start_others() {
    bash -c 'end=$((SECONDS + 2)); while [ "$SECONDS" -lt "$end" ]; do /bin/true; done'
}
export -f start_others

# record NAME [OPTION...]: what the loop does, as NAME.json (dump), NAME.report (JSON) and NAME.folded.
record() {
    local name=$1
    shift
    profctl record --native -F 4000 "$@" -o "$WORK/$name.fxt" -- bash -c start_others >"$WORK/$name.out" 2>&1 ||
        fail "record: $(cat "$WORK/$name.out")"
    profctl dump --json "$WORK/$name.fxt" >"$WORK/$name.json" || fail "dump"
    profctl dump "$WORK/$name.fxt" >"$WORK/$name.dump" || fail "dump"
    profctl report --json -n 0 "$WORK/$name.fxt" >"$WORK/$name.report" || fail "report"
    profctl report --json --lines -n 0 "$WORK/$name.fxt" >"$WORK/$name.lines" || fail "report --lines"
    profctl export --format folded "$WORK/$name.fxt" >"$WORK/$name.folded" || fail "export"
}

# folded_count FILE PATTERN: samples whose whole stack matches.
folded_count() {
    awk -v pattern="$2" '{ n = $NF; sub(/ [0-9]+$/, "") } $0 ~ pattern { sum += n } END { print sum + 0 }' "$1"
}

# self_count FILE NAME: samples of a row of a report.
self_count() {
    json "$1" "sum(r['self'] for r in d['rows'] if r['name'] == '$2')"
}

# The samples in the kernel that have no user stack, as the file tells them.
told_count() {
    PYTHONPATH=$SOURCE_DIR/scripts python3 - "$1" <<'PYTHON'
import sys
from samples import whole_samples
print(sum("kernel_stack" in sample and not sample["user_stack"] for sample in whole_samples(open(sys.argv[1]))))
PYTHON
}

record without --no-kernel
bare=$(folded_count "$WORK/without.folded" '^[^;]*;\[kernel\]$')
unknown=$(folded_count "$WORK/without.folded" '^[^;]*;\[unknown\]$')
told=$(told_count "$WORK/without.json")
echo "without kernel stacks: $(json "$WORK/without.report" "d['samples']") samples, $told told as in the kernel," \
    "$bare [kernel], $unknown [unknown]"
[ "$bare" -ge 10 ] || fail "the test shows nothing: it had no samples in exec and exit"
[ "$bare" -eq "$told" ] || fail "samples in exec and exit are not shown as [kernel]"
for view in report lines; do
    [ "$(self_count "$WORK/without.$view" '[kernel]')" -eq "$bare" ] || fail "$view: [kernel] has another count"
done
grep -q ' kernel=\[kernel\]' "$WORK/without.dump" || fail "dump does not show [kernel]"

# What has a user stack is shown as it was: the innermost frame is the function that called the kernel.
[ "$(folded_count "$WORK/without.folded" ';.*;\[kernel\]$')" -eq 0 ] || fail "[kernel] stands within a user stack"

record with
frames=$(folded_count "$WORK/with.folded" '^[^;]*;[^;]*_\[k\](;|$)')
unknown=$(folded_count "$WORK/with.folded" ';\[unknown\];')
told=$(told_count "$WORK/with.json")
echo "with kernel stacks: $told samples told as in the kernel, $frames have the kernel's frames alone," \
    "$unknown have an [unknown] user frame"
[ "$frames" -eq "$told" ] || fail "something stands between the command and the kernel's frames"
[ "$frames" -ge 10 ] || fail "no samples in exec and exit have the kernel's frames"
[ "$(folded_count "$WORK/with.folded" ';\[kernel\](;|$)')" -eq 0 ] || fail "[kernel] stands for frames that are there"
