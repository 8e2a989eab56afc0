# SPDX-License-Identifier: Apache-2.0
"""
What `profctl report` counts is counted again, slowly, from `dump --json`: report_views.py PROFCTL RECORDING...

An oracle names the frames of each sample by the rules of docs/trace-format.md ("Putting it together") and profctl(1)
(the markers), and counts each view by its definition: lists by self and total, the tree from the root and from the
leaves, the callers and callees of functions, the tree of processes, and rows by the second. The report must have the
same nodes with the same numbers, at any `--min`. A function without a name is named by where its file says that it
begins. Inlined functions and lines are not in a recording; for these the stacks are those of `export --format folded`.
"""
import bisect
import collections
import functools
import json
import os
import re
import subprocess
import sys

import jsonschema

with open(os.path.join(os.path.dirname(__file__), "../../docs/report.schema.json"), encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
# A member that the schema does not have is one that it lacks.
for part in (schema, *schema["$defs"].values()):
    part["additionalProperties"] = False
SCHEMA = jsonschema.Draft202012Validator(schema)

TRUNCATED = ("[truncated]", None)
FEW = 3  # functions whose callers and callees are compared


def run(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


@functools.cache
def code_ranges(path):
    """The (start, end) of each function that a file's unwind tables describe, as readelf prints them."""
    text = subprocess.run(("readelf", "--debug-dump=frames", path), capture_output=True, text=True, check=False).stdout
    return sorted((int(start, 16), int(end, 16)) for start, end in re.findall(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", text))


def start_without_name(path, vaddr, address):
    """Where a function without a name begins by its file, if the file is here and says so, else an address in it."""
    ranges = code_ranges(path) if os.path.isfile(path) else []
    at = bisect.bisect_right(ranges, vaddr, key=lambda row: row[0]) - 1
    return ranges[at][0] if at >= 0 and vaddr < ranges[at][1] else address


class Recording:
    """The stacks of a recording of one segment, each a tuple of (name, module), leaf first, and whether it is cut."""

    def __init__(self, profctl, path):
        self.modules, self.names = {}, collections.defaultdict(list)
        self.mmaps, self.symbols = collections.defaultdict(list), collections.defaultdict(dict)
        self.lines = collections.defaultdict(list)
        samples, completions = [], {}
        for line in run(profctl, "dump", "--json", path).splitlines():
            record = json.loads(line)
            kind = record["record"]
            if kind == "module":
                self.modules[record["pid"], record["module_id"]] = record["build_id"], record["name"]
            elif kind == "mmap":
                self.mmaps[record["pid"]].append((record["time_ns"], *(int(record[name], 16) for name in ("start", "size", "vaddr")),
                                                  self.modules.get((record["pid"], record["module_id"]))))
            elif kind == "process":
                self.names[record["pid"]].append((record["since_ns"], record["name"]))
            elif kind == "data" and record["name"] == "cpu-profilerd.symbols":
                value = record["value"]
                self.symbols[value["build_id"], value["module"]][int(value["start"], 16)] = value["size"], value["name"]
            elif kind == "data" and record["name"] == "cpu-profilerd.processes":
                value = record["value"]
                self.lines[value["pid"]].append((int(value["boot_ts_ns"]), value.get("ppid"), value.get("cmdline")))
            elif kind == "sample" and "continuation_completion" in record:
                completions[record["continuation_completion"]] = record
            elif kind == "sample":
                samples.append(record)
        for rows in (*self.names.values(), *self.mmaps.values(), *self.lines.values()):
            rows.sort(key=lambda row: row[0])
        self.starts = {key: sorted(table) for key, table in self.symbols.items()}
        self.known = {}
        self.tasks = [(self.command(sample), sample["pid"], sample.get("cpu", int(sample.get("continuation", "0"), 16) >> 48),
                       sample["time_ns"])
                      for sample in samples]
        self.samples = [self.stack(sample, completions.get(sample.get("continuation"), {})) for sample in samples]

    def command(self, sample):
        names = self.names.get(sample["pid"], [])
        at = bisect.bisect_right(names, sample["time_ns"], key=lambda row: row[0])
        return names[at - 1][1] if at else {0: "[outside]", -1: "[exited]"}.get(sample["pid"], "[unknown]")

    def lives(self, pid):
        """[(begin, parent, command)] of the processes that had a pid: another parent is another process."""
        lives = []
        for since, parent, command in self.lines.get(pid, []):
            if not lives or parent is not None and lives[-1][1] not in (None, parent):
                lives.append([since, parent, None])
            lives[-1][1] = lives[-1][1] if parent is None else parent
            lives[-1][2] = None if not command else " ".join(command) or None
        return lives

    def process(self, pid, time_ns):
        """The process that had a pid at a time, as (pid, begin)."""
        lives = self.lives(pid)
        begun = [life for life in lives if life[0] <= time_ns]
        return pid, (begun[-1] if begun else lives[0] if lives else (0,))[0]

    def describe(self, process):
        """Its parent, name and command."""
        pid, begin = process
        lives = self.lives(pid)
        at = next((at for at, life in enumerate(lives) if life[0] == begin), None)
        if at is None:
            return None, None, None
        _, parent, command = lives[at]
        end = lives[at + 1][0] if at + 1 < len(lives) else float("inf")
        names = [name for since, name in self.names.get(pid, []) if since < end]
        parent = None if parent is None or not self.lives(parent) else self.process(parent, begin)
        return parent, names[-1] if names else None, command

    def module_at(self, pid, address, time_ns):
        for since, start, size, vaddr, module in reversed(self.mmaps.get(pid, [])):
            if since <= time_ns and start <= address < start + size:
                return module, address - start + vaddr
        return None, 0

    def name_at(self, module, vaddr):
        starts = self.starts.get(module, [])
        for start in reversed(starts[:bisect.bisect_right(starts, vaddr)][-64:]):
            size, name = self.symbols[module][start]
            if vaddr < start + size:
                return name
        return None

    def frame(self, pid, address, time_ns, back):
        module, vaddr = self.module_at(pid, address - back, time_ns)
        if module is None or module[1] == "[unknown]":
            return "[unknown]", None
        name = self.name_at(module, vaddr)
        made = module[1].startswith("[jit] (")
        if name is None and (made or module[1] == "[anon]"):
            name = "[jit]" if made else "[anon]"
        return name or f"{os.path.basename(module[1])}+{start_without_name(module[1], vaddr, vaddr + back):#x}", module[1]

    def frames(self, pid, addresses, time_ns):
        frames = []
        for at, address in enumerate(addresses):
            key = pid, address, at > 0, bisect.bisect_right(self.mmaps.get(pid, []), time_ns, key=lambda row: row[0])
            if key not in self.known:
                self.known[key] = self.frame(pid, int(address, 16), time_ns, int(at > 0))
            frames.append(self.known[key])
        return frames

    def stack(self, sample, rest):
        user = sample.get("user_stack", []) + rest.get("user_stack", [])
        kernel = sample.get("kernel_stack", rest.get("kernel_stack"))
        quality = sample.get("quality") or rest.get("quality") or {"stack": 4 if user else 0, "closed": 0}
        frames = self.frames(0, kernel or [], sample["time_ns"]) + self.frames(sample["pid"], user, sample["time_ns"])
        is_thread = quality["closed"] == 0 and sample["pid"] > 0 and not self.mmaps.get(sample["pid"])
        if not user and not ((is_thread or kernel is not None) and frames):
            frames.append(("[kernel thread]" if is_thread else "[kernel]" if kernel is not None else "[unknown]", None))
        return tuple(frames), quality["stack"] not in (0, 1, 6, 7)


def folded_stacks(profctl, path, option):
    """The stacks of a recording with inlined functions, as (name, None)."""
    stacks = []
    for line in run(profctl, "export", "--format", "folded", option, "--no-demangle", path).decode().splitlines():
        text, _, count = line.rpartition(" ")
        frames = [(re.sub(r"_\[[ki]\]$", "", name), None) for name in text.split(";")[1:]]
        is_cut = frames[0] == TRUNCATED
        stacks += [(tuple(reversed(frames[1:] if is_cut else frames)), is_cut)] * int(count)
    return stacks


def path_of(stack, is_cut, view, function):
    """A stack as a view goes along it, or None where the view has it not."""
    path = stack + (TRUNCATED,) * is_cut
    if view == "root":
        return path[::-1]
    if view == "leaves":
        return path
    at = [i for i, frame in enumerate(stack) if frame[0] == function]
    if not at:
        return None
    return path[at[0]:] if view == "callers" else stack[:at[-1] + 1][::-1]


def tree_of(stacks, view, function, least):
    """{path: [total, ending, cut, cut branches]} of the nodes that are not cut."""
    totals, endings, children = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for stack, is_cut in stacks:
        path = path_of(stack, is_cut, view, function)
        if path is not None:
            endings[path] += 1
            for depth in range(len(path) + 1):
                totals[path[:depth]] += 1
                if depth > 0:
                    children[path[:depth - 1]].add(path[:depth])
    tree, waiting = {}, [()]
    while waiting:
        path = waiting.pop()
        cut = [child for child in children[path] if totals[child] < least]
        tree[path] = [totals[path], endings[path], sum(totals[child] for child in cut), len(cut)]
        waiting += [child for child in children[path] if totals[child] >= least]
    return tree


def shared_words(commands):
    lists = [command.split(" ") for command in commands if command is not None]
    words = []
    for column in zip(*lists):
        if len(set(column)) > 1:
            break
        words.append(column[0])
    return " ".join(words) or None


def process_tree(recording, least):
    """{path: [total, self, cut, cut rows, processes]} of the rows that are not cut."""
    selfs, names = collections.Counter(), {}
    for name, pid, _, time_ns in recording.tasks:
        process = recording.process(pid, time_ns)
        selfs[process] += 1
        names[process] = name
    known, waiting = {}, list(selfs)
    while waiting:
        process = waiting.pop()
        if process not in known:
            parent, name, command = recording.describe(process)
            known[process] = parent, name or names.get(process, "[unknown]"), command
            waiting += [parent] if parent else []
    for process in sorted(known):  # a circle is cut above the process from which it came back to its beginning
        walk = [process]
        while known[walk[-1]][0] and known[walk[-1]][0] not in walk:
            walk.append(known[walk[-1]][0])
        if known[walk[-1]][0]:
            known[walk[-1]] = (None, *known[walk[-1]][1:])
    children, totals = collections.defaultdict(list), collections.Counter()
    for process, (parent, _, _) in known.items():
        children[parent].append(process)
        up = process
        while up:
            totals[up] += selfs[process]
            up = known[up][0]
    tree, waiting = {}, [((), None)]
    while waiting:
        path, members = waiting.pop()
        below = children[None] if members is None else [child for member in members for child in children[member]]
        rows, commands = collections.defaultdict(list), collections.defaultdict(set)
        for process in below:
            commands[known[process][1]].add(known[process][2])
        for process in below:
            _, name, command = known[process]
            is_shared = len(commands[name]) > 3
            rows[name, shared_words(commands[name]) if is_shared else command, is_shared].append(process)
        cut = [row for row in rows.values() if sum(totals[process] for process in row) < least]
        tree[path] = [len(recording.tasks) if members is None else sum(totals[process] for process in members),
                      sum(selfs[process] for process in members or []), sum(totals[process] for row in cut for process in row),
                      len(cut), len(known if members is None else members)]
        waiting += [(path + (key,), row) for key, row in rows.items() if row not in cut]
    return tree


def told_tree(report, label):
    """The same of a report, whose nodes must be in order."""
    paths, last, tree = [], {}, {}
    nodes = report.get("tree", report.get("processes"))
    for node in nodes:
        parent = node["parent"]
        path = () if parent is None else paths[parent] + (label(node),)
        total = node["total"]
        assert node["depth"] == len(path), "a depth is not that of the parent and one"
        assert parent is None or total <= last.get(parent, total), "siblings are not by total"
        last[parent] = total
        paths.append(path)
        counts = [total, node.get("self", node.get("root")), node["cut"], node.get("cut_branches", node.get("cut_rows"))]
        counts += [node["processes"]] if "processes" in node else []
        tree[path] = [a + b for a, b in zip(tree.get(path, [0] * len(counts)), counts)]
    assert all(node["parent"] is None or node["parent"] < at for at, node in enumerate(nodes))
    return tree


class Judge:
    def __init__(self, profctl, path):
        self.profctl, self.path, self.compared, self.bad = profctl, path, 0, 0
        self.validated = set()

    def report(self, *options):
        report = json.loads(run(self.profctl, "report", "--json", "--no-demangle", *options, self.path))
        kind = report["by"], report.get("view"), "debug_files" in report, "series_seconds" in report, "processes" in report
        if kind not in self.validated:
            self.validated.add(kind)
            SCHEMA.validate(report)
        return report

    def expect(self, what, told, counted):
        self.compared += len(counted)
        differ = {key for key in told.keys() | counted.keys() if told.get(key) != counted.get(key)}
        if differ:
            self.bad += 1
            key = min(differ, key=lambda key: (len(key), str(key)))
            print(f"{self.path}: {what}: {len(differ)} of {len(counted)} differ; {key}: report {told.get(key)}, counted {counted.get(key)}")

    def lists(self, stacks):
        for unit in ("function", "module"):
            selfs, totals = collections.Counter(), collections.Counter()
            for stack, _ in stacks:
                rows = [(frame if unit == "function" else (os.path.basename(frame[1]), frame[1]) if frame[1] else frame)
                        for frame in stack]
                rows = [("[jit]", row[1]) if row[1] and row[1].startswith("[jit] (") and unit == "module" else row for row in rows]
                selfs[rows[0]] += 1
                totals.update(set(rows))
            for order in ("self", "total"):
                report = self.report("-n", "0", "--by", unit, "--sort", order)
                rows = report["rows"]
                self.expect("the number of rows", {(): (report["row_count"], self.report("-n", "1", "--by", unit)["row_count"])},
                            {(): (len(rows), len(rows))})
                self.expect(f"--by {unit} --sort {order}", {(row["name"], row["module"]): (row["self"], row["total"]) for row in rows},
                            {row: (selfs[row], totals[row]) for row in totals})
                keys = [(row[order], row["total" if order == "self" else "self"]) for row in rows]
                self.expect("the order of rows", {(): keys}, {(): sorted(keys, reverse=True)})

    def tasks(self, tasks):
        first = min(task[3] for task in tasks)
        for by, of_task in (("command", lambda task: task[0]), ("process", lambda task: task[:2]), ("cpu", lambda task: task[2])):
            counts, processes = collections.Counter(map(of_task, tasks)), collections.defaultdict(set)
            for task in tasks:
                processes[task[0]].add(task[1])
            told = {}
            for row in self.report("-n", "0", "--by", by)["rows"]:
                key = row["cpu"] if by == "cpu" else row["name"] if by == "command" else (row["name"], row["pid"])
                told[key] = row["self"], row["total"], row.get("processes")
            times = collections.defaultdict(lambda: [0] * (1 + (max(task[3] for task in tasks) - first) // 10**9))
            for task in tasks:
                times[of_task(task)][(task[3] - first) // 10**9] += 1
            series = {}
            for row in self.report("-n", "0", "--by", by, "--per-second")["rows"]:
                key = row["cpu"] if by == "cpu" else row["name"] if by == "command" else (row["name"], row["pid"])
                series[key] = row["series"]
            self.expect(f"--by {by} --per-second", series, dict(times))
            self.expect(f"--by {by}", told, {key: (count, count, len(processes[key]) if by == "command" else None)
                                             for key, count in counts.items()})

    def processes(self, recording):
        for least in ("0", "4"):
            report = self.report("--processes", "--min", least)
            counted = process_tree(recording, float(least) * len(recording.tasks) / 100)
            self.expect(f"--processes --min {least}",
                        told_tree(report, lambda row: (row["name"], row["command"], row["is_shared"])), counted)
        return max(len(path) for path in process_tree(recording, 0))

    def trees(self, stacks, option, label):
        counts, recursive = collections.Counter(), set()
        for stack, _ in stacks:
            names = [frame[0] for frame in stack]
            counts.update(set(names))
            recursive.update(name for name, count in collections.Counter(names).items() if count > 1)
        functions = sorted(recursive, key=lambda name: -counts[name])[:FEW] + [name for name, _ in counts.most_common(FEW)]
        views = [("root", None, ["--tree"]), ("leaves", None, ["--tree", "--inverted"])]
        for function in dict.fromkeys(functions):
            if not any(letter in "*?[\\" for letter in function) or function in counts:
                views += [(view, function, [f"--{view}", function]) for view in ("callers", "callees")]
        for view, function, options in views:
            # Names that differ only in their modules are nodes of their own, so only a whole tree has their sum.
            for least in ("0",) if option else ("0", "4"):
                report = self.report(*options, *option, "--min", least)
                self.expect(" ".join(options + option + ["--min", least]), told_tree(report, label),
                            tree_of(stacks, view, function, float(least) * len(stacks) / 100))
                assert report["view"] == view and report["function"] == function
        return len(recursive)


def plain(node):
    return node["name"], node["module"]


def folded(node):
    name = node["name"]
    if node["file"] and node["line"] and folded.has_lines:
        name += f":{os.path.basename(node['file'])}:{node['line']}"
    return re.sub("[;\n\r]", ":", name), None


def judge(profctl, path):
    judge = Judge(profctl, path)
    recording = Recording(profctl, path)
    stacks = recording.samples
    judge.lists(stacks)
    judge.tasks(recording.tasks)
    depth = judge.processes(recording)
    recursive = judge.trees(stacks, [], plain)
    judge.trees(folded_stacks(profctl, path, "--inline"), ["--inline"], folded)
    cut = sum(is_cut for _, is_cut in stacks)
    kernel = sum(any(frame[1] == "[kernel]" for frame in stack) for stack, _ in stacks)
    print(f"{os.path.basename(path)}: {len(stacks)} samples, {cut} of them cut, {kernel} in the kernel; {recursive} functions "
          f"call themselves; processes are {depth} deep; {judge.compared} nodes compared, {judge.bad} views differ")
    return judge.bad


folded.has_lines = False
sys.exit(1 if sum(judge(sys.argv[1], path) for path in sys.argv[2:]) else 0)
