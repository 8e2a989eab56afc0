# SPDX-License-Identifier: Apache-2.0
"""What annotate.sh says.  annotate.py PROFCTL MAKER FOLDER"""
import collections, json, os, random, subprocess, sys
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


def annotate(function, *options):
    said = json.loads(run(PROFCTL, "report", "--json", "--annotate", function, *options, RECORDING))
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
    expect(f"{what}: addresses", {row["address"]: row["total"] for row in said["annotation"]}, dict(wanted))
    expect(f"{what}: self", {row["address"]: row["self"] for row in said["annotation"] if row["self"]},
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


def main():
    build_id, places = build()
    stacks = record(build_id, places)
    check_source(stacks)
    said = subprocess.run([PROFCTL, "report", "--annotate", "nothing", RECORDING], capture_output=True, text=True, check=False)
    expect("no such function", (said.returncode, "no stack has a function 'nothing'" in said.stderr), (1, True))
    expect("a glob", annotate("lea*")["function"], "leaf")
    expect("several", annotate("*")["others"], 3)

    os.unlink(SOURCE)
    check_code(stacks, places, "leaf", "no source")
    check_objdump(places, "leaf")
    check_objdump(places, "work")
    os.mkfifo(SOURCE)
    check_code(stacks, places, "work", "a FIFO")
    os.unlink(SOURCE)
    run("strip", APP)
    check_code(stacks, places, "work", "stripped")
    os.unlink(APP)
    said = check_code(stacks, places, "work", "no program")
    expect("texts", {row["text"] for row in said["annotation"]}, {None})


main()
