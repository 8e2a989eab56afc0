# SPDX-License-Identifier: Apache-2.0
"""What a recording has of events beside the clock, against what their program counted itself.

events.py PERIOD TRUTH DUMP: TRUTH is what known_events printed, DUMP what `profctl dump --json` did of a recording with
the events page-faults and context-switches: of this PERIOD or, with 0, of a rate.
"""
import sys

from event_dump import read_dump

FAULTS, SWITCHES = 1, 2
FEW, MANY = 300, 700


def read_truth(path):
    code = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            name, *words = line.split()
            if name == "ids":
                code["pid"], code["tid"] = map(int, words)
            elif name == "counts":
                code["counts"] = dict(zip(("from_ns", "to_ns", "faults", "switches", "waits"), map(int, words)))
            else:
                code[name] = tuple(int(word, 16) for word in words)
    return code


def within(address, code):
    return code[0] <= address <= code[1]


def told_missing(books, number):
    return sum(line["lost"] + line["unexplained"] for line in books["events"][number - 1]["cpus"])


def judge_exact(truth, samples, books):
    """Of period 1 each event is a sample, in the function that had it; none is missing that the books do not tell of. Where
    another program takes the CPU from the reader of the rings, some are lost. And kernels leave out a few samples of
    switches that have stacks, which the counter of the event knows of."""
    counts = truth["counts"]
    rounds = counts["faults"] // (FEW + MANY)
    own = [s for s in samples if s["tid"] == truth["tid"] and counts["from_ns"] <= s["time_ns"] <= counts["to_ns"]]
    assert all(s.get("weight", 1) == 1 for s in own)
    faults = [s for s in own if s["event"] == FAULTS]
    lost = told_missing(books, FAULTS)
    print(f"{len(faults)} faults of {counts['faults']}, {lost} are missing on the machine")
    assert 0 <= counts["faults"] - len(faults) <= lost, (len(faults), counts)
    for function, each in ("touch_few", FEW), ("touch_many", MANY):
        here = sum(1 for s in faults if s["stack"] and within(s["stack"][0], truth[function]))
        print(f"{function}: {here} faults in {rounds} rounds")
        assert 0 <= each * rounds - here <= lost, function
    switches = [s for s in own if s["event"] == SWITCHES]
    waiting = sum(1 for s in switches if any(within(a, truth["wait_for_child"]) for a in s["stack"]))
    print(f"{len(switches)} switches, {waiting} of them in wait_for_child; the thread waited {counts['waits']} times")
    untold = counts["switches"] - len(switches)
    told = told_missing(books, SWITCHES)
    print(f"{untold} samples of switches are missing, {told} on the machine")
    assert 0 <= untold <= told, (len(switches), counts)
    # It is taken off its CPU in there as well, and waits nowhere else.
    assert counts["waits"] - untold <= waiting <= counts["switches"]


def judge_sum(truth, samples, period, books):
    """Samples stand for as many events as there were, but for a part of a period on each CPU at both ends of the
    program: a sample of a rate stands for what its CPU has counted since the one before, whichever program had it."""
    counts = truth["counts"]
    own = [s for s in samples if s["pid"] == truth["pid"] and s["event"] == FAULTS]
    weights = [s.get("weight", 1) * (period or 1) for s in own]
    # Everything that the process had, which is a little more than what it counted.
    slack = len(books["cpus"]) * 2 * max(weights, default=0) + 2000
    slack += 0 if period else sum(line["unexplained"] for line in books["events"][FAULTS - 1]["cpus"])
    print(f"{len(own)} samples stand for {sum(weights)} faults, of {counts['faults']} and more; within {slack}")
    assert abs(sum(weights) - counts["faults"]) <= slack


def judge_books(books, period, samples):
    for number, event in enumerate(books["events"], 1):
        assert event["period"] == period, event
        kept = sum(1 for s in samples if s["event"] == number)
        assert event["total"]["kept"] == kept, (event["total"], kept)
        for line in event["cpus"] + [event["total"]]:
            assert line["received"] == line["kept"] + line["filtered"] + line["dropped"], line
            assert line["throttled"] == line["held_back_ns"] == 0, line
            assert line["running_ns"] == line["enabled_ns"] > 0, line
        for line in event["cpus"]:
            # Never more than there was. Of a period, less by one that had begun when sampling ended, and by faults
            # while the kernel takes another one's stack, once in thousands; of switches with stacks it leaves out
            # any number. Of a rate the period that had begun has any length.
            assert line["unexplained"] >= 0, line
            assert not period or number == SWITCHES or line["unexplained"] <= period + line["counted"] // 100, line


def main():
    period = int(sys.argv[1])
    truth = read_truth(sys.argv[2])
    samples, data, _ = read_dump(sys.argv[3])
    events = data["session"]["events"]
    assert [e["event"] for e in events] == ["cpu-clock", "page-faults", "context-switches"], events
    assert [e["asked"] for e in events] == [False, True, True], events
    assert [e["period"] for e in events[1:]] == [period or 1] * 2, events
    assert [e["unit"] for e in events] == ["ns", "faults", "switches"], events
    judge_books(data["books"], period, samples)
    if period == 1:
        judge_exact(truth, samples, data["books"])
    else:
        judge_sum(truth, samples, period, data["books"])


main()
