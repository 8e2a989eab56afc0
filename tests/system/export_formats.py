# SPDX-License-Identifier: Apache-2.0
"""What export_formats.sh says: export_formats.py PROFCTL MAKER FOLDER, where FOLDER has the program `inlined`."""
import collections, filecmp, gzip, itertools, json, os, re, shutil, subprocess, sys
from recording_maker import Recording, SESSION, SYMBOLS, BOOKS, PROCESSES
import export_readers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "truth"))
import recording as dumped

PERIOD_NS = 250000
LOST = {"lost": 5, "throttled": 7, "missed": 11, "dropped": 13}  # ticks
HOST, KERNEL = "ho\x1bst", "6.1\n-test"
KERNEL_START = 0xffffffff80000000
KERNEL_FUNCTIONS = ["sys_read", "do; syscall", "irq\nentry", "{{{reset}}}"]

# What some format parts its fields or lines with, escapes with, or takes for a reference of its own.
HARD_NAMES = [
    "plain", "with space", " leading space", "trailing space ", "semi;colon", "new\nline", "carriage\rreturn", "tab\tbed",
    'double"quote', "single'quote", "back\\slash", "back\\nslash", "\\", "replaced \ufffd", "two+0x1f+0x0", "\x1b[31mred\x1b[0m", "bell\x07",
    "\u009b2J", "right\u202eleft", "line\u2028separator", "\ufeffmark", "umlaut \u00e4", "emoji \U0001f600", "(1)", "(2) two",
    "(anonymous namespace)::f", "operator()(int)", "f(int) (.cold)", "f (/usr/bin/other)", "x+0x10", "100", "calls=1 2",
    "fn=(3)", "totals: 7", "a -> b", "<script>alert(1)</script>", "</script>", "{}", "[unknown]x", "%s%n%d", "a,b", "a:b",
    "a/b", "# comment", "name\x00"[:4] + "\x7f", "x" * 3000, "_[k]", "f_[k]", "f_[i]", "ends 12", "std::vector<int>&",
]
HARD_COMMS = ["app", "two words", "a 12 b", "x", "[k]", "semi;", "new\nline", "7/7 [000] 1.0:", " lead", "esc\x1b[0m", "\ufffd",
              "#x"]


def owner_of(pid):
    """Whose a process is, as its line says it."""
    hard = [HARD_NAMES[(4 * pid + i) % len(HARD_NAMES)] for i in range(4)]
    return {"unit": hard[0], "container": hard[1], "runtime": hard[2], "pod": hard[3], "cgroup": "/" + hard[0]}


def fill(recording, number):
    """Processes with hard names; of the segment `number` each function has other counts."""
    recording.module(0, 1, "[kernel]", None, KERNEL_START, 0x10000)
    for i, name in enumerate(KERNEL_FUNCTIONS):
        recording.data(SYMBOLS, {"build_id": "", "module": "[kernel]", "start": hex(i * 0x100), "size": 0x100, "name": name})
    path = "/opt/a b/li;b (inode 801:77)"
    for pid, comm in enumerate(HARD_COMMS, 100):
        recording.name(pid, 0, comm)
        recording.name(pid, pid, comm)
        recording.data(PROCESSES, {"pid": pid, "boot_ts_ns": "0", "uid": 7 * pid, **owner_of(pid)})
        recording.module(pid, 1, path, "0badcafe%02x" % number, 0x10000, 0x100000)
    for i, name in enumerate(HARD_NAMES):
        recording.data(SYMBOLS, {"build_id": "0badcafe%02x" % number, "module": path, "start": hex(i * 0x100), "size": 0x100,
                                 "name": name})
    at = lambda function, offset=0x10: 0x10000 + function * 0x100 + offset
    for i in range(len(HARD_NAMES)):
        pid = 100 + i % len(HARD_COMMS)
        for _ in range(1 + (i + number) % 3):
            recording.stack(pid, [at(i), at((i + 7) % len(HARD_NAMES)), at(0)])
        recording.stack(pid, [at(i, 0x20)], quality=2, cpu=1)
    # In the kernel, in the kernel without the kernel's stack, without any stack, at an address without a name, in no module.
    recording.stack(100, [at(1), at(0)], [KERNEL_START + 0x10, KERNEL_START + 0x110, KERNEL_START + 0x210])
    recording.stack(101, [], [KERNEL_START + 0x210])
    recording.stack(102, [], None, quality=0)
    recording.stack(103, [at(len(HARD_NAMES) + 4), at(0)])
    recording.stack(104, [0x5, at(0)], tid=9104)
    recording.stack(2, [], [KERNEL_START + 0x110, KERNEL_START + 0x10])
    recording.stack(105, [at(5)], [KERNEL_START + 0x310])
    # 500 frames, of one function and of all.
    recording.stack(100, [at(3)] * 500)
    recording.stack(100, [at(i % len(HARD_NAMES)) for i in range(500)], quality=3)
    recording.stack(100, [at(2), at(4), at(2), at(4), at(2), at(0)])
    # Of one microsecond: formats that count in these have the same time for them.
    for function in (6, 7):
        recording.time_ns -= 700
        recording.stack(100, [at(function), at(0)])


def exact_name(address):
    """Of a user's function, by the module's address."""
    function = address // 0x100
    if address < 0x10:
        return "[unknown]"
    return HARD_NAMES[function] if function < len(HARD_NAMES) else f"li;b (inode 801:77)+{address:#x}"


def name_of_address(address):
    """As a format shows it that has '?' for control characters."""
    return export_readers.CONTROL.sub("?", exact_name(address))


def finish(recording, number, clock=False):
    """`clock`: the session says what time it was."""
    times = {"created_boot_ns": 1000, "created_realtime_ns": "1769767200000000000"} if clock else {}
    recording.data(SESSION, {"session": "s%d" % number, "config": {"sample_period_ns": PERIOD_NS}, "host": HOST, "kernel": KERNEL,
                             **times})
    total = {"expected": 1000, "received": 900, "idle": 64, "unexplained": 0, "kept": 887, "filtered": 0, **LOST}
    recording.data(BOOKS, {"period_ns": PERIOD_NS, "total": total, "cpus": [{"cpu": 0, **total}],
                           "truncated_stacks": 3})


def make(maker, folder):
    """Returns the paths of the recordings, and of the segments of which each is made."""
    parts = []
    for number in range(2):
        recording = Recording()
        fill(recording, number)
        finish(recording, number)
        parts.append(os.path.join(folder, "part%d.fxt" % number))
        recording.write(maker, parts[-1])
    hard = os.path.join(folder, "hard.fxt")
    with open(hard, "wb") as file:
        for part in parts:
            file.write(open(part, "rb").read())
    recording = Recording()
    finish(recording, 9)
    empty = os.path.join(folder, "empty.fxt")
    recording.write(maker, empty)
    bare = os.path.join(folder, "bare.fxt")
    Recording().write(maker, bare)
    return {hard: parts, empty: [empty], bare: []}


def count(profctl, parts, folder):
    """Samples of each innermost function, by docs/trace-format.md and nothing else."""
    self_counts = collections.Counter()
    for part in parts:
        path = os.path.join(folder, "dump.json")
        with open(path, "wb") as file:
            subprocess.run([profctl, "dump", "--json", part], stdout=file, check=True)
        [told] = dumped.segments_of(path)  # each part is one
        kernel = told.processes[0]
        for record, stack, _ in told.wholes():
            process = told.processes[record["pid"]]
            inside = record.get("kernel_stack")
            if inside:
                name = told.frame(kernel, int(inside[0], 16), len(kernel.mmaps)).name
            elif stack:
                frame = told.frame(process, int(stack[0], 16), len(process.mmaps))
                unnamed = "[unknown]" if frame.path == "[unknown]" else f"{os.path.basename(frame.path)}+{frame.vaddr:#x}"
                name = frame.name if frame.named else unnamed
            else:
                name = "[kernel]" if inside is not None else "[unknown]" if process.mmaps else "[kernel thread]"
            self_counts[name] += 1
    return self_counts


def export(profctl, path, format_name, *options):
    done = subprocess.run([profctl, "export", path, "--format", format_name, *options], capture_output=True, timeout=60)
    if done.returncode != 0 or done.stderr:
        export_readers.complain(f"export --format {format_name}", f"status {done.returncode}: {done.stderr!r}")
    return done.stdout


def compare(what, found, expected, shown):
    """`shown` is what the format makes of a name."""
    wanted = collections.Counter()
    for name, samples in expected.items():
        wanted[shown(name)] += samples
    wanted = {name: samples for name, samples in wanted.items() if samples > 0}
    for name in sorted(set(found) | set(wanted)):
        if found.get(name, 0) != wanted.get(name, 0):
            export_readers.complain(what, f"{name[:80]!r} has {found.get(name, 0)} samples, not {wanted.get(name, 0)}")


def check_formats(profctl, recordings, folder):
    help_text = subprocess.run([profctl, "export", "--help"], capture_output=True, text=True, check=True).stdout
    formats = re.findall(r"^  ([a-z-]+) +\S", help_text.partition("Formats:")[2], re.M)
    if sorted(formats) != sorted(export_readers.READERS):
        export_readers.complain("formats", f"--help has {formats}, and these are read: {sorted(export_readers.READERS)}")
    for path, parts in recordings.items():
        expected = count(profctl, parts, folder)
        export_readers.known.update(name=name_of_address, exact=exact_name, kernel=KERNEL_FUNCTIONS, lost=sum(LOST.values()) * len(parts))
        lost = sum(LOST.values()) * max(1, len(parts)) if not path.endswith("bare.fxt") else 0
        has_period = not path.endswith("bare.fxt")
        for name in formats:
            reader = export_readers.READERS[name]
            what = f"{name} of {os.path.basename(path)}"
            output = export(profctl, path, name)
            period = PERIOD_NS if has_period else 1
            compare(what, reader.read(output, period, folder), expected, reader.shown)
            if name == "perf-data":  # which is another thing as a file
                file = os.path.join(folder, "seekable.perf")
                export(profctl, path, name, "-o", file)
                compare(what + " as a file", reader.read(open(file, "rb").read(), period, folder), expected, reader.shown)
            if reader.has_frames:
                output = export(profctl, path, name, "--lost-frame")
                compare(what + " with --lost-frame", reader.read(output, period, folder), expected + collections.Counter(
                    {"[lost]": lost}), reader.shown)
            if reader.books is not None and parts:
                text = reader.text(output)
                for term, ticks in LOST.items():
                    if not re.search(reader.books % (term, ticks * len(parts)), text):
                        export_readers.complain(what, f"has no {term} of the books")


def check_owners(profctl, path):
    """Each sample of pprof, and each resource of OTLP, is of its process's owner."""
    formats = {"pprof": export_readers.pprof_owners, "otlp": export_readers.otlp_owners}
    for name, read in formats.items():
        seen = set()
        for pid, told in read(export(profctl, path, name)):
            expected = {**owner_of(pid), "uid": 7 * pid} if pid in range(100, 100 + len(HARD_COMMS)) else {}
            if name == "pprof":
                expected = {key: export_readers.escaped(text) if isinstance(text, str) else text
                            for key, text in expected.items() if key != "cgroup"}
            if told != expected:
                export_readers.complain(name, f"process {pid} is of {told}, not {expected}")
            seen.add(pid)
        if len(seen & set(range(100, 100 + len(HARD_COMMS)))) != len(HARD_COMMS):
            export_readers.complain(name, f"has the processes {seen}")


def check_labels(profctl, path):
    """Perfetto shows beside a process the unit and the container, and the user."""
    expected = {}
    for pid in range(100, 100 + len(HARD_COMMS)):
        owner = owner_of(pid)
        expected[pid] = {0: f"{owner['unit']} in {owner['runtime']}:{owner['container']}", 1: f"uid {7 * pid}"}
    found = export_readers.perfetto_labels(export(profctl, path, "perfetto"))
    if found != expected:
        export_readers.complain("perfetto", f"has the labels {found}, not {expected}")


def check_groups(profctl, path, folder):
    """perf shows each sample with the control group of its process, of a file and through a pipe."""
    expected = collections.Counter()
    for pid in range(100, 100 + len(HARD_COMMS)):
        group = export_readers.CONTROL.sub("?", owner_of(pid)["cgroup"]).encode()[:1023].decode()
        expected[group] += selected(profctl, path, "-p", str(pid))
    expected["N/A"] = selected(profctl, path, "-p", "2")
    export(profctl, path, "perf-data", "-o", path + ".perf")
    for file, content in ((path + ".perf", None), ("-", export(profctl, path, "perf-data"))):
        found = export_readers.perf_groups(folder, file, content)
        if found != expected:
            export_readers.complain("perf-data", f"{file} has the control groups {found}, not {expected}")


def check_header(profctl, path, folder):
    """What hotspot wants of a file, and perf shows: a host, and the list of events, which is where it has the event's name from."""
    export(profctl, path, "perf-data", "-o", path + ".perf")
    shown = lambda text: export_readers.CONTROL.sub("?", text)
    for file, content in ((path + ".perf", None), ("-", export(profctl, path, "perf-data"))):
        header = export_readers.perf(folder, "report", "--header-only", "-i", file, content=content)
        for line in (f"# hostname : {shown(HOST)}\n", f"# os release : {shown(KERNEL)}\n", "# arch : x86_64\n", "# event : name = cpu-clock, "):
            if line not in header:
                export_readers.complain("perf-data", f"{file} does not say {line!r}: {header!r}")


def selected(profctl, path, *options):
    """How many samples options select."""
    folded = subprocess.run([profctl, "export", path, "--format", "folded", *options], capture_output=True, check=True)
    return sum(int(line.rpartition(b" ")[2]) for line in folded.stdout.splitlines())


def messages(lines):
    """Messages of a verb with --json, as the lines that they are without."""
    return b"".join(b"profctl: %s\n" % json.loads(line)["message"].encode() for line in lines.splitlines())


def check_selections(profctl, path):
    """Report and export select the same, and parts of the whole add up to it."""
    def total(*options):
        folded = subprocess.run([profctl, "export", path, "--format", "folded", *options], capture_output=True, check=True)
        report = subprocess.run([profctl, "report", path, "--json", *options], capture_output=True, check=True)
        samples = sum(int(line.rpartition(b" ")[2]) for line in folded.stdout.splitlines())
        if json.loads(report.stdout)["samples"] != samples or folded.stderr != messages(report.stderr):
            export_readers.complain(f"{options}", "selects other samples in a report")
        if options and not re.search(rb": %d of \d+ samples are selected" % samples, folded.stderr):
            export_readers.complain(f"{options}", f"says {folded.stderr!r}")
        return samples

    whole = total()
    parts = [total("-p", str(100 + i)) for i in range(len(HARD_COMMS))] + [total("--pid", "2,999")]
    if sum(parts) != whole or 0 in parts:
        export_readers.complain("-p", f"selects {parts} of {whole}")
    if total("-p", "100", "-p", "101,102") != sum(parts[:3]) or total("-t", "9104") != 2:
        export_readers.complain("-t", "selects other samples")
    if total("--comm", HARD_COMMS[1]) != parts[1] or total("--comm", "*") != whole:
        export_readers.complain("--comm", "selects other samples")
    early, late = total("--to", "20us"), total("--from", "20us")
    if early + late != whole or 0 in (early, late) or total("--from", "20us", "--to", "1h") != late:
        export_readers.complain("--from", f"selects {early} and {late} of {whole}")
    for options in (["--from", "10:00"], ["--from", "x"], ["--from", "2", "--to", "1"], ["-p", "x"],
                    ["-p", "100", "--lost-frame"]):
        done = subprocess.run([profctl, "export", path, "--format", "folded", *options], capture_output=True)
        if done.returncode == 0 or done.stdout:
            export_readers.complain(f"{options}", "are taken")


def check_inlined(profctl, maker, folder):
    """The program's debugging information says that innermost() is inlined where the sample is."""
    program = os.path.join(folder, "inlined")
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    start, size = re.search(r"^(\w+) (\w+) T outermost$", symbols, re.M).groups()
    main = re.search(r"^(\w+) (\w+) T main$", symbols, re.M).group(1)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    recording = Recording()
    build_id = re.search(r"Build ID: (\w+)", notes).group(1)
    recording.name(7, 0, "inlined")
    recording.module(7, 1, program, build_id, 0x100000, 0x10000)
    for name, at, bytes_of in (("outermost", int(start, 16), int(size, 16)), ("main", int(main, 16), 16)):
        recording.data(SYMBOLS, {"build_id": build_id, "module": program, "start": hex(at), "size": bytes_of, "name": name})
    finish(recording, 0, clock=True)
    recording.stack(7, [0x100000 + int(start, 16), 0x100000 + int(main, 16) + 5])
    recording.stack(7, [0x100000 + int(start, 16) + int(size, 16) - 1, 0x100000 + int(main, 16) + 5])
    recording.time_ns = 500  # the last sample of the file is the first
    recording.stack(7, [0x100000 + int(start, 16), 0x100000 + int(main, 16) + 5])
    path = os.path.join(folder, "inlined.fxt")
    recording.write(maker, path)
    for option in ("--inline", "--lines"):
        expected = collections.Counter(innermost=2, outermost=1)
        for name, reader in export_readers.READERS.items():
            if not reader.has_frames:
                continue
            output = export(profctl, path, name, option)
            compare(f"{name} {option}", reader.read(output, PERIOD_NS, folder), expected, reader.shown)


def check_perf_names(profctl, maker, folder):
    """perf finds functions in files whose addresses are not their offsets, and in none that is another build."""
    for program, base in (("inlined", 0x555500000000), ("inlined_lld", 0x555500000000), ("inlined_fixed", 0)):
        path = os.path.join(folder, program)
        headers = subprocess.run(["readelf", "-lWn", path], capture_output=True, text=True, check=True).stdout
        vaddr, size = re.search(r"^ +LOAD +\S+ (\S+) \S+ \S+ (\S+) R E", headers, re.M).groups()
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        outermost = int(re.search(r"^(\w+) T outermost$", symbols, re.M)[1], 16)
        build_id = re.search(r"Build ID: (\w+)", headers)[1]
        page = int(vaddr, 16) & ~0xFFF
        recording = Recording()
        recording.name(7, 0, program)
        recording.module(7, 1, path, build_id, base + page, int(size, 16) + int(vaddr, 16) - page, page)
        finish(recording, 0)
        recording.stack(7, [base + outermost])
        recording.write(maker, path + ".fxt")
        export(profctl, path + ".fxt", "perf-data", "-o", path + ".perf")
        piped = export(profctl, path + ".fxt", "perf-data")
        for file, content in ((path + ".perf", None), ("-", piped)):
            text = export_readers.perf(folder, "script", "-i", file, "-F", "ip,sym,dso", content=content)
            if not re.search(rf"^\s+[0-9a-f]+ outermost \({re.escape(path)}\)$", text, re.M):
                export_readers.complain("perf-data", f"{program}: perf sees {text!r}")
            listed = export_readers.perf(folder, "buildid-list", "-i", file, content=content)
            if listed.split() != [build_id, path]:
                export_readers.complain("perf-data", f"{program}: perf lists {listed!r}")


def check_kernel_object(profctl, path, folder):
    """perf shows the kernel as one object, whose functions have the recording's names, and asks no running kernel for others."""
    names = [export_readers.CONTROL.sub("?", name) for name in KERNEL_FUNCTIONS]
    export(profctl, path, "perf-data", "-o", path + ".perf")
    for file, content in ((path + ".perf", None), ("-", export(profctl, path, "perf-data"))):
        shown = export_readers.perf_objects(folder, file, content)
        others = [name for name in shown if name in names]
        if others or shown["[kernel.kallsyms]"] != selected(profctl, path, "--module", "[kernel]"):
            export_readers.complain("perf-data", f"perf has the objects {shown}: {others} are functions of the kernel")
        text = export_readers.perf(folder, "script", "-i", file, "-F", "ip,sym,dso", content=content)
        frames = re.findall(r"^\s+(ffffffff[0-9a-f]+) (.*) \((\S+)\)$", text, re.M)
        wrong = [frame for frame in frames if frame[1:] != (names[int(frame[0], 16) >> 8 & 0xff], "[kernel.kallsyms]")]
        if not frames or wrong:
            export_readers.complain("perf-data", f"of {len(frames)} frames of the kernel perf has others: {wrong[:4]}")


def check_markup_names(profctl, folder):
    """LLVM's filter finds functions, lines and inlined functions by the build-id."""
    path = os.path.join(folder, "inlined")
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    debug = os.path.join(folder, "debug", ".build-id", build_id[:2])
    os.makedirs(debug)
    shutil.copy(path, os.path.join(debug, build_id[2:] + ".debug"))
    shown = export_readers.filter_markup(export(profctl, path + ".fxt", "markup"),
                                         "--debug-file-directory=" + os.path.join(folder, "debug"))
    found = re.findall(r"^ +#0(?:\.\d)? +0x[0-9a-f]+ (\w+) \S+inlined\.c:\d+:\d+ \(", shown, re.M)
    if found != ["innermost", "middle", "outermost"] and found != ["outermost"]:
        export_readers.complain("markup", f"LLVM sees {shown!r}")


def check_kernel_without_names(profctl, maker, folder):
    """One frame stands for several addresses of such a kernel; the others keep their own."""
    recording = Recording()
    recording.module(0, 1, "[kernel]", None, KERNEL_START, 0x10000)
    recording.module(0, 2, "driver", None, KERNEL_START + 0x20000, 0x1000)
    recording.module(7, 1, "/bin/app", "ab", 0x10000, 0x1000)
    recording.name(7, 0, "app")
    for build_id, module, name in (("", "driver", "ioctl"), ("ab", "/bin/app", "main")):
        recording.data(SYMBOLS, {"build_id": build_id, "module": module, "start": "0x0", "size": 0x1000, "name": name})
    finish(recording, 0)
    inside = [KERNEL_START + at for at in (0x10, 0x20, 0x20100, 0x20200, 0x30, 0x40, 0x50)]
    recording.stack(7, [0x10010, 0x10020], inside)
    path = os.path.join(folder, "nameless.fxt")
    recording.write(maker, path)
    found = re.findall(r"^\s+([0-9a-f]+) (\S+) \(", export(profctl, path, "perf-script").decode(), re.M)
    expected = [(inside[0], "[kernel]"), (inside[2], "ioctl"), (inside[3], "ioctl"), (inside[4], "[kernel]"),
                (0x10010, "main"), (0x10020, "main")]
    if [(int(address, 16), name) for address, name in found] != expected:
        export_readers.complain("perf-script", f"of a kernel without names it has {found}")


def check_tasks_without_numbers(profctl, maker, folder):
    """perf's own names for their numbers are others."""
    recording = Recording()
    finish(recording, 0)
    for pid in (0, 2**64 - 1):
        recording.stack(pid, [0x10])
    path = os.path.join(folder, "outside.fxt")
    recording.write(maker, path)
    with open(path + ".perf", "wb") as file:
        file.write(export(profctl, path, "perf-data"))
    comms = export_readers.perf(folder, "script", "-i", path + ".perf", "-F", "comm,pid").split()
    if "[outside]" not in comms or "[exited]" not in comms or "swapper" in comms:
        export_readers.complain("perf-data", f"has the tasks {comms}")


def check_clocks(profctl, maker, folder):
    """Segments of two machines, of which each has a clock: every time of the day is that of the sample's own machine."""
    began = 1769767200 * 10**9
    sessions = {"late": (10**15, began + 86400 * 10**9), "early": (10**9, began)}  # since boot, of the day
    path = os.path.join(folder, "machines.fxt")
    expected = []
    with open(path, "wb") as file:
        for name, (boot_ns, wall_ns) in sessions.items():
            recording = Recording()
            recording.data(SESSION, {"session": name, "host": name, "created_boot_ns": str(boot_ns),
                                     "created_realtime_ns": str(wall_ns), "config": {"sample_period_ns": PERIOD_NS}})
            recording.name(7, 0, "app")
            recording.module(7, 1, "/bin/app", "ab", 0x10000, 0x1000)
            for offset_ns in (5000, 2000, 9000):  # as samples of several CPUs are in a file
                recording.time_ns = boot_ns + offset_ns - 1000
                recording.stack(7, [0x10010])
                expected.append(wall_ns + offset_ns)
            recording.write(maker, path + ".part")
            file.write(open(path + ".part", "rb").read())
    expected.sort()

    def check(what, times, wanted=tuple(expected)):
        if list(times) != list(wanted):
            export_readers.complain(what, f"has the times {list(times)}, not {list(wanted)}")

    of_samples = export_readers.otlp_times(export(profctl, path, "otlp"))
    check("otlp", sorted(sum(of_samples, [])))
    if any(times != sorted(times) for times in of_samples):
        export_readers.complain("otlp", f"has times in another order: {of_samples}")
    told = json.loads(export(profctl, path, "firefox"))
    first_ns = round(told["meta"]["startTime"] * 1e6)
    check("firefox", [first_ns // 1000], [expected[0] // 1000])  # a double of milliseconds
    since = sorted(round(at * 1e6) for thread in told["threads"] for at in itertools.accumulate(thread["samples"]["timeDeltas"]))
    check("firefox", [at - since[0] for at in since], [at - expected[0] for at in expected])
    rows = [json.loads(line) for line in export(profctl, path, "ndjson").splitlines()]
    samples = [row for row in rows if row["table"] == "sample"]
    check("ndjson", sorted(row["time_unix_ns"] for row in samples))
    if [row["host"] for row in samples] != ["late"] * 3 + ["early"] * 3:
        export_readers.complain("ndjson", f"has the hosts {[row['host'] for row in samples]}")
    check("pprof", [export_readers.pprof_time(export(profctl, path, "pprof"))], expected[:1])
    script = re.findall(r" (\d+)\.(\d{9}): ", export(profctl, path, "perf-script").decode())
    times = sorted(int(seconds) * 10**9 + int(rest) for seconds, rest in script)
    check("perf-script", [at - times[0] for at in times], [at - expected[0] for at in expected])
    for option, time in (("--to", "2026-01-31 09:59"), ("--from", "2026-01-31 09:59")):
        done = subprocess.run([profctl, "export", path, "--format", "folded", option, time], capture_output=True,
                              env={**os.environ, "TZ": "UTC"}, check=True)
        if done.stdout.split()[-1:] != [b"3"]:
            export_readers.complain(option, f"selects {done.stdout!r} of one machine")


def check_damaged(profctl, path, folder):
    """A format with the books says of a recording that is not whole how it ends."""
    whole = open(path, "rb").read()
    for rest, said in ((whole[8:16], b"# the recording is cut off\n"), (b"\xff" * 64, b"# the recording is damaged\n")):
        broken = os.path.join(folder, "broken.fxt")
        with open(broken, "wb") as file:
            file.write(whole + rest)
        done = subprocess.run([profctl, "export", broken, "--format", "perf-script"], capture_output=True)
        if said not in done.stdout:
            export_readers.complain("perf-script", f"does not say {said!r}: {done.stderr!r}")


def check_old(profctl, folder):
    """No export takes the place of a recording, compressed or not; it replaces another file."""
    hard, path = (os.path.join(folder, name) for name in ("hard.fxt", "replaced.html"))
    shutil.copy(hard, path)
    with open(hard, "rb") as plain, gzip.open(path + ".gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    for verb in (["export", "--format", "folded"], ["flamegraph"]):
        for name in (path, path + ".gz"):
            shutil.copy(name, name + ".copy")
            done = subprocess.run([profctl, *verb, hard, "-o", name], capture_output=True, text=True)
            expected = f"profctl: {name} is a recording, and nothing that is made of one takes its place; name another file with -o, or remove it\n"
            if done.returncode != 1 or done.stderr != expected or not filecmp.cmp(name, name + ".copy", shallow=False):
                export_readers.complain(" ".join(verb), f"over a recording: status {done.returncode}, {done.stderr!r}")
        other = os.path.join(folder, "other.html")
        with open(other, "w") as file:
            file.write("other")
        done = subprocess.run([profctl, *verb, hard, "-o", other], capture_output=True, text=True)
        if done.returncode != 0 or done.stderr != "" or os.path.exists(other + ".old") or open(other).read() == "other":
            export_readers.complain(" ".join(verb), f"over another file: status {done.returncode}, {done.stderr!r}")


def check_events(profctl, maker, folder):
    """Waits, which are times, and faults that stand for different amounts: event_formats.py has the rest."""
    recording = Recording()
    recording.data(SESSION, {"session": "e", "created_boot_ns": 1000, "created_realtime_ns": "1769767200000000000", "events": [
        {"event": "cpu-clock", "unit": "ns", "period": PERIOD_NS, "asked": False}, {"event": "off-cpu", "unit": "ns", "period": 1, "asked": True},
        {"event": "page-faults", "unit": "faults", "period": 10, "asked": True}]})
    for pid in (7, 8):
        recording.name(pid, 0, "app")
        recording.module(pid, 1, "/bin/app", "0badcafe", 0x10000, 0x1000)
    recording.data(SYMBOLS, *({"build_id": "0badcafe", "module": "/bin/app", "start": hex(0x100 * i), "size": 256, "name": f"f{i}"}
                              for i in range(4)))
    at = lambda function: 0x10008 + 0x100 * function
    for i in range(200):
        recording.time_ns = 10**12 + i * 10**8
        recording.stack(7, [at(0), at(3)])
        recording.event(7 + i % 2, 1, 10**7 + 12345 * i, [at(i % 3), at(3)], tid=7 + i % 4)
        recording.event(7, 2, 1 + i % 5, [at(1 + i % 2), at(3)], cpu=i % 2)
    path = os.path.join(folder, "events.fxt")
    recording.write(maker, path)
    for event in ("off-cpu", "page-faults"):
        done = subprocess.run([sys.executable, os.path.join(HERE, "event_formats.py"), profctl, path, event, folder])
        if done.returncode != 0:
            export_readers.complain(event, "differs between formats")
    recording.data("cpu-profilerd.threads", {"pid": 7, "tid": 7, "boot_ts_ns": "1000", "wall_ns": 10**12, "blocked_ns": 560490500, "voluntary": 50})
    recording.write(maker, path)
    for books, expected in ((None, True), ({"not_sampled": 0}, False), ({"not_sampled": 7}, True)):
        if books is not None:
            recording.data(BOOKS, {"period_ns": PERIOD_NS, "total": {"kept": 200}, "events": [{"event": "off-cpu", "total": books}]})
            recording.write(maker, path)
        for event in ("off-cpu", "page-faults"):
            done = subprocess.run([profctl, "export", path, "--event", event, "--format", "chrome"], capture_output=True, check=True)
            said = {(slice["tid"], slice["args"].get("length")) for slice in json.loads(done.stdout)["traceEvents"] if slice["ph"] == "X"}
            marked = {tid for tid, length in said if length == "with others that it stands for"}
            # Of thread 7 each wait has a sample.
            if marked != ({8, 9, 10} if expected and event == "off-cpu" else set()) or len(said) != len(dict(said)):
                export_readers.complain("chrome", f"says {said} of the length of {event} by {books}")
    done = subprocess.run([profctl, "export", path, "--event", "off-cpu", "--format", "folded", "--lost-frame"], capture_output=True)
    if done.returncode != 2 or b"leave --event out" not in done.stderr:
        export_readers.complain("--lost-frame", f"is taken of an event: {done}")


def main():
    profctl, maker, folder = sys.argv[1:]
    recordings = make(maker, folder)
    check_formats(profctl, recordings, folder)
    check_owners(profctl, os.path.join(folder, "hard.fxt"))
    check_labels(profctl, os.path.join(folder, "hard.fxt"))
    check_groups(profctl, os.path.join(folder, "hard.fxt"), folder)
    check_header(profctl, os.path.join(folder, "hard.fxt"), folder)
    check_selections(profctl, os.path.join(folder, "hard.fxt"))
    check_inlined(profctl, maker, folder)
    check_perf_names(profctl, maker, folder)
    check_kernel_object(profctl, os.path.join(folder, "hard.fxt"), folder)
    check_markup_names(profctl, folder)
    check_kernel_without_names(profctl, maker, folder)
    check_tasks_without_numbers(profctl, maker, folder)
    check_clocks(profctl, maker, folder)
    check_damaged(profctl, os.path.join(folder, "empty.fxt"), folder)
    check_old(profctl, folder)
    check_events(profctl, maker, folder)
    sys.exit(export_readers.failures > 0)


main()
