# SPDX-License-Identifier: Apache-2.0
"""
Readers of what `profctl export` writes, by the documents of the formats. READERS has one for each format:

read(output, period, folder): samples by the name of the innermost function
shown(name): what the format makes of a function's name
has_frames: a "[lost]" frame can stand in it
books: a pattern of a term of the books and its number, or None where the format has no place for them
text(output): what the pattern is looked for in
"""
import collections, gzip, json, os, re, shutil, struct, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))

failures = 0
Reader = collections.namedtuple("Reader", "read shown has_frames books text", defaults=[lambda output: output.decode()])

# What terminals obey, as tests/system/hostile_text.py has it.
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]")


def complain(what, text):
    global failures
    failures += 1
    print(f"FAIL: {what}: {text}")


def lines_of(what, output):
    """Lines that a terminal can show."""
    text = output.decode("utf-8")
    found = CONTROL.sub("", text.replace("\n", "").replace("\t", ""))
    if len(found) != len(text.replace("\n", "").replace("\t", "")):
        complain(what, "has control characters")
    if text and not text.endswith("\n"):
        complain(what, "ends within a line")
    return text.split("\n")[:-1]


def escaped(name):
    """Of formats of lines: reversible, as docs/export.md has it."""
    name = name.replace("\\", "\\\\").replace("\n", "\\n")
    name = CONTROL.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match[0].encode()), name)
    return re.sub("^ ", r"\\x20", name)


def unchanged(name):
    return name


def folded_name(name):
    return CONTROL.sub("?", re.sub("[;\n\r]", ":", name))


def read_folded(output, period, folder):
    found = collections.Counter()
    for line in lines_of("folded", output):
        stack, _, samples = line.rpartition(" ")
        frames = stack.split(";")
        leaf = re.sub(r"_\[[ki]\]$", "", frames[-1]) if frames[-1] not in ("_[k]", "f_[k]", "f_[i]") else frames[-1]
        found[re.sub(r":[^:]+\.c:[0-9]+$", "", leaf)] += int(samples)
    return found


def read_speedscope(output, period, folder):
    found = collections.Counter()
    told = json.loads(output)
    if told["$schema"] != "https://www.speedscope.app/file-format-schema.json":
        complain("speedscope", "has another schema")
    frames = told["shared"]["frames"]
    if not 0 <= told["activeProfileIndex"] < len(told["profiles"]):
        complain("speedscope", "shows no profile")
    for profile in told["profiles"]:
        if profile["type"] != "sampled" or len(profile["samples"]) != len(profile["weights"]):
            complain("speedscope", "a profile is not as it must be")
        if profile["endValue"] - profile["startValue"] != sum(profile["weights"]):
            complain("speedscope", "weights do not add up")
        if profile["unit"] != ("none" if period == 1 else "nanoseconds"):
            complain("speedscope", "has another unit")
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found[frames[stack[-1]]["name"]] += weight // period
    return found


def check_nesting(slices):
    """
    Slices of a thread, as their beginnings, lengths and samples of their own: each lies in another one, or beside it. Of
    those with one beginning the longer is the outer one, of equal ones the first. A slice has time of its own if it has
    samples of its own.
    """
    open_ones = []  # end, time without what is inside, samples
    done = []
    for begin, length, samples in sorted(slices, key=lambda slice: (slice[0], -slice[1])):
        while open_ones and open_ones[-1][0] <= begin and length > 0:
            done.append(open_ones.pop())
        if open_ones and begin + length > open_ones[-1][0]:
            complain("chrome", "two slices overlap")
            return
        if open_ones:
            open_ones[-1][1] -= length
        open_ones.append([begin + length, length, samples])
    if any((own > 0) != (samples > 0) for _, own, samples in done + open_ones):
        complain("chrome", "a slice is inside another one that it has called")


def read_chrome(output, period, folder):
    found = collections.Counter()
    told = json.loads(output)
    named, slices = set(), collections.defaultdict(list)
    for event in told["traceEvents"]:
        if event["ph"] == "M":
            named.add((event["pid"], event["name"]))
            continue
        # Fractions of a microsecond that are added up are other ones than where the next slice begins.
        # Behind a slice without a length speedscope shows nothing.
        if event["ph"] != "X" or any(not isinstance(event[key], int) for key in ("ts", "dur")) or event["dur"] < 1:
            complain("chrome", f"has the event {event}")
        slices[event["pid"], event["tid"]].append((event["ts"], event["dur"], event["args"]["self"]))
        if not 0 <= event["args"]["self"] <= event["args"]["samples"]:
            complain("chrome", "a slice has more samples in itself than in all")
        found[event["name"]] += event["args"]["self"]
    for (pid, _), rows in slices.items():
        check_nesting(rows)
        if (pid, "process_name") not in named:
            complain("chrome", f"process {pid} has no name")
    return +found


class Callgrind:
    """By the grammar in Callgrind's manual, "Callgrind Format Specification"."""

    def __init__(self):
        self.names = collections.defaultdict(dict)
        self.found = collections.Counter()
        self.called = collections.Counter()
        self.function = self.callee = None
        self.is_call = False
        self.total = None

    def name(self, kind, text):
        number, name = re.fullmatch(r"(\(\d+\))(?: (.*))?", text).groups()
        if name is not None:
            if number in self.names[kind]:
                complain("callgrind", f"{kind}{number} is defined twice")
            self.names[kind][number] = name
        return self.names[kind][number]

    def line(self, line):
        key, _, value = line.partition("=")
        kinds = {"fl": "file", "fi": "file", "fe": "file", "cfi": "file", "cfl": "file", "ob": "object", "cob": "object"}
        if key in kinds:
            self.name(kinds[key], value)
        elif key == "fn":
            self.function = self.name("function", value)
        elif key == "cfn":
            self.callee = self.name("function", value)
        elif key == "calls":
            self.is_call = True
        elif re.fullmatch(r"\d+ \d+", line):
            if self.is_call:
                self.called[self.callee] += int(line.split()[1])
            else:
                self.found[self.function] += int(line.split()[1])
            self.is_call = False
        elif line.startswith("totals: "):
            self.total = int(line.split()[1])
        elif line:
            complain("callgrind", f"{line!r} is nothing")


def annotate(output, found, folder):
    """callgrind_annotate, of valgrind, reads the same."""
    path = os.path.join(folder, "callgrind.out")
    with open(path, "wb") as file:
        file.write(output)
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", path], capture_output=True)
    text = done.stdout.decode("utf-8")
    if done.returncode != 0 or done.stderr:
        complain("callgrind_annotate", f"status {done.returncode}: {done.stderr.decode()[:300]}")
        return
    total = re.search(r"^ *([\d,]+) *PROGRAM TOTALS$", text, re.M)
    if total is None or int(total[1].replace(",", "")) != sum(found.values()):
        complain("callgrind_annotate", f"another total: {total}")
    told = collections.Counter()
    for samples, name in re.findall(r"^ *([\d,]+)  \?\?\?:(.*?)(?: \[.*\])?$", text, re.M):
        told[name] += int(samples.replace(",", ""))
    for name, samples in found.items():
        if "[" not in name and told[name] != samples:
            complain("callgrind_annotate", f"{name[:80]!r} has {told[name]} samples, not {samples}")


def read_callgrind(output, period, folder):
    lines = lines_of("callgrind", output)
    if lines[0] != "# callgrind format" or "events: Samples" not in lines or "positions: line" not in lines:
        complain("callgrind", "has another head")
    body = Callgrind()
    for line in lines[lines.index("events: Samples") + 1:]:
        body.line(line)
    if body.total != sum(body.found.values()):
        complain("callgrind", f"totals: {body.total}")
    if shutil.which("callgrind_annotate") and body.total and "inlined.c" not in output.decode():
        annotate(output, body.found, folder)
    return body.found


EVENT = re.compile(r"(\S.*?)\s+(\d+)/(\d+)\s+\[(\d+)\]\s+(\d+\.\d+): +(\d+) (\S+):\s*")


def without_offset(name):
    """As stackcollapse-perf.pl, the Firefox Profiler and speedscope take a name."""
    return re.sub(r"\+0x[0-9a-f]+$", "", name)


def read_perf_script(output, period, folder):
    found = collections.Counter()
    at_leaf, times = None, []
    for line in lines_of("perf-script", output):
        if line.startswith("#"):
            continue
        frame = re.match(r"\s+([0-9a-f]+) (.+) \((.*)\)$", line)
        event = EVENT.fullmatch(line)
        if event:
            at_leaf = int(event[6]) // period
            times.append(event[5])
        elif frame and at_leaf is not None:
            found[without_offset(frame[2])] += at_leaf
            at_leaf = 0
        elif line or at_leaf is None:
            complain("perf-script", f"{line!r} is nothing")
    if not re.match(rb"# ========\n(# .*\n)*# ========\n", output):  # the Firefox Profiler knows the text by its first line
        complain("perf-script", "does not begin as perf's text does")
    if times != sorted(times, key=float):  # as perf has them, and speedscope wants them
        complain("perf-script", "is not in the order of time")
    return found


def protoc(output, message, schema):
    """What protoc makes of a message, as nested dictionaries of lists."""
    done = subprocess.run(["protoc", f"--decode={message}", f"--proto_path={HERE}", schema], input=output,
                          capture_output=True)
    if done.returncode != 0 or done.stderr:
        complain(message, f"protoc: {done.stderr[:300]!r}")
    top = collections.defaultdict(list)
    open_ones = [top]
    for line in done.stdout.decode("ascii").splitlines():
        line = line.strip()
        if line == "}":
            open_ones.pop()
        elif line.endswith(" {"):
            inner = collections.defaultdict(list)
            name = line[:-2]
            open_ones[-1][name].append(inner)
            open_ones.append(inner)
        else:
            name, _, value = line.partition(": ")
            if re.match(r"^\d+$", name):
                complain(message, f"has an unknown field {name}")
            open_ones[-1][name].append(unquoted(value) if value.startswith('"') else value)
    return top


def unquoted(text):
    """A string of protobuf's text format; bytes that are not UTF-8 are surrogates, which no name has."""
    escapes = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
    content = re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else escapes.get(m[1], m[1]),
                     text[1:-1].encode())
    return content.decode("utf-8", "surrogateescape")


def number(message, name):
    return int(message[name][0]) if message[name] else 0


def check_pprof(told, strings, period):
    types = [(strings[number(t, "type")], strings[number(t, "unit")]) for t in told["sample_type"]]
    if types != [("samples", "count"), ("cpu", "nanoseconds")][:1 if period == 1 else 2]:
        complain("pprof", f"has sample types {types}")
    if number(told, "period") != (0 if period == 1 else period):
        complain("pprof", "has another period")
    for sample in told["sample"]:
        values = [int(value) for value in sample["value"]]
        if values[1:] != [values[0] * period] * (len(types) - 1):
            complain("pprof", f"has values {values}")
        labels = {strings[number(label, "key")] for label in sample["label"]}
        if sample["label"] and not {"comm"} <= labels <= {"comm", "thread", "pid", "tid", "unit", "user_unit", "container", "runtime", "pod", "uid"}:
            complain("pprof", f"has labels {labels}")
    for mapping in told["mapping"]:
        build_id = strings[number(mapping, "build_id")]
        if not re.fullmatch("([0-9a-f]{2})*", build_id) or not number(mapping, "memory_limit"):
            complain("pprof", "has a mapping that is not as it must be")
    for name in ("mapping", "location", "function"):
        ids = [number(item, "id") for item in told[name]]
        if len(set(ids)) != len(ids) or 0 in ids:
            complain("pprof", f"has ids of {name} twice")


def pprof_owners(output):
    """The pid of each sample, and whose it is."""
    told = protoc(gzip.decompress(output), "test.Profile", "export_profile.proto")
    strings = told["string_table"]
    for sample in told["sample"]:
        labels = {}
        for label in sample["label"]:
            text = number(label, "str")
            labels[strings[number(label, "key")]] = strings[text] if text else number(label, "num")
        yield labels.get("pid", 0), {key: labels[key] for key in ("unit", "container", "runtime", "pod", "uid") if key in labels}


def pprof_time(output):
    """When it began, in nanoseconds since 1970."""
    return number(protoc(gzip.decompress(output), "test.Profile", "export_profile.proto"), "time_nanos")


def go_pprof(output, found, period, folder):
    """Of Go, where it is installed."""
    path = os.path.join(folder, "pprof.pb.gz")
    with open(path, "wb") as file:
        file.write(output)
    done = subprocess.run(["go", "tool", "pprof", "-sample_index=samples", "-top", "-nodecount=100000", "-nodefraction=0",
                           path], capture_output=True, env={**os.environ, "HOME": folder, "PPROF_BINARY_PATH": folder})
    text = done.stdout.decode("utf-8")
    if done.returncode != 0 or CONTROL.search(text.replace("\n", "")):
        complain("go tool pprof", f"status {done.returncode}: {done.stderr.decode()[:300]}")
        return
    told = collections.Counter()
    for samples, name in re.findall(r"^ +(\d+) +\S+% +\S+% +\d+ +\S+% +(.*)$", text, re.M):
        told[re.sub(" (\\(inline\\)|\\(partial-inline\\))$", "", name)] += int(samples)
    # It shortens what it takes for template arguments and the like, and counts what is alike then together.
    if sum(told.values()) != sum(found.values()):
        complain("go tool pprof", f"has {sum(told.values())} samples, not {sum(found.values())}")
    for name in ("plain", "semi;colon", "[unknown]", "[kernel thread]"):
        if told[name] != found[name]:
            complain("go tool pprof", f"{name} has {told[name]} samples, not {found[name]}")


def pprof_comments(output):
    told = protoc(gzip.decompress(output), "test.Profile", "export_profile.proto")
    return "".join(told["string_table"][int(comment)] + "\n" for comment in told["comment"])


def read_pprof(output, period, folder):
    found = collections.Counter()
    told = protoc(gzip.decompress(output), "test.Profile", "export_profile.proto")
    strings = told["string_table"]
    check_pprof(told, strings, period)
    functions = {number(f, "id"): strings[number(f, "name")] for f in told["function"]}
    locations = {number(l, "id"): functions[number(l["line"][0], "function_id")] for l in told["location"]}
    mappings = {number(m, "id") for m in told["mapping"]}
    if not {number(l, "mapping_id") for l in told["location"]} <= mappings | {0}:
        complain("pprof", "has a location in no mapping")
    for sample in told["sample"]:
        found[locations[int(sample["location_id"][0])]] += int(sample["value"][0])
    if shutil.which("go") and found:
        go_pprof(output, found, period, folder)
    return found


def columns(table):
    """A table of columns; all are as long as it says."""
    for name, column in table.items():
        if isinstance(column, list) and len(column) != table["length"]:
            complain("firefox", f"column {name} has {len(column)} rows, not {table['length']}")
    return table


def check_firefox(told, shared, period):
    meta = told["meta"]
    if (meta["preprocessedProfileVersion"], meta["version"], meta["processType"]) != (66, 24, 0):
        complain("firefox", "has another version")
    if meta["interval"] != (1 if period == 1 else period / 1e6) or meta["categories"][0]["color"] != "grey":
        complain("firefox", f"has another interval: {meta['interval']}")
    for name in ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "sources",
                 "sourceLocationTable"):
        columns(shared[name])
    frames, functions = shared["frameTable"], shared["funcTable"]
    if any(not 0 <= f < functions["length"] for f in frames["func"]):
        complain("firefox", "a frame has no function")
    if any(not 0 <= c < len(meta["categories"]) for c in frames["category"]):
        complain("firefox", "a frame has no category")
    if any(not -1 <= a < 2 ** 31 for a in frames["address"]):
        complain("firefox", "a frame has an address that is none")
    if any(not 0 <= offset <= row for row, offset in enumerate(shared["stackTable"]["prefixOffset"])):
        complain("firefox", "a stack has no parent")
    if any(not -1 <= r < shared["resourceTable"]["length"] for r in functions["resource"]):
        complain("firefox", "a function has no resource")
    for lib in told["libs"]:
        if lib["codeId"] and not re.fullmatch(r"[0-9A-F]{32}0", lib["breakpadId"]):
            complain("firefox", f"has the debug id {lib['breakpadId']}")
    for thread in meta.get("initialVisibleThreads", []):
        if not 0 <= thread < len(told["threads"]):
            complain("firefox", "shows no thread")


def read_firefox(output, period, folder):
    found = collections.Counter()
    told = json.loads(output)
    shared = told["shared"]
    check_firefox(told, shared, period)
    frames, functions, strings = shared["frameTable"], shared["funcTable"], shared["stringArray"]
    tasks = set()
    if not told["threads"]:  # the viewer opens no such profile
        complain("firefox", "has no thread")
    for thread in told["threads"]:
        samples = columns(thread["samples"])
        columns(thread["markers"])
        if (thread["pid"], thread["tid"]) in tasks:
            complain("firefox", "a thread is there twice")
        tasks.add((thread["pid"], thread["tid"]))
        if any(delta < 0 for delta in samples["timeDeltas"]):
            complain("firefox", "time runs backward")
        # The viewer leaves out what is at the end, or behind it.
        if not 0 <= sum(samples["timeDeltas"]) < told["meta"]["profilingEndTime"]:
            complain("firefox", f"a thread ends at {sum(samples['timeDeltas'])}, and the profile at {told['meta']['profilingEndTime']}")
        if period != 1 and set(samples.get("threadCPUDelta", [])) - {period}:
            complain("firefox", "has another CPU time")
        for stack, weight in zip(samples["stack"], samples["weight"] or [1] * samples["length"]):
            frame = shared["stackTable"]["frame"][stack]
            found[strings[functions["name"][frames["func"][frame]]]] += weight
    return found


def attribute(tables, index):
    """A row of the attribute table, as its key and its value."""
    row = tables["attribute_table"][int(index)]
    value = row["value"][0] if row["value"] else {}
    return tables["string_table"][number(row, "key_strindex")], (value.get("string_value") or value.get("int_value") or [0])[0]


def check_otlp_tables(tables):
    limits = {name: len(rows) for name, rows in tables.items()}
    strings = tables["string_table"]
    if strings[0] != "" or len(set(strings)) != len(strings):
        complain("otlp", "has other strings")
    for name in ("mapping_table", "location_table", "function_table", "attribute_table", "stack_table"):
        if any(tables[name][0].values()):
            complain("otlp", f"{name} does not begin with an empty row")
    if limits["link_table"] != 1:
        complain("otlp", "has another table of links")
    for stack in tables["stack_table"][1:]:
        if not stack["location_indices"] or any(not 0 < int(i) < limits["location_table"] for i in stack["location_indices"]):
            complain("otlp", "a stack has no location")
    for location in tables["location_table"][1:]:
        if not 0 <= number(location, "mapping_index") < limits["mapping_table"]:
            complain("otlp", "a location has no mapping")
        if any(not 0 < number(line, "function_index") < limits["function_table"] for line in location["lines"]):
            complain("otlp", "a line has no function")
        for index in location["attribute_indices"]:
            if attribute(tables, index) not in (("profile.frame.type", "native"), ("profile.frame.type", "kernel")):
                complain("otlp", "a location has another attribute")
    for mapping in tables["mapping_table"]:
        for index in mapping["attribute_indices"]:
            if attribute(tables, index)[0] != "process.executable.build_id.gnu":
                complain("otlp", "a mapping has another attribute")


def otlp_samples(told, tables, period):
    """Stack and number of each sample."""
    for resource in told["resource_profiles"]:
        keys = {a["key"][0] for a in resource["resource"][0]["attributes"]}
        if not {"service.name", "process.executable.name"} <= keys:
            complain("otlp", f"a resource has attributes {keys}")
        profile, = resource["scope_profiles"][0]["profiles"]
        types = [tables["string_table"][number(profile[name][0], f"{part}_strindex")] for name in ("sample_type", "period_type")
                 if profile[name] for part in ("type", "unit")]
        if types != ["samples", "count", "cpu", "nanoseconds"][:2 if period == 1 else 4] or number(profile, "period") != (
                0 if period == 1 else period):
            complain("otlp", f"has types {types}")
        for sample in profile["samples"]:
            keys = {attribute(tables, index)[0] for index in sample["attribute_indices"]}
            if not keys <= {"thread.id", "thread.name", "cpu.logical_number"}:
                complain("otlp", f"a sample has attributes {keys}")
            times = [int(time) for time in sample["timestamps_unix_nano"]]
            if bool(times) == bool(sample["values"]) or times != sorted(times) or (times and times[0] < 1.7e18):
                complain("otlp", f"has times {times[:3]} and values {sample['values'][:3]}")
            yield number(sample, "stack_index"), len(times) or int(sample["values"][0])


def otlp_times(output):
    """The times of each sample."""
    profiles = (profile for resource in protoc(output, "test.Request", "export_otlp.proto")["resource_profiles"]
                for profile in resource["scope_profiles"][0]["profiles"])
    return [[int(time) for time in sample["timestamps_unix_nano"]] for profile in profiles for sample in profile["samples"]]


def otlp_owners(output):
    """The pid of each resource, and whose it is."""
    keys = {"systemd.unit.name": "unit", "container.id": "container", "container.runtime.name": "runtime", "k8s.pod.uid": "pod",
            "process.linux.cgroup": "cgroup", "process.user.id": "uid"}
    for resource in protoc(output, "test.Request", "export_otlp.proto")["resource_profiles"]:
        told = {}
        for item in resource["resource"][0]["attributes"]:
            value = item["value"][0]
            told[item["key"][0]] = value["string_value"][0] if value["string_value"] else number(value, "int_value")
        yield told.get("process.pid", 0), {keys[key]: value for key, value in told.items() if key in keys}


def read_otlp(output, period, folder):
    found = collections.Counter()
    told = protoc(output, "test.Request", "export_otlp.proto")
    tables = told["dictionary"][0]
    check_otlp_tables(tables)
    for stack, samples in otlp_samples(told, tables, period):
        location = tables["location_table"][int(tables["stack_table"][stack]["location_indices"][0])]
        function = tables["function_table"][number(location["lines"][0], "function_index")]
        found[tables["string_table"][number(function, "name_strindex")]] += samples
    return found


def otlp_books(output):
    told = protoc(output, "test.Request", "export_otlp.proto")
    tables = told["dictionary"][0]
    rows = range(1, len(tables["attribute_table"]))
    return "".join("%s=%s\n" % attribute(tables, row) for row in rows)


# The fields of InternedData by what they are interned as.
INTERNED = ("function_names", "frames", "callstacks", "build_ids", "mapping_paths", "source_paths", "mappings")


def one(message, name):
    """A number that must be there."""
    if len(message[name]) != 1:
        complain("perfetto", f"has {len(message[name])} of {name} in a message")
    return number(message, name)


def check_packets(packets):
    """The rules of a sequence: it begins afresh, and has one id."""
    flags = [one(packet, "sequence_flags") for packet in packets]
    if flags[:1] != [1] or set(flags[1:]) - {2} or {one(packet, "trusted_packet_sequence_id") for packet in packets} != {1}:
        complain("perfetto", "is not one sequence")
    if any(packet["timestamp_clock_id"] for packet in packets):
        complain("perfetto", "has times of another clock")


def add_interned(interned, data):
    """Things may refer to others of their packet, or of one before."""
    for name in INTERNED:
        for item in data[name]:
            if one(item, "iid") == 0 or number(item, "iid") in interned[name]:
                complain("perfetto", f"has an iid of {name} twice")
            interned[name][number(item, "iid")] = item
    for name, item in ((name, item) for name in INTERNED for item in data[name]):
        for field, kind in (("function_name_id", "function_names"), ("mapping_id", "mappings"), ("build_id", "build_ids"),
                            ("source_path_iid", "source_paths"), ("path_string_ids", "mapping_paths"),
                            ("frame_ids", "frames")):
            if any(int(value) not in interned[kind] for value in item[field]):
                complain("perfetto", f"{name} has a {field} that is not known yet")
        build_id = item["str"][0].encode("utf-8", "surrogateescape").hex() if name == "build_ids" else "0badcafe"
        if not build_id.startswith("0badcafe") and len(build_id) != 40:
            complain("perfetto", f"has the build-id {build_id}")
        if name == "frames" and not (item["mapping_id"] and item["rel_pc"]):
            complain("perfetto", "a frame is in no mapping")


def perfetto_samples(output):
    """Names of each sample's frames, the outermost first."""
    interned = {name: {} for name in INTERNED}
    names = {}
    packets = protoc(output, "test.Trace", "export_trace.proto")["packet"]
    check_packets(packets)
    for packet in packets:
        for data in packet["interned_data"]:
            add_interned(interned, data)
        for tree in packet["process_tree"]:
            names.update({("process", number(process, "pid")): process["cmdline"] for process in tree["processes"]})
            names.update({("thread", number(thread, "tid")): thread["name"] for thread in tree["threads"]})
        for sample in packet["perf_sample"]:
            one(packet, "timestamp")
            pid = one(sample, "pid")
            if ("process", pid if pid < 2 ** 31 else pid - 2 ** 32) not in names:
                complain("perfetto", f"process {pid} has no name")
            stack = interned["callstacks"][one(sample, "callstack_iid")]
            yield [interned["function_names"][one(interned["frames"][int(iid)], "function_name_id")]["str"][0]
                   for iid in stack["frame_ids"]]


def read_perfetto(output, period, folder):
    return collections.Counter(frames[-1] for frames in perfetto_samples(output))


def perfetto_books(output):
    """The last value of each counter, and the period."""
    packets = protoc(output, "test.Trace", "export_trace.proto")["packet"]
    tracks = {number(track, "uuid"): track["name"][0] for packet in packets for track in packet["track_descriptor"]
              if track["counter"]}
    values = {tracks[number(event, "track_uuid")]: number(event, "counter_value") for packet in packets
              for event in packet["track_event"]}
    return "".join(f"{name}: {value}\n" for name, value in values.items())


def perfetto_labels(output):
    """The labels that each process has at last. A second track of a process is another process to Perfetto."""
    packets = protoc(output, "test.Trace", "export_trace.proto")["packet"]
    told, tracks = {}, {}
    for packet in sorted((packet for packet in packets if packet["track_descriptor"]), key=lambda packet: number(packet, "timestamp")):
        track, = packet["track_descriptor"]
        for process in track["process"]:
            if tracks.setdefault(number(process, "pid"), number(track, "uuid")) != number(track, "uuid"):
                complain("perfetto", f"process {number(process, 'pid')} has two tracks")
            told.setdefault(number(process, "pid"), {}).update(enumerate(process["process_labels"]))
    if len(set(tracks.values())) != len(tracks):
        complain("perfetto", "processes share a track")
    return told


# What is in the recordings that perf cannot know: names of user functions by address and of the kernel's functions, and the
# ticks without a sample.
known = {"name": None, "exact": None, "kernel": [], "lost": 0}


def perf(folder, *arguments, content=None):
    done = subprocess.run(["perf", *arguments], input=content, capture_output=True, env={**os.environ, "HOME": folder}, cwd=folder)
    if done.returncode != 0:
        complain("perf", f"{arguments}: status {done.returncode}: {done.stderr[:300]!r}")
    return done.stdout.decode("utf-8")


def read_perf_data(output, period, folder):
    """By perf itself. It has names for the kernel's functions only; the others are known by their addresses."""
    found = collections.Counter()
    path, content = "-", output
    if output[8:16] != struct.pack("<Q", 16):  # a file, not what goes through a pipe
        path, content = os.path.join(folder, "perf.data"), None
        with open(path, "wb") as file:
            file.write(output)
    text = perf(folder, "script", "--ns", "-i", path, "-F", "comm,pid,tid,cpu,time,period,event,ip,sym", content=content)
    for event in text.split("\n\n"):
        head, *frames = event.strip("\n").split("\n")
        if not head:
            continue
        samples = re.search(r" \d+\.\d{9}: +(\d+) +cpu-clock: *", head)
        if samples is None or int(samples[1]) != period:
            complain("perf-data", f"has the event {head!r}")
            continue
        leaf = re.fullmatch(r"\s*([0-9a-f]+) (.*)", frames[0]) if frames else None
        address = int(leaf[1], 16) if leaf else 0
        found[leaf[2] if leaf and leaf[2] != "[unknown]" else known["name"](address)] += 1
    report = perf(folder, "report", "--stdio", "-i", path, content=content)
    lost = re.search(r"Total Lost Samples: (\d+)", report)
    # Of a file without samples perf prints no such line.
    if found and (lost is None or int(lost[1]) != known["lost"]):
        complain("perf-data", f"has lost {lost and lost[1]} samples, not {known['lost']}")
    return found


def perf_sums(folder, path, key, content):
    """Samples by a sort key of perf's, as it shows them."""
    text = perf(folder, "report", "--stdio", "-n", "-s", key, "-g", "none", "--no-children", "-t", "\x1f", "-i", path, content=content)
    rows = [line.split("\x1f") for line in text.split("\n") if "\x1f" in line and not line.startswith("#")]
    found = collections.Counter()
    for _, samples, shown in rows:
        found[shown.rstrip(" ")] += int(samples)
    return found


def perf_groups(folder, path, content=None):
    return perf_sums(folder, path, "cgroup", content)


def perf_objects(folder, path, content=None):
    return perf_sums(folder, path, "dso", content)


def perf_data_name(name):
    return "[unknown]" if name in ("[kernel]", "[kernel thread]", "[no stack]") else CONTROL.sub("?", name)


def bits(word, first, last):
    return word >> first & (1 << last - first + 1) - 1


def padded(data, at, size_bytes):
    """A text of a record, and where the next field begins."""
    if any(data[at + size_bytes:at + -(-size_bytes // 8) * 8]):
        complain("fuchsia", "has padding that is not 0")
    return data[at:at + size_bytes], at + -(-size_bytes // 8) * 8


class Fuchsia:
    """FXT as `ffx profiler` reads it, by Fuchsia's own page of the format: Profiler records, and names of tasks."""

    def __init__(self):
        self.modules, self.maps, self.named = {}, collections.defaultdict(list), set()
        self.biases = {}
        self.stacks = []

    def profiler(self, head, data):
        time_ns, pid, tid = struct.unpack_from("<QQQ", data, 8)
        if bits(head, 20, 27) or not time_ns:
            complain("fuchsia", "has a reference to a thread, or no time")
        number, kind = bits(head, 28, 43), bits(head, 16, 19)
        if kind == 0:
            name, at = padded(data, 32, bits(head, 44, 51))
            build_id, at = padded(data, at, bits(head, 52, 59))
            if tid or bits(head, 60, 63) or at != len(data) or (pid, number) in self.modules:
                complain("fuchsia", "has a module that is not as it must be")
            self.modules[pid, number] = name.decode(), build_id.hex()
        elif kind == 1:
            start, size_bytes, vaddr = struct.unpack_from("<QQQ", data, 32)
            bias = (start - vaddr) % 2**64
            if tid or bits(head, 47, 63) or len(data) != 56 or (pid, number) not in self.modules or bits(head, 44, 46) != 5:
                complain("fuchsia", "has a mapping that is not as it must be")
            if self.biases.setdefault((pid, number), bias) != bias:
                complain("fuchsia", "has a module at two places")
            if any(start < other + length and other < start + size_bytes for other, length, _ in self.maps[pid]):
                complain("fuchsia", "has mappings over one another")
            self.maps[pid].append((start, size_bytes, number))
        elif kind == 2:
            count = bits(head, 28, 35)
            if bits(head, 36, 63) or len(data) != 8 * (4 + count) or pid not in self.named:
                complain("fuchsia", "has a backtrace that is not as it must be")
            self.stacks.append((pid, struct.unpack_from(f"<{count}Q", data, 32)))
        else:
            complain("fuchsia", f"has a profiler record of kind {kind}")

    def record(self, head, data):
        kind = bits(head, 0, 3)
        if kind == 10:
            self.profiler(head, data)
        elif kind == 7:
            self.named.add(struct.unpack_from("<Q", data, 8)[0])
        elif kind not in (0, 1, 2):  # ffx takes no others
            complain("fuchsia", f"has a record of type {kind}")

    def leaf(self, pid, stack):
        for start, size_bytes, number in self.maps[pid]:
            if stack and start <= stack[0] < start + size_bytes:
                address = (stack[0] - self.biases[pid, number]) % 2**64
                name, build_id = self.modules[pid, number]
                if name == "[kernel]":
                    return CONTROL.sub("?", known["kernel"][address // 0x100])
                if not build_id.startswith("0badcafe"):
                    complain("fuchsia", f"has the build-id {build_id}")
                return known["name"](address)
        return "[unknown]"


def read_fuchsia(output, period, folder):
    reader = Fuchsia()
    at = 0
    if output[:8] != bytes.fromhex("1000044678541600"):
        complain("fuchsia", "has another magic number")
    while at < len(output):
        head, = struct.unpack_from("<Q", output, at)
        size_bytes = 8 * bits(head, 4, 15)
        if size_bytes == 0 or at + size_bytes > len(output):
            complain("fuchsia", f"has a record of {size_bytes} bytes at {at}")
            break
        reader.record(head, output[at:at + size_bytes])
        at += size_bytes
    return collections.Counter(reader.leaf(pid, stack) for pid, stack in reader.stacks)


def filter_markup(output, *options):
    """What LLVM's filter makes of it."""
    done = subprocess.run(["llvm-symbolizer-19", "--filter-markup", *options], input=output, capture_output=True)
    if done.returncode != 0 or done.stderr.replace(b"error: could not find build ID\n", b""):
        complain("markup", f"the filter says {done.stderr[:300]!r}")
    return done.stdout.decode()


def check_markup_filter(output, lines):
    """Of files that are not here it leaves every element of a frame, and all other lines as they are."""
    shown = filter_markup(output).split("\n")
    frames = [line for line in shown if line.startswith("[[[bt:")]
    if len(frames) != sum(line.startswith("{{{bt:") for line in lines):
        complain("markup", "the filter sees other frames")
    if [line for line in shown if "[[[" not in line] != [line for line in lines if "{{{" not in line] + [""]:
        complain("markup", "the filter sees other lines")


def read_markup(output, period, folder):
    """By the page "Symbolizer markup format" of Fuchsia; each process is a context."""
    found = collections.Counter()
    lines = lines_of("markup", output)
    modules, maps = {}, []
    at_leaf = numbers = 0
    is_kernel = False
    for line in lines:
        element = re.fullmatch(r"\{\{\{(\w+)(?::(.*))?\}\}\}", line)
        fields = (element[2] or "").split(":") if element else []
        frame = re.fullmatch(r"    #(\d+) +(?:0x[0-9a-f]{16} )?(.*?)(?: \(.*\))?", line)
        if element and element[1] == "reset":
            modules, maps = {}, []
        elif element and element[1] == "module":
            number, name, kind, build_id = fields
            if kind != "elf" or not build_id.startswith("0badcafe") or number in modules:
                complain("markup", f"has the module {line!r}")
            modules[number] = name
        elif element and element[1] == "mmap":
            start, size_bytes, load, number, mode, vaddr = fields
            if (load, mode) != ("load", "rx") or number not in modules:
                complain("markup", f"has the mapping {line!r}")
            maps.append((int(start, 0), int(size_bytes, 0), int(vaddr, 0)))
        elif element and element[1] == "bt":
            number, address, kind = fields
            if kind != ("pc" if at_leaf == 2 or is_kernel else "ra"):
                complain("markup", f"has the frame {line!r}")
            is_kernel = False
            if at_leaf == 2:
                at = int(address, 16)
                places = [at - start + vaddr for start, size_bytes, vaddr in maps if start <= at < start + size_bytes]
                found[escaped(known["exact"](*places))] += 1
            at_leaf = 0
        elif re.fullmatch(r"\d+", line):
            at_leaf += 1
            numbers += 1
        elif frame:
            found[frame[2]] += at_leaf == 2
            is_kernel = "([kernel])" in line
            at_leaf = 0
        elif not line.startswith("# "):
            complain("markup", f"{line!r} is nothing")
    if numbers != 2 * sum(found.values()):
        complain("markup", "has other numbers of tasks")
    if "0badcafe" in output.decode():
        check_markup_filter(output, lines)
    return +found


def check_ndjson(rows, period):
    """Each row is defined before it is used, and says what it has to; returns the tables."""
    tables = collections.defaultdict(list)
    frames, stacks = set(), set()
    for row in rows:
        tables[row["table"]].append(row)
        if len(tables["recording"]) != 1 or row["recording"] != tables["recording"][0]["recording"]:
            complain("ndjson", f"has a row of another recording: {row}")
        if row["table"] == "frame":
            if row["frame"] in frames or row["kernel"] != (row["module"] == "[kernel]"):
                complain("ndjson", f"has the frame {row}")
            frames.add(row["frame"])
        elif row["table"] == "stack":
            if row["stack"] in stacks or not row["frames"] or not set(row["frames"]) <= frames:
                complain("ndjson", f"has the stack {row}")
            stacks.add(row["stack"])
        elif row["table"] == "sample":
            if row["stack"] not in stacks or row["value"] != (None if period == 1 else period) or row["weight"] != 1:
                complain("ndjson", f"has the sample {row}")
    if set(tables) - {"recording", "frame", "stack", "sample"} or tables["recording"][0]["samples"] != len(tables["sample"]):
        complain("ndjson", f"has the tables {dict((name, len(rows)) for name, rows in tables.items())}")
    return tables


def read_ndjson(output, period, folder):
    found = collections.Counter()
    tables = check_ndjson([json.loads(line) for line in lines_of("ndjson", output)], period)
    names = {row["frame"]: row["name"] for row in tables["frame"]}
    leaves = {row["stack"]: names[row["frames"][0]] for row in tables["stack"]}
    for row in tables["sample"]:
        found[leaves[row["stack"]]] += row["weight"]
    return found


READERS = {
    "ndjson": Reader(read_ndjson, unchanged, False, r'"%s":%d'),
    "folded": Reader(read_folded, folded_name, True, None),
    "speedscope": Reader(read_speedscope, unchanged, True, r'"%s":%d'),
    "otlp": Reader(read_otlp, unchanged, True, r"cpu_profilerd\.ticks\.%s=%d\n", otlp_books),
    "perf-data": Reader(read_perf_data, perf_data_name, False, None),
    "perfetto": Reader(read_perfetto, unchanged, False, r"ticks %s: %d\n", perfetto_books),
    "fuchsia": Reader(read_fuchsia, perf_data_name, False, None),
    "markup": Reader(read_markup, lambda name: escaped(name).replace("{", r"\x7b") if name in known["kernel"] else escaped(name),
                     False, r"# ticks %s: %d\n"),
    "firefox": Reader(read_firefox, unchanged, True, r'"ticks %s","format":"string","value":"%d"'),
    "chrome": Reader(read_chrome, unchanged, True, r'"%s":%d'),
    "callgrind": Reader(read_callgrind, escaped, True, r"desc: ticks %s: %d\n"),
    "pprof": Reader(read_pprof, escaped, True, r"ticks %s: %d\n", pprof_comments),
    "perf-script": Reader(read_perf_script, escaped, True, r"# ticks %s: %d\n"),
}
