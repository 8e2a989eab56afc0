# SPDX-License-Identifier: Apache-2.0
"""The samples of an event in every format, against the report of the same.

event_formats.py PROFCTL RECORDING EVENT FOLDER: in each format the event has the same total, the same amount in each
function itself, and the same unit, as `profctl report --event EVENT --json`.
"""
import collections, gzip, json, os, re, subprocess, sys
from export_readers import Callgrind, INTERNED, add_interned, check_packets, number, one, perf, protoc, without_offset
import export_readers

UNITS = {"ns": "nanoseconds"}


class Export:
    def __init__(self, profctl, path, event, folder):
        self.profctl, self.path, self.event, self.folder = profctl, path, event, folder
        told = json.loads(self.run("report", path, "--event", event, "--json", "-n", "0"))
        self.samples, self.value, self.unit = told["samples"], told["value"], told["unit"]
        self.expected = collections.Counter()
        for row in told["rows"]:
            self.expected[row["name"]] += row["self"]
        self.expected = +self.expected
        if sum(self.expected.values()) != self.value:
            self.complain("report", f"functions have {sum(self.expected.values())} of {self.value}")

    def run(self, *command):
        return subprocess.run([self.profctl, *command], stdout=subprocess.PIPE, check=True).stdout

    def export(self, name):
        return self.run("export", self.path, "--event", self.event, "--format", name)

    def complain(self, what, text):
        export_readers.complain(f"{what} of {self.event}", text)

    def judge(self, what, found):
        for name in sorted(set(found) | set(self.expected)):
            if found[name] != self.expected[name]:
                self.complain(what, f"{name} has {found[name]}, not {self.expected[name]}")

    def judge_unit(self, what, found, expected):
        if found != expected:
            self.complain(what, f"has {found!r}, not {expected!r}")


def read_folded(export):
    found = collections.Counter()
    for line in export.export("folded").decode().splitlines():
        stack, _, value = line.rpartition(" ")
        found[re.sub(r"_\[[ki]\]$", "", stack.split(";")[-1])] += int(value)
    return found


def read_speedscope(export):
    told, found = json.loads(export.export("speedscope")), collections.Counter()
    for profile in told["profiles"]:
        export.judge_unit("speedscope", profile["unit"], UNITS.get(export.unit, "none"))
        export.judge_unit("speedscope", profile["endValue"], sum(profile["weights"]))
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found[told["shared"]["frames"][stack[-1]]["name"]] += weight
    export.judge_unit("speedscope", told["cpu-profilerd"]["event"], export.event)
    return found


def read_firefox(export):
    told, found = json.loads(export.export("firefox")), collections.Counter()
    shared = told["shared"]
    scale = 10**6 if export.unit == "ns" else 1
    for thread in told["threads"]:
        samples = thread["samples"]
        export.judge_unit("firefox", samples["weightType"], "tracing-ms" if export.unit == "ns" else "samples")
        export.judge_unit("firefox", "threadCPUDelta" in samples, False)
        for stack, weight in zip(samples["stack"], samples["weight"] or [1] * samples["length"]):
            function = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
            found[shared["stringArray"][shared["funcTable"]["name"][function]]] += round(weight * scale)
    return found


def read_chrome(export):
    told, found = json.loads(export.export("chrome")), collections.Counter()
    for event in told["traceEvents"]:
        if event["ph"] == "X":
            found[event["name"]] += event["args"]["self"]
    return +found


def read_callgrind(export):
    lines = export.export("callgrind").decode().splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("events: "))
    words = "".join(word.capitalize() for word in re.findall(r"\w+", export.event.replace("_", " ")))
    export.judge_unit("callgrind", lines[head], f"events: {words}" + ("Ns" if export.unit == "ns" else ""))
    body = Callgrind()
    for line in lines[head + 1:]:
        body.line(line)
    export.judge_unit("callgrind", body.total, export.value)
    return body.found


def read_perf_script(export):
    found, value = collections.Counter(), 0
    for line in export.export("perf-script").decode().splitlines():
        event = re.fullmatch(r"\S.* \d+\.\d+: (\d+) (\S+):", line)
        frame = re.fullmatch(r"\s+[0-9a-f]+ (.+) \(.*\)", line)
        if event:
            export.judge_unit("perf-script", event[2], export.event)
            value = int(event[1])
        elif frame:
            found[without_offset(frame[1])] += value
            value = 0
    return found


def read_pprof(export):
    told, found = protoc(gzip.decompress(export.export("pprof")), "test.Profile", "export_profile.proto"), collections.Counter()
    strings = told["string_table"]
    types = [(strings[number(item, "type")], strings[number(item, "unit")]) for item in told["sample_type"]]
    export.judge_unit("pprof", types, [(export.event.replace("off-cpu", "off_cpu"), UNITS.get(export.unit, "count"))])
    functions = {number(item, "id"): strings[number(item, "name")] for item in told["function"]}
    locations = {number(item, "id"): functions[number(item["line"][0], "function_id")] for item in told["location"]}
    for sample in told["sample"]:
        found[locations[int(sample["location_id"][0])]] += int(sample["value"][0])
    return found


def read_otlp(export):
    told, found = protoc(export.export("otlp"), "test.Request", "export_otlp.proto"), collections.Counter()
    tables = told["dictionary"][0]
    strings = tables["string_table"]
    for resource in told["resource_profiles"]:
        profile, = resource["scope_profiles"][0]["profiles"]
        kind = profile["sample_type"][0]
        types = strings[number(kind, "type_strindex")], strings[number(kind, "unit_strindex")]
        export.judge_unit("otlp", types, (export.event.replace("off-cpu", "off_cpu"), UNITS.get(export.unit, "count")))
        export.judge_unit("otlp", bool(profile["period_type"]), export.unit != "ns")
        for sample in profile["samples"]:
            location = tables["location_table"][int(tables["stack_table"][number(sample, "stack_index")]["location_indices"][0])]
            function = tables["function_table"][number(location["lines"][0], "function_index")]
            times, values = sample["timestamps_unix_nano"], sample["values"]
            export.judge_unit("otlp", bool(times), not values)
            found[strings[number(function, "name_strindex")]] += len(times) if times else int(values[0])
    return found


def read_perfetto(export):
    interned, found = {name: {} for name in INTERNED}, collections.Counter()
    packets = protoc(export.export("perfetto"), "test.Trace", "export_trace.proto")["packet"]
    check_packets(packets)
    defaults = packets[0]["trace_packet_defaults"][0]["stack_sample_defaults"][0]
    export.judge_unit("perfetto", defaults["source"], [f"cpu-profilerd.{export.event}"])
    counter = defaults["primary_descriptor"][0]
    export.judge_unit("perfetto", (counter["name"], counter["unit"], counter["unit_str"]),
                      ([export.event], ["1"], []) if export.unit == "ns" else ([export.event], [], [export.unit]))
    for packet in packets:
        for data in packet["interned_data"]:
            add_interned(interned, data)
        for sample in packet["stack_sample"]:
            one(sample["task_context"][0], "tid")
            leaf = interned["callstacks"][one(sample, "callstack_iid")]["frame_ids"][-1]
            name = interned["frames"][int(leaf)]["function_name_id"][0]
            found[interned["function_names"][int(name)]["str"][0]] += one(sample, "primary_weight")
    return found


def judge_perf_data(export):
    """perf has its own names of functions: so by the total, and the event's name and number."""
    path = os.path.join(export.folder, "event.perf")
    with open(path, "wb") as file:
        file.write(export.export("perf-data"))
    total = 0
    for line in perf(export.folder, "script", "-i", path, "-F", "comm,tid,time,period,event", "-G").splitlines():
        event = re.fullmatch(r".* \d+\.\d+: +(\d+) +(\S+): *", line)
        if event:
            export.judge_unit("perf-data", event[2], export.event)
            total += int(event[1])
    export.judge_unit("perf-data", total, export.value)


def judge_refused(export):
    """A sample is one in these."""
    for name, count in ("markup", lambda output: len(re.findall(rb"^\d+\n\d+\n", output, re.M))), ("fuchsia", None):
        done = subprocess.run([export.profctl, "export", export.path, "--event", export.event, "--format", name], capture_output=True)
        if export.value == export.samples:
            export.judge_unit(name, done.returncode, 0)
            if count is not None:
                export.judge_unit(name, count(done.stdout), export.samples)
        elif done.returncode != 1 or b"samples of" not in done.stderr or done.stdout:
            export.complain(name, f"is not refused: {done.stderr!r}")


READERS = {"folded": read_folded, "speedscope": read_speedscope, "firefox": read_firefox, "chrome": read_chrome,
           "callgrind": read_callgrind, "perf-script": read_perf_script, "pprof": read_pprof, "otlp": read_otlp, "perfetto": read_perfetto}


def main():
    export = Export(*sys.argv[1:])
    for name, read in READERS.items():
        export.judge(name, read(export))
    judge_perf_data(export)
    judge_refused(export)
    print(f"{export.event}: {export.value} {export.unit} in {export.samples} samples, the same in {len(READERS) + 1} formats")
    sys.exit(export_readers.failures > 0)


main()
