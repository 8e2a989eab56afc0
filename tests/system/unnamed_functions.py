# SPDX-License-Identifier: Apache-2.0
"""What unnamed_functions.sh says.  unnamed_functions.py PROFCTL MAKER FOLDER"""
import json, os, shutil, subprocess, sys
from recording_maker import Recording, SYMBOLS

PROFCTL, MAKER, FOLDER = sys.argv[1:]
APP, BARE, PATH = (f"{FOLDER}/{name}" for name in ("app.debug", "bare", "app"))
SOURCE = """
volatile int sum;
__attribute__((noinline, noclone)) void leaf(int n) { for (int i = 0; i < n; i++) sum += i * n; }
__attribute__((noinline, noclone, noreturn)) void last(int n) { leaf(n); for (;;) sum++; }
__attribute__((noinline, noclone)) void named(int n) { leaf(n); last(n); }
int main(void) { named(1); }
"""


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def build():
    run("gcc", "-O1", "-g", "-Wl,--build-id", "-x", "c", "-", "-o", APP, input=SOURCE)
    run("objcopy", "--strip-all", APP, BARE)
    said = run("readelf", "-nW", APP)
    build_id = said.split("Build ID: ")[1].split()[0]
    places = {}
    for line in run("nm", "-S", APP).splitlines():
        words = line.split()
        if len(words) == 4:
            places[words[3]] = (int(words[0], 16), int(words[1], 16))
    return build_id, places


def record(build_id, places, path):
    made = Recording()
    base = 0x10000
    made.name(7, 0, "app")
    made.module(7, 1, PATH, build_id, base, 0x10000)
    (leaf, leaf_bytes), (last, _), (named, named_bytes), (main, _) = (
        places[name] for name in ("leaf", "last", "named", "main"))
    made.data(SYMBOLS, {"build_id": build_id, "module": PATH, "start": named, "size": named_bytes, "name": "named"})
    # named() ends with a call that never returns, so its return address lies behind the function.
    end = named + named_bytes
    for at in range(4):
        made.stack(7, [base + leaf + at, base + last + 5, base + end, base + main + 8])
    made.stack(7, [base + leaf + leaf_bytes - 1, base + named + 5, base + main + 8])
    made.stack(7, [base + 0xfff0])  # in no function
    made.write(MAKER, path)


def rows(recording, *options):
    said = run(PROFCTL, "report", "--json", "-n", "0", *options, recording)
    return {row["name"]: (row["self"], row["total"]) for row in json.loads(said)["rows"]}


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got} instead of {wanted}")


def main():
    build_id, places = build()
    recording = f"{FOLDER}/app.fxt"
    record(build_id, places, recording)
    leaf, last, main_ = (f"app+{places[name][0]:#x}" for name in ("leaf", "last", "main"))
    whole = {leaf: (5, 5), last: (0, 4), "named": (0, 5), main_: (0, 5), "app+0xfff0": (1, 1)}
    by_address = {f"app+{places['leaf'][0] + at:#x}": (1, 1) for at in range(4)}
    by_address |= {f"app+{places['leaf'][0] + places['leaf'][1] - 1:#x}": (1, 1), "app+0xfff0": (1, 1), "named": (0, 5),
                   f"app+{places['last'][0] + 5:#x}": (0, 4), f"app+{places['main'][0] + 8:#x}": (0, 5)}

    expect("without the file", rows(recording), by_address)
    shutil.copy(BARE, PATH)
    expect("stripped", rows(recording), whole)
    expect("--addresses", rows(recording, "--addresses"), by_address)
    expect("--addresses --lines", rows(recording, "--addresses", "--lines"), by_address)
    folded = run(PROFCTL, "export", "--format", "folded", recording)
    expect("folded", sorted(folded.splitlines()),
           sorted([f"app;{main_};named;{last};{leaf} 4", f"app;{main_};named;{leaf} 1", "app;app+0xfff0 1"]))
    tree = json.loads(run(PROFCTL, "report", "--json", "--callers", leaf, recording))["tree"]
    expect("callers", [(node["name"], node["total"]) for node in tree if node["depth"] == 2], [(last, 4), ("named", 1)])

    # An address within a function is no name of it: what is, is said.
    inside = f"app+{places['leaf'][0] + 2:#x}"
    done = subprocess.run((PROFCTL, "report", "--callers", inside, recording), capture_output=True, text=True)
    expect("an address within", (done.returncode, done.stderr),
           (1, f"profctl: {recording}: no stack has a function '{inside}'; the one with that address is {leaf}\n"))

    # Debugging information of the same build has names; then those count.
    shutil.copy(APP, PATH)
    named = {"leaf": (5, 5), "last": (0, 4), "named": (0, 5), "main": (0, 5), "app+0xfff0": (1, 1)}
    expect("--inline", rows(recording, "--inline"), named)

    # Another build, what is no program, a folder, a FIFO, a broken one.
    run("gcc", "-O0", "-Wl,--build-id", "-x", "c", "-", "-o", PATH, input=SOURCE)
    expect("another build", rows(recording), by_address)
    with open(PATH, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    expect("a text", rows(recording), by_address)
    os.unlink(PATH)
    os.mkfifo(PATH)
    expect("a FIFO", rows(recording), by_address)
    os.unlink(PATH)
    content = bytearray(open(BARE, "rb").read())
    header = run("readelf", "-SW", BARE)
    offset, size = next((int(words[words.index("PROGBITS") + 2], 16), int(words[words.index("PROGBITS") + 3], 16))
                        for words in (line.split() for line in header.splitlines()) if ".eh_frame" in words)
    content[offset:offset + size] = b"\xfe" * size
    with open(PATH, "wb") as file:
        file.write(content)
    expect("broken call frames", rows(recording), by_address)


main()
