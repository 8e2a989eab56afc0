#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl diff` of real recordings of 0.7 s of CPU time: a function that takes twice as long is found, in itself and in nothing that
# it does not call, by its part and by work; --fail-above ends with status 3 for that reason alone; runs of the same
# program do not; and what was not made alike is refused. With fewer than three recordings of a side nothing is sure, and
# --fail-above is refused. The JSON is what docs/diff.schema.json says.
# A function with 30 % that takes twice as long has 60 of 130, 16 points more; the noise of 2800 samples is 1.2.
. "${0%/*}/lib.sh"
use_build release
require_perf
start_daemon

# record NAME SECONDS [OPTION...] : ARGUMENT...: chores with these arguments, for so many seconds of its own time.
record() {
    local name=$1 seconds=$2 options=()
    shift 2
    while [ "$1" != : ]; do
        options+=("$1")
        shift
    done
    shift
    profctl record --native -F 4000 "${options[@]}" -o "$WORK/$name.fxt" -- "$WORKLOADS/chores" --seconds "$seconds" "$@" \
        >"$WORK/$name.out" 2>"$WORK/$name.err" || fail "record: $(cat "$WORK/$name.err")"
}

for i in 1 2 3; do
    record "before$i" 0.7 :
    record "after$i" 0.7 : 100
    record "same$i" 0.7 :
done
record no_kernel 0.2 --no-kernel :
record slow_rate 0.2 -F 1000 :
# A run's work is what its other chores took: a CPU that others slow down does less in the same time, and that is no
# difference between the programs.
works=$(awk '/^others_ns/ { print $2 }' "$WORK"/before?.out "$WORK"/after?.out | paste -sd,)

# ends STATUS ARGUMENT...: runs profctl diff.
ends() {
    local status=$1 got=0
    shift
    profctl diff "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    [ "$got" -eq "$status" ] || fail "profctl diff $*: status $got, not $status: $(cat "$WORK/out" "$WORK/err")"
}

cd "$WORK" || exit
ends 3 before?.fxt --with after?.fxt --fail-above 3%
[ "$(wc -l <err)" -eq 1 ] && grep -q '^profctl: [a-z_]* grew by [0-9.]* % of the whole, which is above 3 %$' err || fail "says: $(cat err)"
ends 0 before?.fxt --with same?.fxt --fail-above 10
ends 0 before1.fxt before2.fxt --with same1.fxt same2.fxt --fail-above 10 --fdr 20
ends 0 before?.fxt --with after?.fxt --fail-above 50
# All took twice the time: no share has grown, which is said where shares were not asked for.
for i in 1 2 3; do record "half$i" 0.35 :; done
ends 1 half?.fxt --with same?.fxt --fail-above 20
grep -Eq '^profctl: --fail-above: a recording took [0-9]+ % more CPU time, .* give --per 1 if both did the same work' err || fail "of twice the time it says: $(cat err)"
ends 0 half?.fxt --with same?.fxt --fail-above 20 --per cpu
ends 3 half?.fxt --with same?.fxt --fail-above 20 --per 1
ends 2 before1.fxt
ends 2 before1.fxt same1.fxt after1.fxt
ends 2 before1.fxt same1.fxt --with
ends 2 before1.fxt same1.fxt --per 1,2,3
for sides in "before1.fxt after1.fxt" "before1.fxt --with after1.fxt after2.fxt after3.fxt" \
    "before1.fxt before2.fxt --with after1.fxt after2.fxt after3.fxt" "before1.fxt before2.fxt before3.fxt --with after1.fxt after2.fxt"; do
    # shellcheck disable=SC2086
    ends 2 $sides --fail-above 3%
    grep -q 'record each side 3 times' err || fail "of $sides it says: $(cat err)"
    # shellcheck disable=SC2086
    ends 0 $sides
    grep -q 'nothing is called sure' out || fail "of $sides it says: $(cat out)"
    grep -q 'profctl diff before-?.fxt --with after-?.fxt' out || fail "of $sides it says not how to tell: $(cat out)"
    grep -q '\*' out && fail "of $sides something is sure: $(cat out)"
done
# A run that stands twice on a side is no second run; on both sides it shows that nothing is different.
cp before1.fxt copy.fxt
gzip -c before1.fxt >copy.fxt.gz
ends 2 before?.fxt ./before1.fxt --with after?.fxt
grep -q 'before1.fxt and ./before1.fxt are the same file' err || fail "of one file it says: $(cat err)"
ends 2 before?.fxt --with after?.fxt after3.fxt
for copy in copy.fxt copy.fxt.gz; do
    ends 1 before?.fxt $copy --with after?.fxt
    grep -q "before1.fxt and $copy have the same samples of a session" err || fail "of a copy it says: $(cat err)"
    ends 1 before?.fxt --with $copy after?.fxt before1.fxt
    ends 0 before1.fxt $copy
    grep -q 'are the same recording' out || fail "of a recording and its copy it says: $(cat out)"
done
ends 0 before1.fxt before1.fxt
grep -q 'are the same recording' out || fail "of a recording and itself it says: $(cat out)"
ends 0 before?.fxt --with before?.fxt
grep -q '^0 of [0-9]* functions with enough samples changed for sure' out || fail "of the same runs it says: $(cat out)"
ends 2 before1.fxt same1.fxt -o page.svg
ends 2 before1.fxt same1.fxt -o page.html --json
ends 2 before1.fxt same1.fxt -o page.html.gz --open
ends 2 before1.fxt same1.fxt --open
ends 1 before1.fxt missing.fxt
ends 1 before1.fxt no_kernel.fxt
grep -q 'stacks of the kernel.*--force' err || fail "of other stacks of the kernel it says: $(cat err)"
ends 0 before1.fxt no_kernel.fxt --force
ends 0 before1.fxt slow_rate.fxt
tr '\n' ' ' <out | grep -q 'the rates differ' || fail "of other rates it says: $(cat out)"
ends 1 before1.fxt after1.fxt --from 0.1 --per time
ends 0 before1.fxt after1.fxt --from 0.1 --comm chores

for by in function stack module command thread unit container user; do
    ends 0 before?.fxt --with after?.fxt -n 0 --json --by "$by"
    mv out "by_$by.json"
done
ends 0 before?.fxt --with after?.fxt -n 0 --json --per "$works"
mv out by_work.json
ends 0 before1.fxt after1.fxt -n 0 --json
mv out single.json
python3 - "$SOURCE_DIR" ./*.json <<'PYTHON' || fail "see above"
import json, sys
import jsonschema

bad = False
def expect(is_so, text):
    global bad
    bad |= not is_so
    if not is_so:
        print("FAIL:", text)

schema = json.load(open(f"{sys.argv[1]}/docs/diff.schema.json", encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
for part in (schema, *schema["$defs"].values(), schema["$defs"]["side"]["properties"]["recordings"]["items"]):
    part["additionalProperties"] = False
found = {}
for path in sys.argv[2:]:
    found[path[2:-5]] = json.load(open(path, encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(found[path[2:-5]])

def row(result, name):
    return next(row for row in result["rows"] if row["name"] == name)

for name in ("by_function", "by_work"):
    three = row(found[name], "chore_three")
    for part in ("self", "total"):
        expect(three[part]["sure"] and three[part]["change"] > 0, f"{name}: chore_three: {part}: {three[part]}")
    unit = row(found[name], "do_unit")
    expect(not unit["self"]["sure"], f"{name}: do_unit has no time itself: {unit['self']}")
single = found["single"]
expect(not single["judged"] and single["tests"] == 0 and single["sure"] == 0 and single["runs_differ"] is None, "one recording a side is judged")
for each in single["rows"]:
    for part in ("self", "total"):
        expect(not each[part]["sure"] and each[part]["visible"] is None and each[part]["probability"] is None, f"single: {each}")
three = row(single, "chore_three")["self"]
expect(0 < three["margin"] < three["change"], f"single: the noise within the runs hides the change: {three}")
expect(found["by_function"]["judged"] and row(found["by_function"], "chore_three")["self"]["margin"] > 0, "three a side are judged")
# By its part all others shrink, by work they do not: 3 of 10 parts are 6 of 13, and twice the time.
part, work = (row(found[name], "chore_three")["self"] for name in ("by_function", "by_work"))
expect(abs(part["after"] / part["before"] - 20 / 13) < 0.15, f"its part grew: {part}")
expect(row(found["by_function"], "chore_four")["self"]["change"] < 0, "chore_four's part shrank")
expect(1.6 < work["after"] / work["before"] < 2.4, f"its time for a unit doubled: {work}")
expect(found["by_function"]["per"] == "cpu" and found["by_work"]["per"] == "work", "what they are divided by")
# Each sample is in one row of each kind, and below the root of one stack.
for name, result in found.items():
    for side in ("before", "after"):
        samples = sum(recording["samples"] for recording in result[side]["recordings"])
        counted = sum(row["self"]["samples_" + side] for row in result["rows"])
        expect(counted == samples, f"{name}: {side}: {counted} samples of {samples}")
stacks = [row for row in found["by_stack"]["rows"] if row["name"] == "chore_three" and row["stack"][-3:] == ["main", "do_unit", "chore_three"]]
expect(stacks and stacks[0]["self"]["sure"], "the stack of chore_three grew")
sys.exit(bad)
PYTHON
