# SPDX-License-Identifier: Apache-2.0
"""What a recording says of each sample, by the rules of docs/trace-format.md, against what a workload
told of the same time: timeline.py STORY LOG < dump, where dump is what `profctl dump --json` prints."""
import bisect
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../scripts"))
from samples import completed  # noqa: E402

UNKNOWN = "[unknown]"


class Newest:
    """Values from a time on: the newest not later than a time wins; of equal times the later told."""

    def __init__(self):
        self.times, self.values = [], []

    def add(self, time, value):
        at = bisect.bisect_right(self.times, time)
        self.times.insert(at, time)
        self.values.insert(at, value)

    def at(self, time):
        for i in range(bisect.bisect_right(self.times, time) - 1, -1, -1):
            yield self.values[i]


class Timeline:
    def __init__(self, lines):
        self.processes = collections.defaultdict(Newest)
        self.threads = collections.defaultdict(Newest)
        self.maps = collections.defaultdict(Newest)
        self.books, modules, samples = None, {}, []
        for record in map(json.loads, lines):
            kind = record["record"]
            if kind == "process":
                self.processes[record["pid"]].add(record["since_ns"], record["name"])
            elif kind == "thread":
                self.threads[record["pid"], record["tid"]].add(record["since_ns"], record["name"])
            elif kind == "module":
                modules[record["pid"], record["module_id"]] = record["name"]
            elif kind == "mmap":
                start = int(record["start"], 16)
                self.maps[record["pid"]].add(record["time_ns"], (
                    start, start + int(record["size"], 16), modules[record["pid"], record["module_id"]], record["time_ns"]))
            elif kind == "sample":
                samples.append(record)
            elif kind == "data" and record["name"] == "cpu-profilerd.books":
                self.books = record["value"]
        self.samples = sorted(completed(samples), key=lambda sample: sample["time_ns"])
        for sample in self.samples:
            sample["stack"] = [int(address, 16) for address in sample["user_stack"]]

    def process(self, sample):
        return next(self.processes[sample["pid"]].at(sample["time_ns"]), UNKNOWN)

    def thread(self, sample):
        return next(self.threads[sample["pid"], sample["tid"]].at(sample["time_ns"]), UNKNOWN)

    def modules(self, sample, depth=None):
        """The names of the files in which a sample's frames lie, leaf first; of all frames, or so many."""
        names = []
        for index, address in enumerate(sample["stack"][:depth]):
            address -= index > 0
            found = (name for start, end, name, _ in self.maps[sample["pid"]].at(sample["time_ns"])
                     if start <= address < end)
            names.append(next(found, UNKNOWN).rsplit("/", 1)[-1])
        return names

    def leaf_since(self, sample):
        """The time of the record by which the leaf has its file."""
        found = (since for start, end, _, since in self.maps[sample["pid"]].at(sample["time_ns"])
                 if start <= sample["stack"][0] < end)
        return next(found, None)


class Turns:
    """The workload's log: `name begin end ...`, by begin."""

    def __init__(self, path, key=None):
        self.turns = collections.defaultdict(list)
        for line in open(path, encoding="utf-8"):
            fields = line.split()
            turn = (int(fields[1]), int(fields[2]), fields[0], fields[3:])
            self.turns[fields[key] if key is not None else None].append(turn)
        for turns in self.turns.values():
            turns.sort()
        self.count = sum(map(len, self.turns.values()))
        # A hundred samples prove enough. Where turns have fewer ticks of 250 us it is an eighth of these, if all were as
        # short as the shortest: a turn is told by the wall clock, and the machine has others to run.
        shortest = min((t[1] - t[0] for turns in self.turns.values() for t in turns), default=0)
        self.least = min(100, self.count * shortest // (8 * 250000))

    def at(self, time, key=None):
        turns = self.turns.get(key, [])
        i = bisect.bisect_right(turns, (time, sys.maxsize)) - 1
        return turns[i] if i >= 0 and time <= turns[i][1] else None


def judge(story, counts, least):
    """Prints the counts; nothing may be wrong, and what was seen must be enough to prove something."""
    print(story + ":", ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    if counts["wrong"] > 0 or counts["right"] < least:
        sys.exit(f"FAIL: {story}: {counts['wrong']} wrong, {counts['right']} right of at least {least}")


def close_books(books):
    for cpu in books["cpus"] + [books["total"]]:
        if cpu["received"] != cpu["kept"] + cpu["filtered"] + cpu["dropped"]:
            sys.exit(f"FAIL: the books do not close: {cpu}")
    total = books["total"]
    print("books:", ", ".join(f"{name} {total[name]}" for name in (
        "expected", "received", "lost", "idle", "unexplained", "kept", "filtered", "dropped")),
        f", mapping_uncertain {books['mapping_uncertain']}")


def libraries(timeline, log):
    """Frames in libping.so or libpong.so: only in that library's turns, all at one address."""
    turns, counts = Turns(log), collections.Counter()
    places = {turn[3][0] for turn in turns.turns[None]}
    counts["turns"], counts["addresses"] = turns.count, len(places)
    if len(places) != 1:
        sys.exit(f"FAIL: the libraries were not at one address: {places}")
    pids = {s["pid"] for s in timeline.samples if timeline.process(s) == "alternate"}
    for sample in (s for s in timeline.samples if s["pid"] in pids):
        seen = {m for m in timeline.modules(sample) if m in ("libping.so", "libpong.so")}
        turn = turns.at(sample["time_ns"])
        if seen and turn is None:
            counts["between turns"] += 1  # what a library does when it is opened or closed
        elif seen:
            counts["right" if seen == {f"lib{turn[2]}.so"} else "wrong"] += 1
        elif turn:
            counts["other code"] += 1
    judge("libraries", counts, turns.least)


def files(timeline, log):
    """The leaf in one of two files which are mapped in turns, thousands of times a second."""
    turns, counts = Turns(log, 3), collections.Counter()
    names = {turn[2] for list in turns.turns.values() for turn in list}
    counts["turns"] = turns.count
    doubted = set()  # turns in which a sample says by a record of its own that its file is unknown
    for sample in timeline.samples:
        turn = turns.at(sample["time_ns"], str(sample["tid"]))
        module = timeline.modules(sample, 1)
        if module and module[0] in names:
            counts["right" if turn and module[0] == turn[2] else "wrong"] += 1
        elif turn and module and module[0] != UNKNOWN:
            counts["other code"] += 1
        elif turn and module:
            # A sample that waited may be written when its turn is forgotten. It hides what the same turn's next one,
            # which did not wait, has said before: that one is not counted.
            key = sample["tid"], turn[0]
            is_own = timeline.leaf_since(sample) == sample["time_ns"]
            counts["hidden" if not is_own and key in doubted else "unknown"] += 1
            if is_own:
                doubted.add(key)
    counts["uncertain"] = timeline.books["mapping_uncertain"]
    # The storm drives out what is known of older turns, so how many are unknown depends on how far behind the
    # reader of the tables is. They must be said to be unknown, counted, and not be all.
    if counts["right"] + counts["unknown"] < turns.least or counts["unknown"] > counts["uncertain"]:
        sys.exit(f"FAIL: files: {counts['unknown']} unknown, {counts['uncertain']} counted, at least {turns.least}")
    judge("files", counts, 100)


def programs(timeline, log):
    """Short lives of programs: process name and code are those of the program at that time."""
    turns, counts = Turns(log, 3), collections.Counter()
    names = {turn[2] for list in turns.turns.values() for turn in list}
    counts["lives"], counts["pids"] = turns.count, len(turns.turns)
    seen_pids = set()
    for sample in timeline.samples:
        turn = turns.at(sample["time_ns"], str(sample["pid"]))
        process = timeline.process(sample)
        if turn is None and process not in names:
            continue
        modules = set(timeline.modules(sample))
        if turn is None:
            # Between two programs: either, but the code must be of the one that is named.
            strange = modules & names
            if strange - {process}:
                counts["wrong"] += 1
            continue
        seen_pids.add(sample["pid"])
        if process == UNKNOWN or UNKNOWN in modules:
            counts["unknown"] += 1
        else:
            good = process == turn[2] and not (modules & names) - {turn[2]}
            counts["right" if good else "wrong"] += 1
    counts["pids seen"] = len(seen_pids)
    counts["uncertain"] = timeline.books["mapping_uncertain"]
    judge("programs", counts, turns.least)


def lives(timeline, log):
    """One pid: each child's name in its own time only."""
    turns, counts = Turns(log), collections.Counter()
    counts["lives"] = turns.count
    pid = int(turns.turns[None][0][3][1])
    bounds = {turn[2]: (turn[0], int(turn[3][0])) for turn in turns.turns[None]}
    for sample in (s for s in timeline.samples if s["pid"] == pid):
        process, turn = timeline.process(sample), turns.at(sample["time_ns"])
        if process == UNKNOWN:
            counts["unknown"] += 1
        elif process in bounds:
            begin, gone = bounds[process]
            counts["right" if begin <= sample["time_ns"] <= gone else "wrong"] += 1
        elif turn and sample["time_ns"] > int(turn[3][2]):
            counts["wrong"] += 1  # it had its name by then
    judge("lives", counts, turns.least)


if __name__ == "__main__":
    recording = Timeline(sys.stdin)
    globals()[sys.argv[1]](recording, sys.argv[2])
    close_books(recording.books)
