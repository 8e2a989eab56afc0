# SPDX-License-Identifier: Apache-2.0
"""What packets.sh says: packets.py made PROFCTL MAKER PROBE FOLDER, or packets.py recorded PROFCTL FILE."""
import collections, json, os, re, subprocess, sys
from export_readers import escaped, without_offset
from packet_decoder import Decoder, complain, complaints
from recording_maker import Recording, SESSION, SYMBOLS, BOOKS, PROCESSES

EVENT = re.compile(r"(.*?) +(\d+)/(\d+) \[(\d+)\] (\d+)\.(\d{9}): \d+ cpu-clock:")
NEARLY_ALL = 0.95
END = 2**63
HERE = os.path.dirname(os.path.abspath(__file__))


def plain(names):
    """Of a function without a name a reader of files here may find the beginning; the recording has no more than an address."""
    return tuple(re.sub(r"\+0x[0-9a-f]+$", "+?", name) for name in names)


def exported(profctl, path):
    """The same of `profctl export --format perf-script`: names are escaped there."""
    text = subprocess.run([profctl, "export", path, "--format", "perf-script"], capture_output=True, check=True).stdout.decode()
    for event in re.split(r"\n\n", text):
        head, *frames = [line for line in event.split("\n") if not line.startswith("#")]
        match = EVENT.fullmatch(head)
        if match:
            names = plain(without_offset(re.fullmatch(r"\s+[0-9a-f]+ (.*) \(.*\)", frame)[1]) for frame in reversed(frames))
            yield int(match[5]) * 10**9 + int(match[6]), int(match[3]), int(match[4]), names


def shown(decoder):
    """As perf-script has it: a task without a number is 0."""
    return [(time, max(tid, 0), cpu, plain(map(escaped, names))) for time, tid, cpu, names in decoder.stacks()]


def check_protoc(decoder):
    done = subprocess.run(["protoc", "--decode=test.Trace", f"--proto_path={HERE}", "export_trace.proto"], input=decoder.trace,
                          capture_output=True)
    unknown = re.findall(rb"^ *\d+[:{ ].*$", done.stdout, re.M)
    if done.returncode != 0 or unknown or done.stdout.count(b" perf_sample {") != len(decoder.samples):
        complain(f"protoc: {done.stderr[:300]!r}, {unknown[:3]}")


def check(profctl, path, least):
    """A recording's packets tell what its own records do, of so large a part of the stacks."""
    decoder = Decoder(open(path, "rb").read())
    bare = path + ".bare"
    with open(bare, "wb") as file:
        file.write(b"".join(decoder.native))
    expected = collections.Counter(exported(profctl, bare))
    found = collections.Counter(shown(decoder))
    if expected != collections.Counter(exported(profctl, path)):
        complain(f"{path}: readers of the recording read the packets too")
    same = sum((expected & found).values())
    without_names = lambda rows: collections.Counter({row[:3]: 0 for row in rows}) + collections.Counter(
        key for row, count in rows.items() for key in [row[:3]] * count)
    if without_names(expected) != without_names(found):
        complain(f"{path}: other samples: {sum(found.values())}, not {sum(expected.values())}")
    if same < least * sum(expected.values()):
        complain(f"{path}: of {sum(expected.values())} stacks {same} are the same; {str(list(expected - found)[:1])[:1000]} is "
                 f"{str(list(found - expected)[:1])[:1000]}")
    check_protoc(decoder)
    return decoder


def app(recording, number):
    """Names and mappings of one process; the functions of its file have no names yet."""
    recording.name(7, 0, "app%d" % number)
    recording.name(7, 7, "main%d" % number)
    recording.module(7, 1, "/bin/app", "0badcafe%02x" % number, 0x10000, 0x1000)
    recording.module(7, 2, "[jit] (pid 7)", None, 0x90000, 0x1000, 0x90000)
    for start in range(0, 0x100, 0x10):
        recording.data(SYMBOLS, {"build_id": "", "module": "[jit] (pid 7)", "start": hex(0x90000 + start), "size": 16,
                                 "name": "made%x_%d" % (start, number)})


def functions(recording, number):
    for start in range(0, 0x100, 0x10):
        recording.data(SYMBOLS, {"build_id": "0badcafe%02x" % number, "module": "/bin/app", "start": hex(start), "size": 16,
                                 "name": "f%x_%d" % (start, number)})


# Whose process 7 is from a time on, as a line says it, and as labels do.
CONTAINER = {"container": "0123", "runtime": "docker"}
OWNERS = [(0, {"unit": "a.service", "uid": 7}, ("a.service", "uid 7")),
          (5000, {"unit": "b;\n.service", "uid": 7, **CONTAINER}, ("b;\n.service in docker:0123", "uid 7")),
          (9000, {}, ("[unknown]", "[unknown]")),
          (15000, {"cgroup": "/c", "uid": 8}, ("/c", "uid 8"))]


def make_segments(number, late, clock):
    """Samples alone, in groups, and of which the stack comes later; names before them, or behind all."""
    recording = Recording()
    recording.data(SESSION, {"session": "s", "config": {"sample_period_ns": 250000}, "created_boot_ns": 1000,
                             "created_realtime_ns": str(clock)})
    for since, owner, _ in OWNERS:
        recording.data(PROCESSES, {"pid": 7, "boot_ts_ns": str(since), **owner})
    app(recording, number)
    if not late:
        functions(recording, number)
    for i in range(20):
        recording.stack(7, [0x10000 + i * 8, 0x90000 + i, 0x10041], tid=7 + i % 2)
    recording.partial(7, 1, [])
    recording.partial(7, 1, [])
    recording.completion(1, [0x10005, 0x10021])
    recording.partial(7, 2, [0x10033])
    recording.stack(7, [0x10000])
    recording.partial(7, 3, [0x10044])  # whose stack never comes
    recording.completion(2, [0x10055])
    recording.stack(2**64 - 1, [0x5])
    recording.stack(0, [])
    if late:
        functions(recording, number)
    recording.data(BOOKS, {"period_ns": 250000, "total": {"lost": 5 + number, "missed": 7, "unexplained": -3}, "stitched_stacks": 2})
    return recording


def check_labels(decoder, what):
    """Each sample comes at a time at which its process has the labels of its owner."""
    for sample in decoder.samples:
        expected = [labels for since, _, labels in OWNERS if since <= sample.time][-1] if sample.pid == 7 else ()
        if decoder.labels_at(sample.pid, sample.time) != expected:
            complain(f"{what}: at {sample.time} process {sample.pid} is of {decoder.labels_at(sample.pid, sample.time)}, not {expected}")
    if len(decoder.labels[7]) != 2 * len(OWNERS):
        complain(f"{what}: the labels are {decoder.labels}")


def check_made(profctl, maker, probe, folder):
    clock = 1769767200000000000
    path = os.path.join(folder, "made.fxt")
    whole = b""
    for number, late in enumerate((False, True)):
        make_segments(number, late, clock).write(maker, path)
        whole += open(path, "rb").read()
    with open(path, "wb") as file:
        file.write(whole)
    for batch in (1, 2, 7, 10**9):
        passed = os.path.join(folder, "passed%d.fxt" % batch)
        with open(passed, "wb") as file:
            subprocess.run([probe, path, str(batch)], stdout=file, check=True)
        decoder = check(profctl, passed, 1)
        if b"".join(decoder.native) != whole:
            complain(f"batches of {batch} records: the recording's own records are others")
        if decoder.offsets != {clock - 1000}:
            complain(f"batches of {batch} records: {decoder.offsets}")
        if decoder.names[("process", 7)] != ["app0", "app1"] or decoder.names[("thread", 7)] != ["main0", "main1"]:
            complain(f"batches of {batch} records: {decoder.names}")
        check_labels(decoder, f"batches of {batch} records")
        if (decoder.late_count > 0) != (batch < 20):
            complain(f"batches of {batch} records: {decoder.late_count} names are late")
        # One track each of both segments, since they are of one session.
        values = {name: [value for _, value in rows] for name, rows in decoder.counters.items()}
        if values != {"ticks lost": [0, 5, 0, 6], "ticks missed": [0, 7, 0, 7], "ticks unexplained": [0, -3, 0, -3],
                      "stitched_stacks": [0, 2, 0, 2]} or len(decoder.tracks) != 4:
            complain(f"batches of {batch} records: the counters are {values}")


def check_recorded(profctl, path):
    decoder = check(profctl, path, NEARLY_ALL)
    report = json.loads(subprocess.run([profctl, "report", "--json", path], capture_output=True, check=True).stdout)
    if report["samples"] != len(decoder.samples) or not decoder.samples:
        complain(f"{path}: {len(decoder.samples)} samples, and a report has {report['samples']}")
    units = json.loads(subprocess.run([profctl, "report", "--by", "unit", "--json", path], capture_output=True, check=True).stdout)
    expected = collections.Counter({row["name"]: row["self"] for row in units["rows"]})
    found = collections.Counter("".join(decoder.labels_at(sample.pid, END)[:1]) for sample in decoder.samples)
    if sum((expected & found).values()) < NEARLY_ALL * report["samples"]:
        complain(f"{path}: labels are {found}, and a report has {expected}")
    if report["books"] is not None:
        for term, ticks in report["books"]["total"].items():
            values = decoder.counters.get("ticks " + term, [(0, ticks)])
            if ticks is not None and values[-1][1] != ticks:
                complain(f"{path}: {term} is {values}, not {ticks}")
        if "ticks lost" not in decoder.counters:
            complain(f"{path}: the losses are no counters")
    if len(decoder.offsets) != 1:
        complain(f"{path}: the clocks are {decoder.offsets}")


if sys.argv[1] == "made":
    check_made(*sys.argv[2:])
else:
    for recorded in sys.argv[3:]:
        check_recorded(sys.argv[2], recorded)
sys.exit(len(complaints) > 0)
