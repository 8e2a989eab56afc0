# SPDX-License-Identifier: Apache-2.0
"""`report --event` against what known_events counted itself: event_report.py PROFCTL PERIOD TRUTH RECORDING.

Of period 1 each function has just the faults that it had, but for those that the books miss. Of other periods and of a
rate, the report has what the samples of the dump stand for, which events.py has judged.
"""
import json
import subprocess
import sys

FEW, MANY = 300, 700


def run(profctl, *options):
    done = subprocess.run([profctl, *options], capture_output=True, check=True)
    return done.stdout.decode()


def read_dump(profctl, path):
    """What all samples of page faults stand for, how many they are, and when the first sample of any event was."""
    period, weights, times = 1, [], []
    for line in run(profctl, "dump", "--json", path).splitlines():
        record = json.loads(line)
        if record["record"] == "data" and record["name"] == "cpu-profilerd.session":
            period = record["value"]["events"][1]["period"]
        if record["record"] == "sample" and "time_ns" in record:
            times.append(record["time_ns"])
        if record["record"] == "sample" and record.get("event") == 1:
            weights.append(record.get("weight", 1))
    return sum(weights) * period, sum(weight > 0 for weight in weights), min(times)


def judge_functions(profctl, path, truth, first_ns):
    """In the time that the program has counted for, which is selected as a user would."""
    from_ns, to_ns, faults = truth["counts"][:3]
    times = [f"{(time_ns - first_ns) / 10**9:.9f}" for time_ns in (from_ns, to_ns + 1)]
    told = json.loads(run(profctl, "report", path, "--event", "page-faults", "--json", "-n", "0", "-t", str(truth["ids"][1]),
                          "--from", times[0], "--to", times[1]))
    rounds = faults // (FEW + MANY)
    books = told["books"]["events"][0]["total"]
    missing = books["lost"] + books["unexplained"]
    rows = {row["name"]: row["self"] for row in told["rows"]}
    for function, each in ("touch_few", FEW), ("touch_many", MANY):
        print(f"report --event page-faults: {function} has {rows[function]} faults in {rounds} rounds")
        assert 0 <= each * rounds - rows[function] <= missing, (function, rows[function], missing)


def main():
    profctl, period, truth_path, path = sys.argv[1:]
    truth = {}
    with open(truth_path, encoding="ascii") as file:
        for line in file:
            name, *words = line.split()
            truth[name] = [int(word, 0) for word in words]
    told = json.loads(run(profctl, "report", path, "--event", "page-faults", "--json", "-n", "0"))
    value, samples, first_ns = read_dump(profctl, path)
    assert (told["value"], told["samples"]) == (value, samples), (told["value"], told["samples"])
    assert (told["event"], told["unit"], told["period_ns"], told["summary"]["cpu_s"]) == ("page-faults", "faults", None, None)
    assert sum(row["self"] for row in told["rows"]) == told["value"]
    if period == "1":
        judge_functions(profctl, path, truth, first_ns)
    faults = json.loads(run(profctl, "report", path, "--event", "faults", "--json", "-n", "0"))
    assert faults["rows"] == told["rows"], "perf's other name shows another report"
    text = run(profctl, "report", path, "--event", "page-faults")
    faults_text = "1 fault" if told["value"] == 1 else f"{told['value']:,} faults"
    assert f"stand for {faults_text}." in " ".join(text.split()), text
    assert "CPU time" not in text and "CPU-seconds" not in text, text
    clock = run(profctl, "report", path, "--json")
    assert clock == run(profctl, "report", path, "--event", "cpu-clock", "--json"), "the clock by its name is another"
    assert "event" not in json.loads(clock)
    refused = subprocess.run([profctl, "report", path, "--event", "cycles"], capture_output=True, check=False)
    assert refused.returncode == 1 and b"has no event 'cycles'; it has cpu-clock, page-faults, context-switches" in refused.stderr, refused


main()
