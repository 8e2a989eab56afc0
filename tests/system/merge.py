# SPDX-License-Identifier: Apache-2.0
"""What merge.sh says of recordings that are made: merge.py PROFCTL MAKER FOLDER."""
import collections, gzip, json, os, resource, signal, subprocess, sys, tarfile, zlib
from recording_maker import Recording, SESSION, SYMBOLS, BOOKS
import export_readers, otlp_store

PROFCTL, MAKER, FOLDER = sys.argv[1:]
BEGAN = 1769767200 * 10**9
PERIOD_NS = 1000000
SAMPLES = 200
# Since boot, and how far the wall clock is moved while it records.
HOSTS = {"early": (10**9, 2000000), "late": (10**15, -500000), "odd name\x1b/../": (7 * 10**12, 0)}
failures = 0


def expect(what, found, wanted):
    global failures
    if found != wanted:
        failures += 1
        print(f"FAIL: {what}: has {found!r}, not {wanted!r}")


def path_of(name):
    return os.path.join(FOLDER, name)


def make(number, host, boot_ns, moved_ns):
    recording = recording_of(number, host, boot_ns, moved_ns)
    recording.write(MAKER, path_of(f"h{number}.fxt"))
    with open(path_of(f"h{number}.fxt"), "rb") as plain, gzip.open(path_of(f"h{number}.fxt.gz"), "wb") as packed:
        packed.write(plain.read())
    return path_of(f"h{number}.fxt") + (".gz" if number == 1 else "")


def recording_of(number, host, boot_ns, moved_ns):
    """A host whose samples are 1 ms apart, and a third of that later than those of the host before."""
    recording = Recording()
    recording.data(SESSION, {"session": f"s{number}", "host": host, "created_boot_ns": str(boot_ns), "created_realtime_ns": str(BEGAN),
                             "config": {"sample_period_ns": PERIOD_NS}})
    recording.name(7, 0, "app")
    recording.module(7, 1, "/bin/app", "ab%02d" % number, 0x10000, 0x1000)
    recording.data(SYMBOLS, {"build_id": "ab%02d" % number, "module": "/bin/app", "start": "0x0", "size": 0x1000, "name": f"main{number}"})
    for i in range(SAMPLES):
        recording.time_ns = boot_ns + i * 10**6 + number * 333333 - 1000
        recording.stack(7, [0x10010])
    end_ns = boot_ns + SAMPLES * 10**6
    recording.data(BOOKS, {"period_ns": PERIOD_NS, "at_boot_ns": str(end_ns), "at_realtime_ns": str(BEGAN + SAMPLES * 10**6 + moved_ns),
                           "total": {"expected": SAMPLES, "kept": SAMPLES}})
    return recording


def merge(*arguments, status=0, **how):
    done = subprocess.run([PROFCTL, "merge", *arguments], capture_output=True, **how)
    expect(f"merge {arguments}: status", (done.returncode, done.stderr.decode() if status == 0 and done.returncode else ""), (status, ""))
    return done


paths = [make(number, host, *clock) for number, (host, clock) in enumerate(HOSTS.items())]
expected = [(BEGAN + i * 10**6 + number * 333333, host) for i in range(SAMPLES) for number, host in enumerate(HOSTS)]

done = merge(*paths, "-o", path_of("all.fxt"), "--json")
told = json.loads(done.stdout)
expect("how far they are apart", told["apart_ns"], 2500000)
expect("moved", [r["moved_ns"] for r in told["recordings"]], [2000000, 500000, 0])
said = merge(*paths, "-o", path_of("all.fxt.gz")).stdout.decode()
if "apart by up to 2.500 ms" not in said or "\x1b" in said or "wall clock moved: 0.500 ms, late\n" not in said:
    expect("what it says", said, "apart by up to 2.500 ms, without control characters")

exported = lambda name: subprocess.run([PROFCTL, "export", path_of(name), "--format", "ndjson"], capture_output=True, check=True).stdout
for content in (exported("all.fxt"), exported("all.fxt.gz"), merge(*paths, "-o", "-", "--format", "ndjson").stdout,
                merge(*paths[::-1], "-o", "-", "--format", "ndjson").stdout):
    rows = [json.loads(line) for line in content.splitlines()]
    samples = [row for row in rows if row["table"] == "sample"]
    expect("times and hosts", sorted((row["time_unix_ns"], row["host"]) for row in samples), sorted(expected))
    names = {row["frame"]: row["name"] for row in rows if row["table"] == "frame"}
    leaves = {row["stack"]: names[row["frames"][0]] for row in rows if row["table"] == "stack"}
    expect("functions", {(row["host"], leaves[row["stack"]]) for row in samples}, {(host, f"main{i}") for i, host in enumerate(HOSTS)})

merge(*paths, "-o", path_of("all.pb.gz"))
pprof = export_readers.protoc(gzip.decompress(open(path_of("all.pb.gz"), "rb").read()), "test.Profile", "export_profile.proto")
strings = pprof["string_table"]
hosts = collections.Counter()
for sample in pprof["sample"]:
    labels = {strings[export_readers.number(label, "key")]: strings[export_readers.number(label, "str")] for label in sample["label"]}
    hosts[labels["host"]] += int(sample["value"][0])
expect("hosts in pprof", sorted(hosts.values()), [SAMPLES] * 3)
found = []
for of_host in otlp_store.fields(merge(*paths, "-o", "-", "--format", "otlp").stdout)[1]:
    for attribute in map(otlp_store.fields, otlp_store.fields(otlp_store.first(otlp_store.fields(of_host), 1, b""))[1]):
        if attribute[1][0] == b"host.name":
            found.append(otlp_store.any_value(attribute[2][0]))
expect("hosts in OTLP", sorted(found), sorted(HOSTS))
single = subprocess.run([PROFCTL, "export", paths[0], "--format", "pprof"], capture_output=True, check=True).stdout
expect("labels of one host", b"\x04host" in gzip.decompress(single), False)

merge(*paths, "-o", path_of("all.tar"))
with tarfile.open(path_of("all.tar")) as archive:
    members = archive.getnames()
    manifest = json.load(archive.extractfile(members[0]))
    expect("the first member", members[0], "perfetto_manifest.json")
    expect("the manifest", manifest, {"perfetto_manifest": {"version": 1, "files": [
        {"path": name, "machine": {"name": host}} for name, host in zip(members[1:], HOSTS)]}})
    for name, path in zip(members[1:], paths):
        expect(name, archive.extractfile(name).read() == open(path, "rb").read(), True)
        expect(f"{name}: leads nowhere", "/" in name or name.startswith("."), False)
listed = subprocess.run(["tar", "tf", path_of("all.tar")], capture_output=True, text=True)
expect("tar", (listed.returncode, listed.stdout.split()), (0, members))

# An export has the clock's samples, and the events that it leaves out are named.
recording = Recording()
recording.data(SESSION, {"session": "waits", "host": "early", "created_boot_ns": "0", "created_realtime_ns": str(BEGAN),
                         "events": [{"event": "cpu-clock"}, {"event": "off-cpu", "unit": "ns"}, {"event": "page-faults"}]})
recording.event(7, 1, 500, [0x10010])
recording.write(MAKER, path_of("waits.fxt"))
for format in "pprof", "otlp", "ndjson":
    done = merge(path_of("waits.fxt"), paths[1], "-o", path_of("waits.out"), "--format", format)
    expect(f"{format}: events that are left out", b"for those of off-cpu, page-faults merge to a .fxt file" in done.stderr, True)
expect("all events", merge(path_of("waits.fxt"), paths[1], "-o", path_of("waits_all.fxt")).stderr, b"")
kept = subprocess.run([PROFCTL, "export", path_of("waits_all.fxt"), "--format", "folded", "--event", "off-cpu"], capture_output=True, check=True)
expect("the event in a recording", kept.stdout.split()[-1:], [b"500"])
expect("one event", merge(*paths, "-o", path_of("one.pb.gz")).stderr, b"")

# Of a recording that is cut off what is whole; others are refused by name.
content = open(paths[0], "rb").read()
with open(path_of("cut.fxt"), "wb") as file:
    file.write(content[:len(content) // 2 // 8 * 8 + 4])
done = merge(path_of("cut.fxt"), paths[1], "-o", path_of("cut_all.fxt"), status=1)
expect("a recording that is cut off", b"cut.fxt is not whole" in done.stderr, True)
expect("how far it is apart", b"how far hosts are apart by their own clocks is not known" in done.stdout, True)
expect("the same in JSON", json.loads(merge(path_of("cut.fxt"), paths[1], "-o", path_of("cut_told.fxt"), "--json", status=1).stdout)["apart_ns"], None)
samples = [json.loads(line) for line in exported("cut_all.fxt").splitlines()]
expect("behind the cut", sum(row["table"] == "sample" and row["host"] == "late" for row in samples), SAMPLES)
# Of gzip data that is damaged in the middle, behind a place where its decompressor has handed out nothing yet.
packing = zlib.compressobj(wbits=31)
with open(path_of("torn.fxt.gz"), "wb") as file:
    file.write(packing.compress(content[:len(content) // 2]) + packing.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 16)
done = merge(path_of("torn.fxt.gz"), paths[1], "-o", path_of("torn_all.fxt"), status=1)
expect(f"gzip data that is damaged: {done.stderr}", b"torn.fxt.gz is not whole; it has the samples before byte" in done.stderr, True)
hosts = collections.Counter(row["host"] for row in map(json.loads, exported("torn_all.fxt").splitlines()) if row["table"] == "sample")
expect("before and behind the damage", (0 < hosts["early"] < SAMPLES, hosts["late"]), (True, SAMPLES))
recording = Recording()
recording.sample(1, 0x10)
recording.write(MAKER, path_of("timeless.fxt"))
with open(path_of("text.fxt"), "w") as file:
    file.write("text")

# What is given twice would count twice: a file by another name, a copy, and what is in a recording that was merged already.
os.symlink(paths[0], path_of("link.fxt"))
twice = [([paths[0], path_of("link.fxt")], 2, "h0.fxt and {}/link.fxt are the same file"),
         ([paths[1], paths[0], path_of("h1.fxt")], 1, "h1.fxt.gz and {}/h1.fxt have the same samples of a session"),
         ([path_of("h0.fxt"), path_of("cut.fxt")], 1, "h0.fxt and {}/cut.fxt have the same samples of a session")]
# A session that has another one's id: what one says would be said of both.
for number, host in enumerate(("mine", "theirs")):
    impostor = Recording()
    impostor.data(SESSION, {"session": "5e55", "host": host, "created_boot_ns": "1", "created_realtime_ns": "10"})
    impostor.time_ns += number * 10**6
    impostor.sample(1, 0x10)
    impostor.write(MAKER, path_of(f"{host}.fxt"))
twice.append(([path_of("mine.fxt"), path_of("theirs.fxt")], 1, "mine.fxt and {}/theirs.fxt have sessions of one id"))
# Two parts of a session, as two reads of it leave them, are no copies of each other.
for number in range(2):
    part = Recording()
    part.data(SESSION, {"session": "parts", "host": "early", "created_boot_ns": "0", "created_realtime_ns": str(BEGAN)})
    part.time_ns = (number + 1) * 10**9
    part.sample(7, 0x10)
    part.write(MAKER, path_of(f"part{number}.fxt"))
both = [path_of("part0.fxt"), path_of("part1.fxt")]
merge(*both, "-o", path_of("parts.fxt"))
expect("parts of a session", sum(json.loads(line)["table"] == "sample" for line in exported("parts.fxt").splitlines()), 2)
twice.append(([path_of("parts.fxt"), both[1]], 1, "parts.fxt and {}/part1.fxt have the same samples of a session"))

os.mkfifo(path_of("pipe"))  # without a writer: it is not even opened
for arguments, status, words in (*(([*names, "-o", path_of("x.tar")], status, words.format(FOLDER)) for names, status, words in twice),
                                 ([path_of("timeless.fxt"), "-o", path_of("x.tar")], 1, "timeless.fxt does not say what time it was"),
                                 ([path_of("text.fxt"), "-o", path_of("x.tar")], 1, "text.fxt"),
                                 ([path_of("all.fxt"), "-o", path_of("x.tar")], 1, "all.fxt has recordings of several hosts"),
                                 ([*paths, "-o", paths[0]], 2, "is one of the recordings"), ([*paths], 2, "name a file with -o"),
                                 ([*paths, "-o", path_of("x")], 2, "the name tells no format"), (["-o", "x.tar"], 2, "name recordings"),
                                 (["-", "-o", "x.tar"], 2, "-: merge reads a recording twice; name a file"),
                                 ([path_of("pipe"), "-o", path_of("x.fxt")], 2, "pipe: merge reads a recording twice; name a file"),
                                 ([FOLDER, "-o", path_of("x.fxt")], 1, "is a directory"),
                                 ([*paths, "-o", "/nowhere/x.tar"], 1, "/nowhere")):
    done = merge(*arguments, status=status)
    expect(f"{arguments[-1]}: says {words!r}", words in done.stderr.decode(), True)
    expect(f"{arguments[-1]}: leaves nothing", os.path.exists(path_of("x.tar")), False)

# A temporary file that has no room for the last piece, behind which nothing is left that a flush could fail to write.
recording = recording_of(0, "early", *HOSTS["early"])
recording.write(MAKER, path_of("room.fxt"))
missing = 65536 - os.path.getsize(path_of("room.fxt"))
while missing > 0:  # a record has a word before its text
    recording.string(100 + len(recording.lines), "x" * (min(missing, 4096) - 8))
    missing -= min(missing, 4096)
recording.write(MAKER, path_of("room.fxt"))
expect("a whole piece", os.path.getsize(path_of("room.fxt")), 65536)


def leave_little_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))


done = merge(path_of("room.fxt"), "-o", "-", "--format", "ndjson", status=1, preexec_fn=leave_little_room)
expect(f"without room: {done.stderr}", b"cannot be written to a temporary file" in done.stderr, True)
expect("without room: prints nothing", done.stdout, b"")
sys.exit(failures > 0)
