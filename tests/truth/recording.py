# SPDX-License-Identifier: Apache-2.0
"""
recording.py reads the output of `profctl dump --json` and yields each sample with its frames named.

The rules are those of docs/trace-format.md, "Putting it together", and nothing else: this reader knows neither
call-frame information nor any code of the daemon. Frames stand root first here, as in a chain of truth.
"""
import bisect
import collections
import json
import os
import re

COMPLETE = 1

# Nine of ten lines are samples, many of them of programs that nobody asks for, so their times and pids are read first.
SAMPLE_BEGINS = '{"record":"sample",'
SAMPLE = re.compile(r'\{"record":"sample",(?:"time_ns":(\d+),)?(?:"cpu":\d+,)?(?:"pid":(\d+),)?')
COMPLETION = re.compile(r'"continuation_completion":("[^"]*"|\d+)')

# module: the file's name without its folder. named: the recording has a symbol for the address.
Frame = collections.namedtuple("Frame", "name module named vaddr path")
# quality: the number of docs/trace-format.md, 0 for none. frames: root first.
Sample = collections.namedtuple("Sample", "process pid frames quality")


class Symbols:
    """The functions of one module, found by the module's own addresses."""

    def __init__(self):
        self.rows = {}
        self.starts = None

    def add(self, start, size, name):
        self.rows[start] = (size, name)  # of two with one start the later holds
        self.starts = None

    def find(self, vaddr):
        if self.starts is None:
            self.starts = sorted(self.rows)
        at = bisect.bisect_right(self.starts, vaddr)
        # Code that was made anew may overlap older code; the highest start that covers the address holds.
        for start in reversed(self.starts[max(0, at - 16):at]):
            size, name = self.rows[start]
            if vaddr < start + size:
                return name
        return None


class Process:
    """Names and mappings of one pid over time."""

    def __init__(self):
        self.names = []
        self.mmaps = []
        self.modules = {}
        self.frames = {}
        self.stacks = {}
        self.times = None

    def sort(self):
        self.names.sort(key=lambda row: row[0])
        self.mmaps.sort(key=lambda row: row[0])
        self.times = [row[0] for row in self.mmaps]

    def name_at(self, time_ns):
        at = bisect.bisect_right(self.names, time_ns, key=lambda row: row[0])
        return self.names[at - 1][1] if at > 0 else "[unknown]"

    def module_at(self, address, count):
        """The newest of the first `count` mappings that covers the address, as (module, vaddr)."""
        for _, start, size, vaddr, module in reversed(self.mmaps[:count]):
            if start <= address < start + size:
                return module, address - start + vaddr
        return None, address


class Segment:
    """A part of a recording that stands for itself. `samples()` yields its samples once it is read whole."""

    def __init__(self):
        self.processes = collections.defaultdict(Process)
        self.symbols = collections.defaultdict(Symbols)
        self.lines = []  # of samples
        self.readers = {"sample": self.refuse_sample, "process": self.add_name, "module": self.add_module,
                        "mmap": self.add_mmap, "data": self.add_data}

    def read(self, record):
        reader = self.readers.get(record["record"])
        if reader is not None:
            reader(record)

    def end(self):
        for process in self.processes.values():
            process.sort()

    def refuse_sample(self, record):
        raise ValueError(f"a sample that is laid out in another way: {record}")

    def add_name(self, record):
        self.processes[record["pid"]].names.append((record["since_ns"], record["name"]))

    def add_module(self, record):
        self.processes[record["pid"]].modules[record["module_id"]] = (record["build_id"], record["name"])

    def add_mmap(self, record):
        process = self.processes[record["pid"]]
        process.mmaps.append((record["time_ns"], int(record["start"], 16), int(record["size"], 16),
                              int(record["vaddr"], 16), process.modules[record["module_id"]]))

    def add_data(self, record):
        value = record["value"]
        if record["name"] == "cpu-profilerd.symbols":
            self.symbols[value["build_id"], value["module"]].add(int(value["start"], 16), value["size"], value["name"])

    def frame(self, process, address, count):
        key = (address, count)
        if key not in process.frames:
            module, vaddr = process.module_at(address, count)
            name = self.symbols[module].find(vaddr) if module in self.symbols else None
            path = module[1] if module else "[unknown]"
            base = os.path.basename(path.split(" (inode ")[0])
            process.frames[key] = Frame(name or f"{base}+{vaddr:#x}", base, name is not None, vaddr, path)
        return process.frames[key]

    def may_be_of(self, line, names):
        """Whether the sample may be of a process that has one of the names at the time; None is any."""
        time_ns, pid = SAMPLE.match(line).groups() if names is not None else (None, None)
        if time_ns is None or pid is None or int(pid) not in self.processes:
            return True
        process = self.processes[int(pid)]
        return process.name_at(int(time_ns)) in names

    def wholes(self, names=None):
        """Samples, each partial joined with its completion: (record, stack leaf first, quality). With names, those of
        other processes may be left out."""
        completions = {}  # lines
        samples = []
        for line in self.lines:
            completion = COMPLETION.search(line)
            if completion:
                completions[json.loads(completion[1])] = line
            elif self.may_be_of(line, names):
                samples.append(line)
        for line in samples:
            record = json.loads(line)
            rest = completions.get(record.get("continuation"), {})
            if isinstance(rest, str):
                rest = completions[record["continuation"]] = json.loads(rest)
            stack = record.get("user_stack", []) + rest.get("user_stack", [])
            quality = record.get("quality") or rest.get("quality") or {"stack": 0}
            yield record, stack, quality["stack"]

    def frames(self, process, stack, count):
        key = (count, *stack)
        if key not in process.stacks:
            addresses = [int(text, 16) for text in stack]
            looked_up = addresses[:1] + [address - 1 for address in addresses[1:]]
            process.stacks[key] = [self.frame(process, address, count) for address in reversed(looked_up)]
        return process.stacks[key]

    def samples(self, names):
        """Those of the processes that have one of the names."""
        for record, stack, quality in self.wholes(names):
            process = self.processes[record["pid"]]
            time_ns = record["time_ns"]
            name = process.name_at(time_ns)
            if name in names:
                count = bisect.bisect_right(process.times, time_ns) if process.times else 0
                yield Sample(name, record["pid"], self.frames(process, stack, count), quality)


def segments_of(path):
    """The segments of a recording, each read whole, one after the other."""
    segment = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(SAMPLE_BEGINS):
                segment.lines.append(line)
                continue
            record = json.loads(line)
            if record["record"] != "segment":
                segment.read(record)
                continue
            if segment is not None:
                segment.end()
                yield segment
            segment = Segment()
    segment.end()
    yield segment
