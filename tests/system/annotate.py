# SPDX-License-Identifier: Apache-2.0
"""What annotate.sh says.  annotate.py PROFCTL MAKER FOLDER"""
import collections, json, os, random, re, subprocess, sys, tempfile
import jsonschema
from recording_maker import Recording, SYMBOLS

PROFCTL, MAKER, FOLDER = sys.argv[1:]
APP, SOURCE, RECORDING = (f"{FOLDER}/{name}" for name in ("app", "app.c", "app.fxt"))
TEXT = """volatile unsigned sum;
static inline __attribute__((always_inline)) void mix(unsigned i)
{
\tsum += i * 77;\t/* \033[31m and a tab */
\tsum ^= sum >> 3;
}
__attribute__((noinline, noclone)) void leaf(int n)
{
\tfor (int i = 0; i < n; i++)
\t\tmix(i);
}
__attribute__((noinline, noclone)) void work(int n)
{
\tfor (int i = 0; i < n; i++) {
\t\tmix(i);
\t\tleaf(i);
\t\tsum /= 3;
\t}
}


/* Far from what is above. */






int main(void) { work(9); }
"""
BASE = 0x1000000
with open(os.path.join(os.path.dirname(__file__), "../../docs/report.schema.json"), encoding="utf-8") as schema_file:
    SCHEMA = json.load(schema_file)


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}:\n{got}\ninstead of\n{wanted}")


def build():
    with open(SOURCE, "w", encoding="ascii") as file:
        file.write(TEXT)
    run("gcc", "-O2", "-g", "-Wl,--build-id", SOURCE, "-o", APP)
    build_id = run("readelf", "-nW", APP).split("Build ID: ")[1].split()[0]
    places = {}
    for line in run("nm", "-S", APP).splitlines():
        words = line.split()
        if len(words) == 4:
            places[words[3]] = (int(words[0], 16), int(words[1], 16))
    return build_id, places


def chain(address):
    """(function, line), innermost first, as addr2line has it."""
    words = run("addr2line", "-i", "-f", "-e", APP, hex(address)).splitlines()
    return [(name, int(place.rsplit(":", 1)[1].split()[0])) for name, place in zip(words[::2], words[1::2])]


def record(build_id, places):
    """Samples in leaf() under work(), and in work() itself. The stacks that were made."""
    draw = random.Random(7)
    made = Recording()
    made.name(7, 0, "app")
    made.module(7, 1, APP, build_id, BASE, 0x100000)
    made.data(SYMBOLS, *({"build_id": build_id, "module": APP, "start": places[name][0], "size": places[name][1], "name": name}
                         for name in ("leaf", "work", "main")))
    leaf, work, main = (places[name] for name in ("leaf", "work", "main"))
    stacks = []
    for _ in range(60):
        stack = [work[0] + draw.randrange(work[1]), main[0] + main[1]]
        if draw.random() < 0.5:
            stack = [leaf[0] + draw.randrange(leaf[1]), work[0] + 1 + draw.randrange(work[1]), main[0] + main[1]]
        stacks.append(stack)
        made.stack(7, [BASE + address for address in stack])
    made.write(MAKER, RECORDING)
    return stacks


def count(stacks, function):
    """{line: [self, total]} of a function."""
    rows = collections.defaultdict(lambda: [0, 0])
    for stack in stacks:
        seen = set()
        for number, address in enumerate(stack):
            for depth, (name, line) in enumerate(chain(address - (number > 0))):
                if name == function:
                    rows[line][0] += number == 0 and depth == 0
                    seen.add(line)
        for line in seen:
            rows[line][1] += 1
    return dict(rows)


def annotate(function, recording=RECORDING):
    said = json.loads(run(PROFCTL, "report", "--json", "--annotate", function, recording))
    jsonschema.validate(said, SCHEMA)
    return said


def check_source(stacks):
    for function in ("leaf", "work", "mix"):
        said = annotate(function)
        expect(f"{function} by", said["by"], "line")
        expect(f"{function} lines", {row["line"]: [row["self"], row["total"]] for row in said["annotation"]},
               count(stacks, function))
        expect(f"{function} files", {row["file"] for row in said["annotation"]}, {SOURCE})
        expect(f"{function} self", said["self"], sum(row["self"] for row in said["annotation"]))
        for row in said["annotation"]:
            expect("a text", row["text"], TEXT.splitlines()[row["line"] - 1].expandtabs(8))
    text = run(PROFCTL, "report", "--annotate", "mix", RECORDING)
    if "\033" in text or "?[31m" not in text:
        sys.exit(f"a control character of the source comes through:\n{text}")
    expect("lines around", [line.split()[-1] for line in text.splitlines() if line.endswith(("}", "{"))], ["{", "}", "{"])


def check_code(stacks, places, function, what):
    start, size = places[function]
    said = annotate(function)
    expect(f"{what}: by", said["by"], "instruction")
    wanted = collections.Counter()
    for stack in stacks:
        wanted.update({a - (n > 0) for n, a in enumerate(stack) if start <= a - (n > 0) < start + size})
    expect(f"{what}: addresses", {int(row["address"], 16): row["total"] for row in said["annotation"]}, dict(wanted))
    expect(f"{what}: self", {int(row["address"], 16): row["self"] for row in said["annotation"] if row["self"]},
           dict(collections.Counter(stack[0] for stack in stacks if start <= stack[0] < start + size)))
    return said


def check_objdump(places, function):
    """Every instruction that is shown begins where objdump has one."""
    start, size = places[function]
    listed = run("objdump", "-d", f"--start-address={start:#x}", f"--stop-address={start + size:#x}", APP)
    addresses = {int(line.split(":")[0], 16) for line in listed.splitlines() if "\t" in line and ":" in line}
    text = run(PROFCTL, "report", "--wide", "--annotate", function, RECORDING)
    shown = {int(word, 16) for line in text.splitlines() if line.startswith(" ")
             for word in line.split()[:3] if word.startswith("0x")}
    if not shown or not shown <= addresses:
        sys.exit(f"instructions at {sorted(map(hex, shown - addresses))}:\n{text}\n{listed}")


def disassemble(program):
    """{address: end} of its instructions, as objdump has them."""
    lines = run("objdump", "-d", "--insn-width=16", program).splitlines()
    fields = [line.split("\t") for line in lines if line.startswith(" ") and line.count("\t") >= 1]
    return {int(f[0].strip(" :"), 16): int(f[0].strip(" :"), 16) + len(f[1].split()) for f in fields}


def check_shown(what, function, recording, program, counts, sample_count):
    """The text view: every percentage is at the instruction that the samples {address: count} were in, and all are there.
    Where there is no program, at their addresses."""
    text = run(PROFCTL, "report", "--wide", "--annotate", function, recording)
    shown = collections.Counter()
    for numbers, address in re.findall(r"^ +((?:\d+\.\d\d +)+)(0x[0-9a-f]+)\b", text, re.M):
        shown[int(address, 16)] += round(float(numbers.split()[-1]) * sample_count / 100)
    wanted = collections.Counter()
    instructions = disassemble(program) if program else {}
    for address, number in counts.items():
        begin = next((a for a, end in instructions.items() if a <= address < end), address)
        wanted[begin] += number
    expect(f"{what}: what is shown\n{text}", dict(shown), dict(wanted))
    return text


def symbols_of(program, build_id, names):
    """Lines of symbols for the functions of these names, each as often as the program has it."""
    rows = [line.split() for line in run("nm", "-S", program).splitlines()]
    return [{"build_id": build_id, "module": program, "start": hex(int(row[0], 16)), "size": int(row[1], 16), "name": row[3]}
            for row in rows if len(row) == 4 and row[3] in names]


def compile_program(program, sources, *options):
    """Its build-id. `sources`: {file name: text}."""
    for name, text in sources.items():
        with open(f"{FOLDER}/{name}", "w", encoding="ascii") as file:
            file.write(text)
    run("gcc", "-O2", "-Wl,--build-id", *options, *(f"{FOLDER}/{name}" for name in sources), "-o", program)
    return run("readelf", "-nW", program).split("Build ID: ")[1].split()[0]


def sampled(program, build_id, symbols, addresses, path):
    """A recording of leaf samples at the program's own addresses; {address: count}."""
    made = Recording()
    made.name(7, 0, "app")
    made.module(7, 1, program, build_id, BASE, 0x100000)
    made.data(SYMBOLS, *symbols)
    for address in addresses:
        made.stack(7, [BASE + address])
    made.write(MAKER, path)
    return collections.Counter(addresses)


def spread(symbol, count):
    start, size = int(symbol["start"], 16), symbol["size"]
    return [start + 7 * i % size for i in range(count)]


def check_starts(what, said, wanted):
    """`wanted`: {start: samples}, in which order the rows come, and whether each row is in the code of its own part."""
    order = list(dict.fromkeys(int(row["start"], 16) for row in said["annotation"]))
    expect(f"{what}: the starts", order, sorted(wanted, key=lambda start: -wanted[start]))
    got = collections.Counter()
    for row in said["annotation"]:
        got[int(row["start"], 16)] += row["self"]
    expect(f"{what}: samples by start", dict(got), wanted)


def check_static_functions():
    """Two functions of one name in a module: each has its own samples and instructions."""
    work = "extern volatile unsigned s;\nstatic __attribute__((noinline)) void work(int n) { while (n-- > 0) s = s %s; }\n"
    program, recording = f"{FOLDER}/statics", f"{FOLDER}/statics.fxt"
    build_id = compile_program(program, {"one.c": work % "* 31 + 1" + "void one(int n) { work(n); }\n",
                                         "two.c": work % "/ 7 + 3" + "void two(int n) { work(n); }\n",
                                         "main.c": "volatile unsigned s; void one(int); void two(int);\n"
                                                   "int main(void) { one(5); two(6); }\n"})
    symbols = symbols_of(program, build_id, {"work"})
    expect("two static functions", len(symbols), 2)
    few, many = symbols
    addresses = spread(few, 30) + spread(many, 70)
    counts = sampled(program, build_id, symbols, addresses, recording)
    said = annotate("work", recording=recording)
    check_starts("static functions", said, {int(few["start"], 16): 30, int(many["start"], 16): 70})
    expect("static functions: all", (said["self"], said["others"], said["build_id"]), (100, 0, build_id))
    expect("static functions: texts", [row for row in said["annotation"] if not row["text"]], [])
    text = check_shown("static functions", "work", recording, program, counts, 100)
    expect("static functions: heading", "Its code is in 2 places, each shown by itself." in text, True)


def check_inlined_code(stacks, places):
    """A function that was inlined into two, without its source: each has its own."""
    said = annotate("mix")
    expect("inlined: by", said["by"], "instruction")
    counts = collections.Counter()
    for stack in stacks:
        hits = {a - (n > 0) for n, a in enumerate(stack) if any(name == "mix" for name, _ in chain(a - (n > 0)))}
        counts.update(hits)
    expect("inlined: addresses", {int(row["address"], 16): row["total"] for row in said["annotation"]}, dict(counts))
    for row in said["annotation"]:
        start, size = places[row["of"]]
        expect("inlined: the start", int(row["start"], 16), start)
        expect("inlined: is in it", start <= int(row["address"], 16) < start + size, True)
    expect("inlined: into", {row["of"] for row in said["annotation"]}, {"leaf", "work"})
    text = check_shown("inlined", "mix", RECORDING, APP, counts, len(stacks))
    expect("inlined: headings", text.count("Inlined into "), 2)


def check_builds():
    """Two builds at one path, of which the file there is the second: what is shown is one, and has its own samples."""
    program = f"{FOLDER}/rebuilt"
    source = "volatile unsigned s;\n%s __attribute__((noinline)) void work(int n) { while (n-- > 0) s = s * 31 + 1; }\n" \
             "int main(void) { work(9); }\n"
    ids, symbols = [], []
    for other in ("", "int other(int n) { while (n-- > 0) s += n / 3; return s; }"):
        ids.append(compile_program(program, {"rebuilt.c": source % other}))
        symbols += symbols_of(program, ids[-1], {"work"})
    for numbers, shown in (((60, 40), 0), ((40, 60), 1)):
        parts = []
        counts = []
        for i, number in enumerate(numbers):
            path = f"{FOLDER}/build{i}.fxt"
            counts.append(sampled(program, ids[i], [symbols[i]], spread(symbols[i], number), path))
            with open(path, "rb") as file:
                parts.append(file.read())
        recording = f"{FOLDER}/builds.fxt"
        with open(recording, "wb") as file:
            file.write(b"".join(parts))
        what = f"builds with {numbers}"
        said = annotate("work", recording=recording)
        expect(what, (said["build_id"], said["self"], said["others"]), (ids[shown], 60, 1))
        check_starts(what, said, {int(symbols[shown]["start"], 16): 60})
        expect(f"{what}: texts", {row["text"] is not None for row in said["annotation"]}, {shown == 1})
        text = check_shown(what, "work", recording, program if shown == 1 else None, counts[shown], 100)
        expect(f"{what}: heading", f"with build-id {ids[shown]}" in " ".join(text.split()), True)


def check_high_addresses():
    """Two addresses that a reader of JSON would take for one if they were numbers."""
    recording = f"{FOLDER}/high.fxt"
    high = 0xffffffff81000000
    made = Recording()
    made.name(7, 0, "app")
    made.module(7, 1, "/none", "ab", BASE, 0x1000, high)
    made.data(SYMBOLS, {"build_id": "ab", "module": "/none", "start": hex(high), "size": 64, "name": "up"})
    for offset in (1, 2, 2):
        made.stack(7, [BASE + offset])
    made.write(MAKER, recording)
    said = annotate("up", recording=recording)
    expect("high addresses", [(row["address"], row["start"], row["self"]) for row in said["annotation"]],
           [(hex(high + 1), hex(high), 1), (hex(high + 2), hex(high), 2)])


SOURCE_FILES, SOURCE_BYTES = 5, 16 << 20


def peak_kib(*command):
    """What a command prints, and the most memory that it had."""
    with tempfile.TemporaryFile() as output:
        pid = subprocess.Popen(command, stdout=output).pid
        _, status, usage = os.wait4(pid, 0)
        expect("its status", status, 0)
        output.seek(0)
        return output.read(), usage.ru_maxrss


def check_memory():
    """Source files as large as they may be, one of tabs, one of newlines, under many names: what is kept is what is shown."""
    program, recording = f"{FOLDER}/large", f"{FOLDER}/large.fxt"
    source = "volatile unsigned s;\nvoid work(void)\n{\n"
    fillers = {"tabs": b"\t", "newlines": b"\n"}
    for name, byte in fillers.items():
        with open(f"{FOLDER}/{name}0.inc", "wb") as file:
            file.write(byte * (SOURCE_BYTES - 1) + b"x")
        for i in range(SOURCE_FILES):
            if i > 0:
                os.link(f"{FOLDER}/{name}0.inc", f"{FOLDER}/{name}{i}.inc")
            line = 1 if name == "tabs" else 1 << 20
            source += f'#line {line} "{FOLDER}/{name}{i}.inc"\n\ts += {i + 3};\n'
    source += "}\nint main(void) { work(); }\n"
    build_id = compile_program(program, {"large.c": source}, "-g")
    symbols = symbols_of(program, build_id, {"work"})
    start, size = int(symbols[0]["start"], 16), symbols[0]["size"]
    sampled(program, build_id, symbols, range(start, start + size), recording)
    _, plain_kib = peak_kib(PROFCTL, "report", "--json", "--annotate", "leaf", RECORDING)
    output, large_kib = peak_kib(PROFCTL, "report", "--json", "--annotate", "work", recording)
    said = json.loads(output)
    files = {row["file"] for row in said["annotation"] if row["text"] is not None}
    expect("large files: by", said["by"], "line")
    expect("large files: some are shown", len(files) > 2, True)
    expect("large files: a line", max(len(row["text"] or "") for row in said["annotation"]), 4096)
    # One such file that was kept whole would be 16 MiB, and with its tabs as spaces, or its lines, 128 MiB.
    if large_kib > plain_kib + (64 << 10):
        sys.exit(f"{large_kib} KiB instead of {plain_kib}")


def main():
    build_id, places = build()
    stacks = record(build_id, places)
    check_source(stacks)
    said = subprocess.run([PROFCTL, "report", "--annotate", "nothing", RECORDING], capture_output=True, text=True, check=False)
    expect("no such function", (said.returncode, "no stack has a function 'nothing'" in said.stderr), (1, True))
    expect("a glob", annotate("lea*")["function"], "leaf")
    expect("several", annotate("*")["others"], 3)
    check_memory()

    def says(sentence):
        page = " ".join(run(PROFCTL, "report", "--annotate", "leaf", RECORDING).split())
        expect(f"'{sentence}'", f"{sentence}{SOURCE}." in page, True)

    with open(SOURCE, "ab") as file:
        file.truncate(SOURCE_BYTES + 1)
    says("Its source is larger than the 16 MiB that are read: ")
    os.unlink(SOURCE)
    says("Its source is not on this machine: ")
    check_inlined_code(stacks, places)
    check_code(stacks, places, "leaf", "no source")
    check_objdump(places, "leaf")
    check_objdump(places, "work")
    os.mkfifo(SOURCE)
    says("Its source is no regular file, so it is not read: ")
    check_code(stacks, places, "work", "a FIFO")
    os.unlink(SOURCE)
    run("strip", APP)
    check_code(stacks, places, "work", "stripped")
    os.unlink(APP)
    said = check_code(stacks, places, "work", "no program")
    expect("texts", {row["text"] for row in said["annotation"]}, {None})
    check_static_functions()
    check_builds()
    check_high_addresses()


main()
