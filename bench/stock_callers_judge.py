#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether each caller in a recording contains a call that reaches its callee, for bench/stock_callers.sh.

stock_callers_judge.py --head
stock_callers_judge.py NAME FOLDER prints a row and lists the edges that nothing proves. FOLDER has ours.json and perhaps
before.json (profctl dump --json) and dwarf.txt (perf script). The exit status is 1 when a complete stack has such an edge.

An edge is a return address of a user stack and the address that stands before it. The proof uses objdump and readelf
alone; code that the project has to unwind or to decode takes no part in it. The ways of proof, best first:

direct    the call's target, or the function that its linkage table names, is the callee: a symbol or an FDE of the file
          covers both
walked    instructions lead from the call's target to the callee's address by fall-through and jumps, tail calls among them
indirect  the call's target is in a register or in memory: any callee
weak      from the call's target a jump through a register or memory may lead there (a tail call, or a choice of the loader)
declared  the caller is a signal's trampoline, the interrupted code, the vDSO, or code without a file
"""
import bisect
import collections
import itertools
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from samples import whole_samples  # noqa: E402
import json  # noqa: E402

COMPLETE = 1
ROOTS = {"_start", "main", "__libc_start_main", "__libc_start_call_main", "clone", "__clone", "clone3", "__clone3",
         "start_thread"}
TRAMPOLINE = bytes.fromhex("48c7c00f0000000f05")  # mov $15,%rax; syscall
CHUNK_BYTES = 16384  # of one call of objdump
WALK_MAX = 60000  # instructions that one walk may look at
BEFORE_BYTES = 96  # where no start is known, decoding begins so far before a return address
COLUMNS = ["program", "samples", "complete", "before", "perf dwarf", "edges", "direct", "walked", "indirect", "weak",
           "declared", "not proved"]
WIDTHS = [18, 7, 8, 7, 10, 5, 7, 7, 8, 6, 8, 10]

# target: an address for a direct jump or call. slot: the word that an indirect one reads, where it is fixed.
Instruction = collections.namedtuple("Instruction", "address end name operands target slot")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


class Elf:
    """One file: its functions, linkage slots and instructions, as binutils print them."""

    def __init__(self, path):
        self.path = path
        self.sections = []  # (start, end, offset) of code
        self.functions = {}  # start -> end; of symbols and of FDEs
        self.names = collections.defaultdict(list)  # name without version -> [(start, kind)]
        self.labels = {}  # start -> a name, for people
        self.slots = {}  # address of a word -> ("name", NAME) or ("at", address) or ("chosen", resolver)
        self.code = {}
        self.data = pathlib.Path(path).read_bytes()
        self.read_sections()
        self.read_symbols()
        self.read_frames()
        self.read_relocations()
        self.starts = sorted(self.functions)
        self.ends = set(self.functions.values())
        match = re.search(r"Entry point address:\s*(0x[0-9a-f]+)", run("readelf", "-hW", path))
        self.entry = int(match[1], 16) if match else 0
        match = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-nW", path))
        self.build_id = match[1] if match else ""

    def read_sections(self):
        pattern = re.compile(r"\]\s+\S+\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) \S+\s+\w*X")
        for match in pattern.finditer(run("readelf", "-SW", self.path)):
            start, offset, size = (int(text, 16) for text in match.groups())
            self.sections.append((start, start + size, offset))

    def read_symbols(self):
        for line in run("readelf", "-sW", self.path).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[3] not in ("FUNC", "IFUNC", "NOTYPE") or fields[6] in ("UND", "ABS"):
                continue
            start, size, name = int(fields[1], 16), int(fields[2], 0), fields[7].split("@")[0]
            if start == 0 or not self.section_of(start):
                continue
            self.names[name].append((start, fields[3]))
            self.labels.setdefault(start, name)
            if size > 0:
                self.functions[start] = max(self.functions.get(start, 0), start + size)

    def read_frames(self):
        for match in re.finditer(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", run("readelf", "--debug-dump=frames", self.path)):
            start, end = int(match[1], 16), int(match[2], 16)
            # The linkage table is described as one function; an entry of it is looked at by its instructions.
            if end > start and self.section_of(start) and "pushq" not in self.labels.get(start, ""):
                self.functions.setdefault(start, end)

    def read_relocations(self):
        for line in run("readelf", "-rW", self.path).splitlines():
            fields = line.split()
            if len(fields) < 4 or not fields[2].startswith("R_X86_64_"):
                continue
            slot, kind = int(fields[0], 16), fields[2]
            if kind == "R_X86_64_RELATIVE":
                self.slots[slot] = ("at", int(fields[3], 16))
            elif kind == "R_X86_64_IRELATIVE":
                self.slots[slot] = ("chosen", int(fields[3], 16))
            elif kind in ("R_X86_64_JUMP_SLOT", "R_X86_64_JUMP_SLO", "R_X86_64_GLOB_DAT", "R_X86_64_64") and len(fields) > 4:
                self.slots[slot] = ("name", fields[4].split("@")[0])

    def section_of(self, address):
        return next((section for section in self.sections if section[0] <= address < section[1]), None)

    def in_linkage(self, address):
        """Whether the code there is an entry of a linkage table: a jump through a slot that a relocation names."""
        for start in (address & ~15, (address & ~15) - 16, address & ~7):
            for instruction in itertools.islice(self.sweep(start, start + 16), 2):
                if instruction.name in ("jmp", "bnd jmp") and instruction.slot in self.slots and start <= address < start + 16:
                    return start
        return None

    def function_of(self, address):
        """The (start, end) that covers the address with the highest start, or None."""
        at = bisect.bisect_right(self.starts, address)
        for start in reversed(self.starts[max(0, at - 8):at]):
            if address < self.functions[start]:
                return start, self.functions[start]
        return None

    def bytes_at(self, address, count):
        section = self.section_of(address)
        if section is None:
            return b""
        offset = section[2] + address - section[0]
        return self.data[offset:offset + count]

    def label(self, address):
        function = self.function_of(address)
        if function is None:
            return f"{address:#x}"
        return f"{self.labels.get(function[0], 'FDE')}({function[0]:#x})+{address - function[0]:#x}"

    def at(self, address):
        """The instruction that begins exactly there, or None. What it is depends on no other, so all are remembered."""
        if address not in self.code:
            self.decode(address)
        return self.code.get(address)

    def decode(self, start):
        section = self.section_of(start)
        if section is None:
            return
        stop = min(start + CHUNK_BYTES, section[1])
        text = run("objdump", "-d", "--no-show-raw-insn", "-w", f"--start-address={start:#x}",
                   f"--stop-address={min(stop + 16, section[1]):#x}", self.path)
        rows = [(int(match[1], 16), match[2]) for match in re.finditer(r"^\s+([0-9a-f]+):\t(.*)$", text, re.M)]
        # One that the end of the range cuts in two begins behind `stop`.
        for i, (address, body) in enumerate(rows):
            if address < stop and address not in self.code:
                self.code[address] = parse(address, rows[i + 1][0] if i + 1 < len(rows) else section[1], body)

    def sweep(self, start, stop):
        """The instructions from start on, up to the one that passes stop."""
        instruction = self.at(start)
        while instruction is not None and instruction.address < stop:
            yield instruction
            instruction = self.at(instruction.end)


def parse(address, end, body):
    body, _, comment = body.partition("#")
    body = re.sub(r"^(notrack|repz|repnz|data16|cs|rex\S*)\s+", r"\1 ", body.strip())
    match = re.match(r"((?:notrack |bnd |repz |repnz |data16 |cs |lock )*\S+)\s*(.*)", body)
    name, operands = (match[1], match[2].strip()) if match else (body, "")
    target = slot = None
    direct = re.match(r"([0-9a-f]+)(?: <|$)", operands)
    if direct and re.match(r"(bnd |data16 )*(call|jmp|j[a-z]+|loop\w*|xbegin)", name):
        target = int(direct[1], 16)
    indirect = re.match(r"\s*([0-9a-f]+)", comment)
    if operands.startswith("*") and "(%rip)" in operands and indirect:
        slot = int(indirect[1], 16)
    return Instruction(address, end, name, operands, target, slot)


class Walk:
    """Which addresses instructions lead to from a start, over files."""

    def __init__(self, world):
        self.world = world
        self.seen = set()  # (elf, address of an instruction)
        self.weak = False  # a jump met leads to where nothing tells
        self.touched = set()  # (elf, (start, end) of a function), of what was seen
        self.entered = []  # (elf, address): the start, and where a linkage slot led to

    def go(self, elf, address):
        self.entered.append((elf, address))
        work = [(elf, address)]
        while work and len(self.seen) < WALK_MAX:
            elf, address = work.pop()
            while address is not None and (elf, address) not in self.seen:
                address = self.step(elf, address, work)
        self.touched = {(file, file.function_of(place)) for file, place in self.seen}

    def step(self, elf, address, work):
        """Adds to `work` where the instruction jumps; returns the one behind it, or None where it does not go on."""
        instruction = elf.at(address)
        if instruction is None:
            return None
        self.seen.add((elf, address))
        name = instruction.name.split()[-1]
        if instruction.target is not None and not name.startswith("call"):
            work.append((elf, instruction.target))
        if name.startswith("jmp"):
            if instruction.target is None:
                self.jump(elf, instruction, work)
            return None
        if name in ("ret", "ud2", "hlt", "iretq", "(bad)"):
            return None
        if name.startswith("call") and instruction.end in elf.ends:
            return None  # the callee does not return; what follows is another function
        return instruction.end

    def jump(self, elf, instruction, work):
        if instruction.slot is not None and instruction.slot in elf.slots:
            for place in self.world.slot_targets(elf, instruction.slot):
                self.entered.append(place)
                work.append(place)
            self.weak |= elf.slots[instruction.slot][0] == "chosen"
        else:
            self.weak = True

    def reaches(self, elf, address, is_leaf):
        if is_leaf:
            return (elf, address) in self.seen
        starts = [address - back for back in range(1, 16) if (elf, address - back) in self.seen]
        return any(elf.at(start).end == address for start in starts)


class World:
    """All files of a recording."""

    def __init__(self):
        self.files = {}
        self.walks = {}

    def elf(self, path):
        if path not in self.files:
            try:
                self.files[path] = Elf(path) if path.startswith("/") else None
            except OSError:
                self.files[path] = None
        return self.files[path]

    def slot_targets(self, elf, slot):
        """Where a linkage slot can lead to, as (elf, address), in every file of the recording that has the name."""
        kind, value = elf.slots[slot]
        if kind == "at":
            return [(elf, value)]
        if kind == "chosen":
            return self.choices(elf, value)
        found = []
        for other in self.files.values():
            for start, symbol_kind in other.names.get(value, []) if other else []:
                found += self.choices(other, start) if symbol_kind == "IFUNC" else [(other, start)]
        return found

    def choices(self, elf, resolver):
        """What an IFUNC's resolver can return: the addresses of code that its instructions name."""
        function = elf.function_of(resolver) or (resolver, resolver + 512)
        found = [(elf, resolver)]
        for instruction in elf.sweep(*function):
            match = re.search(r"(-?0x[0-9a-f]+)\(%rip\)", instruction.operands)
            if match is None:
                continue
            place = instruction.end + int(match[1], 16)
            if instruction.name.startswith("lea") and elf.section_of(place):
                found.append((elf, place))
            elif elf.slots.get(place, ("",))[0] == "at":
                found.append((elf, elf.slots[place][1]))
        return found

    def walk(self, elf, address):
        if (elf, address) not in self.walks:
            walk = Walk(self)
            walk.go(elf, address)
            self.walks[elf, address] = walk
        return self.walks[elf, address]


def call_before(elf, address):
    """The instruction that ends at a return address, decoded from the start of its function; or None."""
    function = elf.function_of(address - 1)
    if function is not None:
        starts = [function[0]]
    else:
        at = bisect.bisect_right(elf.starts, address - 1)
        low = max([address - BEFORE_BYTES] + elf.starts[max(0, at - 1):at])
        starts = range(low, address - 15) if address - low > 15 else [low]
    votes = collections.Counter()
    for start in starts:
        for instruction in elf.sweep(start, address):
            if instruction.end >= address:
                votes[instruction if instruction.end == address else None] += 1
                break
    return votes.most_common(1)[0][0] if votes else None


def is_trampoline(elf, address, is_leaf=False):
    """Whether address - 1 lies in the two instructions that return from a signal; of a leaf, whether it is executing
    one of them, or stands behind them while the kernel returns."""
    offsets = (0, 7, len(TRAMPOLINE)) if is_leaf else (1, 8)
    return any(elf.bytes_at(address - back, len(TRAMPOLINE)) == TRAMPOLINE for back in offsets)


def same_function(elf, first, second):
    function = elf.function_of(first)
    return function is not None and function[0] <= second < function[1]


def prove(world, edge):
    """The way of proof, or None, and the call's text."""
    (caller_path, caller), (callee_path, callee), is_leaf = edge
    elf, other = world.elf(caller_path), world.elf(callee_path)
    if elf is None:
        return "declared", caller_path
    if is_trampoline(elf, caller):
        return "declared", "the trampoline of a signal"
    if other is not None and is_trampoline(other, callee, is_leaf):
        return "declared", "interrupted by a signal"
    call = call_before(elf, caller)
    if call is None:
        return None, "no instruction ends there"
    text = f"{call.address:x}: {call.name} {call.operands}"
    if not call.name.split()[-1].startswith("call"):
        return None, text
    if call.target is None and not (call.slot is not None and call.slot in elf.slots):
        return "indirect", text
    if other is None:
        return ("declared" if callee_path == "[vdso]" else None), text
    return reach(world, elf, call, (other, callee, is_leaf)), text


def reach(world, elf, call, place):
    """How the target of a call leads to a place."""
    other, callee, is_leaf = place
    inside = callee if is_leaf else callee - 1
    starts = [(elf, call.target)] if call.target is not None else world.slot_targets(elf, call.slot)
    weak = call.target is None and elf.slots[call.slot][0] == "chosen"
    linkage = other.in_linkage(inside)
    walks = [world.walk(*start) for start in starts]
    for walk in walks:
        for entered, address in walk.entered:
            if entered is other and (same_function(other, address, inside) or (linkage is not None and address == linkage)):
                return "direct"
    for walk in walks:
        if walk.reaches(other, callee, is_leaf):
            return "walked"
        # A tail call of a function with a switch: nothing but its range tells that it goes on to the callee.
        if any(file is other and function and function[0] <= inside < function[1] for file, function in walk.touched):
            return "walked"
        weak |= walk.weak
    return "weak" if weak or lazy(other, inside) else None


def lazy(elf, address):
    """The loader's own way from a linkage table, at a function's first call: code that saves all registers, and ends in a
    jump to what it found. The loader of Debian has no name for it."""
    function = elf.function_of(address)
    code = list(elf.sweep(*function)) if function and "/ld-linux" in elf.path else []
    return (any(instruction.name.startswith(("xsave", "fxsave")) for instruction in code)
            and any(instruction.name.endswith("jmp") and instruction.operands == "*%r11" for instruction in code))


class Recording:
    """What was mapped where, and the samples of a dump."""

    def __init__(self, path):
        self.maps = collections.defaultdict(list)
        self.modules = {}
        self.build_ids = {}
        with open(path, encoding="utf-8") as lines:
            self.lines = lines.readlines()
        for line in self.lines:
            record = json.loads(line) if '"module"' in line[:30] or '"mmap"' in line[:30] else {"record": ""}
            if record["record"] == "module":
                self.modules[record["pid"], record["module_id"]] = record["name"]
                self.build_ids[record["name"]] = record["build_id"] or self.build_ids.get(record["name"], "")
            elif record["record"] == "mmap":
                name = self.modules[record["pid"], record["module_id"]]
                self.maps[record["pid"]].append((record["time_ns"], int(record["start"], 16), int(record["size"], 16),
                                                 int(record["vaddr"], 16), name))
        for maps in self.maps.values():
            maps.sort(key=lambda row: row[0])
        self.found = {}

    def place(self, pid, time_ns, address, is_leaf):
        """(module, the module's address) of an address in a stack."""
        maps = self.maps.get(pid, [])
        count = bisect.bisect_right(maps, time_ns, key=lambda row: row[0])
        key = pid, count, address, is_leaf
        if key not in self.found:
            look = address if is_leaf else address - 1
            self.found[key] = next(((name, address - start + vaddr) for _, start, size, vaddr, name in reversed(maps[:count])
                                    if start <= look < start + size), ("[unknown]", address))
        return self.found[key]

    def stacks(self):
        """(quality, places leaf first) of each sample that has a user stack."""
        for sample in whole_samples(self.lines):
            stack = [int(text, 16) for text in sample["user_stack"]]
            if stack:
                yield (sample.get("quality", {"stack": 0})["stack"],
                       [self.place(sample["pid"], sample["time_ns"], address, i == 0) for i, address in enumerate(stack)])


def share(part, whole):
    return f"{100 * part / whole:.2f}" if whole else "-"


def share_of_dump(path):
    if not path.exists():
        return "-"
    qualities = collections.Counter(quality for quality, _ in Recording(path).stacks())
    return share(qualities[COMPLETE], sum(qualities.values()))


def share_of_perf(path, world):
    """Stacks of perf whose outermost frame begins stacks; one without a name counts where a file's entry point is."""
    if not path.exists():
        return "-"
    entries = {(pathlib.Path(elf.path).name, elf.entry & 0xFFF) for elf in world.files.values() if elf}
    rooted = total = 0
    for stack in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        lines = [line for line in stack.split("\n") if line.strip()]
        last = re.match(r"\s*([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$", lines[-1]) if lines else None
        if last is None or all("([kernel" in line for line in lines):
            continue
        total += 1
        low, name = int(last[1], 16) & 0xFFF, re.sub(r"@.*", "", last[2])
        rooted += name in ROOTS or any(file == pathlib.Path(last[3]).name and 0 <= low - entry < 64 for file, entry in entries)
    return share(rooted, total)


def print_row(cells):
    print("  ".join(str(c).rjust(w) if i else str(c).ljust(w) for i, (c, w) in enumerate(zip(cells, WIDTHS))), flush=True)


def show(world, edge, text, weights):
    (caller_path, caller), (callee_path, callee), is_leaf = edge
    elf, other = world.elf(caller_path), world.elf(callee_path)
    by_quality = ", ".join(f"{count} of quality {quality}" for quality, count in sorted(weights.items()))
    print(f"   not proved: {pathlib.Path(caller_path).name} {elf.label(caller - 1) if elf else hex(caller)} -> "
          f"{pathlib.Path(callee_path).name} {other.label(callee - (not is_leaf)) if other else hex(callee)}"
          f"{' (leaf)' if is_leaf else ''}; samples: {by_quality}; before the return address: {text}")


def judge(name, folder):
    recording, world = Recording(folder / "ours.json"), World()
    qualities, weights = collections.Counter(), collections.defaultdict(collections.Counter)
    for quality, places in recording.stacks():
        qualities[quality] += 1
        for at in range(len(places) - 1):
            weights[places[at + 1], places[at], at == 0][quality] += 1
    for path in {place[0] for edge in weights for place in edge[:2]}:
        elf = world.elf(path)
        if elf is not None and recording.build_ids.get(path) and recording.build_ids[path] != elf.build_id:
            print(f"   {path} is not the file that ran")
            return 1
    ways, missing = collections.Counter(), []
    for edge, counts in weights.items():
        way, text = prove(world, edge)
        ways[way] += sum(counts.values())
        if way is None:
            missing.append((edge, text))
    every, total = sum(ways.values()), sum(qualities.values())
    print_row([name, total, share(qualities[COMPLETE], total), share_of_dump(folder / "before.json"),
               share_of_perf(folder / "dwarf.txt", world), len(weights),
               *(share(ways[way], every) for way in ("direct", "walked", "indirect", "weak", "declared")),
               f"{len(missing)}: {ways[None]}"])
    for edge, text in sorted(missing, key=lambda row: -sum(weights[row[0]].values())):
        show(world, edge, text, weights[edge])
    if total == 0:
        print("   no samples")
    return 1 if total == 0 or any(weights[edge][COMPLETE] for edge, _ in missing) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--head"]:
        print_row(COLUMNS)
    elif len(sys.argv) == 3:
        sys.exit(judge(sys.argv[1], pathlib.Path(sys.argv[2])))
    else:
        sys.exit(__doc__)
