# SPDX-License-Identifier: Apache-2.0
"""What followers have counted, against what their program counted itself.

TRUTH is what known_events printed, DUMP what `profctl dump --json` did.

followers.py turns TRUTH DUMP: by context-switches:1 with page-faults.
followers.py perf TRUTH SCRIPT: the same; SCRIPT is what perf has of such a group.
followers.py books TRUTH DUMP LEADER FOLLOWER
followers.py report PROFCTL RECORDING TRUTH: by page-faults:1 with minor-faults.
"""
import json
import subprocess
import sys

FEW, MANY = 300, 700


def read_truth(path):
    truth = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            name, *words = line.split()
            truth[name] = [int(word, 0) for word in words]
    return truth


def read_dump(path):
    """All samples, with their events' names, and the session and the books."""
    samples, data = [], {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["record"] == "data":
                data[record["name"].partition(".")[2]] = record["value"]
            if record["record"] == "sample" and "time_ns" in record:
                samples.append(record)
    names = [event["event"] for event in data["session"]["events"]]
    for sample in samples:
        sample["event"] = names[sample.get("event", 0)]
    assert data["books"]["bad_records"] == 0, data["books"]
    return samples, data["session"], {event["event"]: event for event in data["books"].get("events", [])}


def judge_turns(truth, turns, switched, missing, whose):
    """Turns are (time, faults) of the program, each at the switch that ended it; `switched` is when it has samples of
    switches. One without a sample leaves its faults, at most those of a round, which ends with a wait, to the next sample
    on its CPU. So the program lacks none but for its own switches that have no sample, and has too many for others' alone.
    perf takes no stacks, so it has a sample of each: `missing` is None."""
    from_ns, to_ns, faults, switches = truth["counts"][:4]
    within = [count for time_ns, count in turns if from_ns <= time_ns <= to_ns]
    own = switches - sum(1 for time_ns in switched if from_ns <= time_ns <= to_ns)
    print(f"{whose}: {len(within)} turns had {sum(within)} faults, of {faults}; {missing or own} switches have no sample, {own} of its own")
    assert own >= 0 and (missing is None or own <= missing), (own, missing)
    assert -own * (FEW + MANY) <= sum(within) - faults <= (missing or own) * max(within), (sum(within), faults)


def turns(truth_path, dump_path):
    truth = read_truth(truth_path)
    tid = truth["ids"][1]
    samples, session, books = read_dump(dump_path)
    assert [event.get("leader") for event in session["events"]] == [None, None, "context-switches"], session["events"]
    switches = books["context-switches"]["total"]
    missing = switches["lost"] + switches["unexplained"]
    own = [s for s in samples if s["tid"] == tid]
    leaders = {s["time_ns"] for s in own if s["event"] == "context-switches"}
    followers = [s for s in own if s["event"] == "page-faults"]
    assert all(s["time_ns"] in leaders and s.get("weight", 1) > 0 for s in followers)
    judge_turns(truth, [(s["time_ns"], s.get("weight", 1)) for s in followers], leaders, missing, "samples")

    judge_books(truth, samples, books, "context-switches", "page-faults")


def perf(truth_path, script_path):
    truth = read_truth(truth_path)
    told, switched = [], []
    with open(script_path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if len(words) == 4 and int(words[0]) == truth["ids"][1]:
                seconds, _, fraction = words[1].rstrip(":").partition(".")
                time_ns = int(seconds) * 10**9 + int(fraction)
                if words[3].startswith("page-faults"):
                    told.append((time_ns, int(words[2])))
                else:
                    switched.append(time_ns)
    judge_turns(truth, told, switched, None, "perf")


def judge_books(truth, samples, books, leader, follower):
    """A follower's books close by its own count; it has as many samples as there are, and none without one of its
    leader."""
    event = books[follower]
    assert (event["leader"], event["period"]) == (leader, 0), event
    kept = [s for s in samples if s["event"] == follower]
    times = {(s["time_ns"], s["tid"]) for s in samples if s["event"] == leader}
    assert all((s["time_ns"], s["tid"]) in times for s in kept)
    assert event["total"]["kept"] == len(kept), (event["total"], len(kept))
    print(f"{follower}, with {leader}: {event['total']}")
    for line in event["cpus"] + [event["total"]]:
        assert line["received"] == line["kept"] + line["filtered"] + line["dropped"], line
        assert line["unexplained"] >= 0 and line["lost"] == line["throttled"] == line["held_back_ns"] == 0, line
        assert line["running_ns"] == line["enabled_ns"] > 0, line
    # What the program counted itself is a part of what the kernel counted, and what its samples stand for one of their sum:
    # all of it but for samples of others.
    total, own = event["total"], sum(s.get("weight", 1) for s in kept)
    assert truth["counts"][{"page-faults": 2, "minor-faults": 2, "context-switches": 3}[follower]] <= total["counted"], total
    assert own <= total["sampled"] and (total["filtered"] > 0 or own == total["sampled"]), (own, total)
    for term in "counted", "sampled", "received", "kept":
        assert total[term] == sum(line[term] for line in event["cpus"]), (term, event)
    if leader in books:
        for own, other in zip(event["cpus"], books[leader]["cpus"]):
            # Both are on by one call, and read one after the other, after it.
            assert own["enabled_ns"] == other["enabled_ns"], (own, other)
            assert own["received"] <= other["received"], (own, other)


def report(profctl, recording, truth_path):
    """Of each function as many minor faults as faults, but for the first of each of its calls and those without a
    sample: a minor fault is counted behind the sample of its fault, so it is in the next one."""
    truth = read_truth(truth_path)
    rounds = truth["counts"][2] // (FEW + MANY)

    def read(*options):
        done = subprocess.run([profctl, "report", recording, "--json", "-n", "0", *options], capture_output=True, check=True)
        return json.loads(done.stdout)

    faults = {row["name"]: row for row in read("--event", "page-faults", "--ratio", "minor-faults")["rows"]}
    minor = read("--event", "minor-faults")
    rows = {row["name"]: row["self"] for row in minor["rows"]}
    assert (minor["event"], minor["unit"]) == ("minor-faults", "faults"), minor
    total = minor["books"]["events"][0]["total"]
    missing = total["lost"] + total["unexplained"]
    for function, each in ("touch_few", FEW), ("touch_many", MANY):
        row = faults[function]
        print(f"{function}: {row['self']} faults, {row['ratio_self']} minor faults, {row['ratio']}")
        assert row["ratio_self"] == rows[function], (row, rows[function])
        assert abs(row["ratio"] - row["ratio_self"] / row["self"]) < 1e-6, row
        # One call is before what was counted.
        assert abs(row["ratio_self"] - row["self"]) <= 2 * (rounds + 1) + missing, (row, each)
    table = subprocess.run([profctl, "report", recording, "--event", "faults", "--ratio", "minor-faults", "--wide"],
                           capture_output=True, check=True).stdout.decode()
    assert "ratio: self of minor-faults (faults) by self of page-faults (faults); " in table, table
    line = next(line for line in table.splitlines() if " touch_many " in line)
    assert f" {faults['touch_many']['ratio']:.4g} " in line, line


def main():
    kind, *arguments = sys.argv[1:]
    if kind == "turns":
        turns(*arguments)
    elif kind == "perf":
        perf(*arguments)
    elif kind == "books":
        samples, _, books = read_dump(arguments[1])
        judge_books(read_truth(arguments[0]), samples, books, *arguments[2:])
    else:
        report(*arguments)


main()
