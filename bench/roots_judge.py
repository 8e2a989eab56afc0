#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which stacks reach their root, for bench/roots.sh: roots_judge.py NAME GOAL FOLDER, one row of its table.

FOLDER has ours.folded and ours.json (profctl export, profctl dump --json), fp.txt and dwarf.txt (perf script)
and dwarf (perf.data)."""
import collections
import pathlib
import re
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from samples import whole_samples  # noqa: E402

# What begins a stack: of a process, of a thread, of a goroutine or a system stack of Go's.
ROOTS = {
    "_start", "_dl_start_user", "_dl_start",
    "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "main",
    "clone", "__clone", "clone3", "__clone3", "start_thread",
    "runtime.goexit", "runtime.goexit.abi0", "runtime.mstart", "runtime.mstart.abi0", "runtime.mcall",
    "runtime.morestack", "runtime.morestack.abi0",
    "runtime.rt0_go", "runtime.rt0_go.abi0",
}
MARKERS = {"[unknown]", "[kernel]", "[kernel thread]"}
PLACE_MASK = 0xFFF  # of an address: the same in the file and in memory
SHORT = 2  # quality: copy too short
AFTER_THE_STACK = 1 << 14 | 1 << 15 | 1 << 17  # PERF_SAMPLE_WEIGHT, DATA_SRC, TRANSACTION: a word each
COLUMNS = ["program", "goal", "stacks", "ours fits", "ours all", "perf fp", "perf dwarf", "too short", ">16K"]
WIDTHS = [9, 5, 7, 10, 9, 8, 10, 9, 6]


def is_named_root(name):
    return re.sub(r"@.*|\.(part|cold|isra)\..*", "", name) in ROOTS


def place_of(module, address):
    return module.split("/")[-1], address & PLACE_MASK


def read_ours(folder):
    """(outermost frame, is complete) -> count, without what has no user stack; and places that are proven."""
    stacks, proven = collections.Counter(), set()
    for line in open(f"{folder}/ours.folded", encoding="utf-8", errors="replace"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        frames = [f for f in stack.split(";")[1:] if not f.endswith("_[k]")]
        truncated = bool(frames) and frames[0] == "[truncated]"
        frames = frames[truncated:]
        if not frames or (not truncated and frames[0] in MARKERS):
            continue
        stacks[frames[0]] += int(count)
        unnamed = re.fullmatch(r"(.*)\+0x([0-9a-f]+)", frames[0])
        if unnamed and not truncated:
            proven.add(place_of(unnamed[1], int(unnamed[2], 16)))
    return stacks, proven


def is_ours_rooted(frame, proven):
    unnamed = re.fullmatch(r"(.*)\+0x([0-9a-f]+)", frame)
    return place_of(unnamed[1], int(unnamed[2], 16)) in proven if unnamed else is_named_root(frame)


def read_perf(path, proven):
    rooted = total = 0
    for stack in open(path, encoding="utf-8", errors="replace").read().split("\n\n"):
        lines = [line for line in stack.split("\n") if line.strip()]
        if not lines:
            continue
        total += 1
        last = re.match(r"\s*([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$", lines[-1])
        if last is None:
            continue
        if last[2] == "[unknown]":
            rooted += place_of(last[3], int(last[1], 16)) in proven
        else:
            rooted += is_named_root(last[2])
    return rooted, total


def full_copies(path):
    """Of a perf.data whose samples have a copied stack: how many copies fill their room."""
    data = open(path, "rb").read()
    (attr,) = struct.unpack_from("<Q", data, 24)
    (sample_type,) = struct.unpack_from("<Q", data, attr + 24)
    after = 8 * (1 + bin(sample_type & AFTER_THE_STACK).count("1"))  # the size is the last word of the stack's
    at, size = struct.unpack_from("<QQ", data, 40)
    end, full, total = at + size, 0, 0
    while at + 8 <= end:
        kind, _, bytes_ = struct.unpack_from("<IHH", data, at)
        if bytes_ < 8:
            break
        if kind == 9:
            total += 1
            full += struct.unpack_from("<Q", data, at + bytes_ - after)[0] >= 16384
        at += bytes_
    return full, total


def percent(part, whole):
    return f"{100 * part / whole:.2f}" if whole else "-"


def print_row(cells):
    print("  ".join(str(c).rjust(w) if i else str(c).ljust(w) for i, (c, w) in enumerate(zip(cells, WIDTHS))),
          flush=True)


def judge(name, goal, folder):
    stacks, proven = read_ours(folder)
    total = sum(stacks.values())
    rooted = sum(n for frame, n in stacks.items() if is_ours_rooted(frame, proven))
    with open(f"{folder}/ours.json", encoding="utf-8") as lines:
        short = sum(sample["quality"]["stack"] == SHORT for sample in whole_samples(lines))
    fp, dwarf = (read_perf(f"{folder}/{kind}.txt", proven) for kind in ("fp", "dwarf"))
    full = full_copies(f"{folder}/dwarf")
    print_row([name, goal, total, percent(rooted, total - short), percent(rooted, total), percent(*fp),
               percent(*dwarf), percent(short, total), percent(*full)])
    reached = total > 0 and 100 * rooted >= float(goal) * (total - short)
    if not reached:
        others = collections.Counter({f: n for f, n in stacks.items() if not is_ours_rooted(f, proven)})
        print("   ends elsewhere:", ", ".join(f"{f} {n}" for f, n in others.most_common(5)))
    return 0 if reached else 1


if sys.argv[1] == "--head":
    print_row(COLUMNS)
else:
    sys.exit(judge(*sys.argv[1:4]))
