#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A kernel with deferred user chains: they are asked for, samples of one system call share the chain that came at its
# end, and the stacks of a program are those that perf record gets from the same kernel without deferring.
. "${0%/*}/../system/lib.sh"
require_perf
use_build release
start_daemon
profctl status --json >"$WORK/status.json" || fail "no status"
[ "$(json "$WORK/status.json" "d['kernel']['deferred_callchains']")" = true ] || skip "this kernel defers no chains"
echo '{"unwind": "fp", "frequency_hz": 499}' >"$WORK/fp.json"

# The program works as long as there is somebody to look at it: starting takes a while in an emulated machine.
begin_work() {
    run_in_background "$WORKLOADS/kernel_entries" --seconds 200
    sleep 1
}
end_work() {
    kill "$BACKGROUND_PID"
    wait "$BACKGROUND_PID"
}

begin_work
profctl record --config "$WORK/fp.json" -d 5 -o "$WORK/ours.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
end_work
cat "$WORK/record.out"
profctl dump --json "$WORK/ours.fxt" >"$WORK/dump.json" || fail "dump failed"
profctl report --json -n 0 "$WORK/ours.fxt" >"$WORK/report.json" || fail "report failed"
profctl export --format folded "$WORK/ours.fxt" >"$WORK/ours.folded" || fail "export failed"

begin_work
perf record -q -e cpu-clock -F 499 -a --call-graph fp --user-callchains -o "$WORK/perf.data" -- sleep 5 >/dev/null 2>&1 ||
    fail "perf record failed"
end_work
perf script -i "$WORK/perf.data" -F comm,ip,sym 2>/dev/null >"$WORK/perf.txt" || fail "perf script failed"

cp "$WORK"/{ours.fxt,dump.json,ours.folded,perf.txt} "${RESULTS:-$WORK}/" 2>/dev/null
python3 - "$WORK" <<'PYTHON' || fail "not as it must be"
import collections, json, sys
work = sys.argv[1]
bad = []

def expect(truth, sentence):
    if not truth:
        bad.append(sentence)
        print("not true:", sentence)

# Ids: partials, then one completion, never again.
partials, completions, times = collections.Counter(), {}, collections.defaultdict(list)
whole = 0
for line in open(work + "/dump.json"):
    record = json.loads(line)
    if record["record"] != "sample":
        continue
    if "continuation_completion" in record:
        ident = record["continuation_completion"]
        expect(ident not in completions, f"{ident} has one completion")
        expect(partials[ident] > 0, f"{ident} has partials before its completion")
        completions[ident] = record
    elif "continuation" in record:
        expect(record["continuation"] not in completions, "no partial comes after its completion")
        partials[record["continuation"]] += 1
        times[record["continuation"]].append(record["time_ns"])
    else:
        whole += 1
expect(set(partials) == set(completions), "every id is completed")
spans = sorted((max(t) - min(t)) / 1e6 for t in times.values())
print(f"{whole} whole samples, {sum(partials.values())} partials of {len(completions)} ids, "
      f"at most {max(partials.values(), default=0)} of one; the longest took {spans[-1]:.1f} ms")
expect(max(partials.values(), default=0) >= 3, "a long system call has several partials and one completion")

report = json.load(open(work + "/report.json"))
books = report["books"]
in_vain = collections.Counter()
for ident, completion in completions.items():
    in_vain[completion.get("quality", {"closed": 0})["closed"]] += partials[ident]
print("samples by why their completion was closed:", dict(in_vain), "of", report["samples"])
expect((in_vain[1] + in_vain[2] + in_vain[5]) * 50 <= report["samples"], "at most 2 % of the samples wait in vain")
expect(books["orphan_partials"] == sum(in_vain[why] for why in (1, 2, 3, 5)), "the books count those without a stack")
expect(books["orphan_completions"] * 50 <= report["samples"], "at most 2 % of the chains belong to no sample")

# Stacks, as the program's own functions in them.
own = {"main", "take_turns", "spin_deep", "read_random", "change_cpu"}

def shares(stacks):
    total = sum(stacks.values())
    return {stack: count / total for stack, count in stacks.items()}

ours = collections.Counter()
for line in open(work + "/ours.folded"):
    names, count = line.rsplit(" ", 1)
    names = names.split(";")
    if names[0] == "kernel_entries":
        ours[tuple(n for n in names[1:] if n in own)] += int(count)
theirs = collections.Counter()
for block in open(work + "/perf.txt").read().split("\n\n"):
    comm, *frames = [line.strip() for line in block.strip().splitlines()] or [""]
    if comm == "kernel_entries":
        names = [frame.split(None, 1)[1] for frame in reversed(frames)]
        theirs[tuple(n for n in names if n in own)] += 1
our_shares, their_shares = shares(ours), shares(theirs)
for stack in sorted(set(our_shares) | set(their_shares), key=lambda s: -our_shares.get(s, 0)):
    print(f"{our_shares.get(stack, 0):7.2%} {their_shares.get(stack, 0):7.2%}  {';'.join(stack)}")
expect(sum(ours.values()) > 80 and sum(theirs.values()) > 80, "there are enough samples of the program")
for stack in set(our_shares) | set(their_shares):
    our_share, their_share = our_shares.get(stack, 0), their_shares.get(stack, 0)
    expect(max(our_share, their_share) < 0.06 or min(our_share, their_share) > 0, "both have " + ";".join(stack))
for stack in (("main", "take_turns") + ("spin_deep",) * 5, ("main", "take_turns", "read_random")):
    expect(min(our_shares.get(stack, 0), their_shares.get(stack, 0)) > 0.1, "complete: " + ";".join(stack))
sys.exit(bool(bad))
PYTHON

# With sanitizers, and with the kernel's own frames, which are each sample's. That is too slow for names to come in time.
stop_daemon || exit 1
use_build dev
start_daemon
echo '{"unwind": "fp", "frequency_hz": 199, "kernel_stacks": true}' >"$WORK/kernel.json"
begin_work
profctl record --config "$WORK/kernel.json" -d 3 -o "$WORK/kernel.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/kernel.fxt" >"$WORK/kernel.folded" || fail "export failed"
own='(main|take_turns|read_random|kernel_entries\+0x[0-9a-f]+)'
grep -qE "^kernel_entries;.*;$own;$own;$own;[^;]*_\[k\];.*_\[k\] " "$WORK/kernel.folded" ||
    fail "no system call has both its stacks: $(head -n 20 "$WORK/kernel.folded")"
