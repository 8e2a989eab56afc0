# SPDX-License-Identifier: Apache-2.0
"""Compares names_probe with eu-addr2line on addresses of modules:
names_oracle.py PROBE COUNT NAME=FILE[=DEBUG_FILE]... [RECORDING=DUMP]

DUMP is what `profctl dump --json` prints of a recording: its samples' addresses, and its names for them, are judged
too. Judged is the name that eu-addr2line has for the symbol at the address (-S), and for equal names their readable form
(-S -C). What may differ, counted by its reason; everything else is a failure. What decides is readelf's and objdump's
to say, which read the files by themselves:

plt      An entry of a linkage table, of which eu-addr2line knows nothing. objdump calls it by the same name.
alias    Two names of one function: readelf has both at one address, and as functions. Ours prefers those with a size to those without, global to
         weak to local ones, then those with fewer underscores in front, then the shorter; that ours is the best by this rule
         is checked.
label    eu-addr2line has the name of something that is no function (data, a mark within the code, or an indirect function,
         whose code is its resolver's), or of a label without a size within a function or before the address; ours has
         the function that holds the address, or none if none does.
nested   Two functions that both hold the address: ours has the one that begins later.
version  eu-addr2line has the version of a symbol behind its name (foo@@GLIBC_2.34).
"""
import bisect, collections, json, lzma, os, random, re, subprocess, sys, tempfile

NONE = "??"
REASONS = ("plt", "alias", "label", "nested", "version", None)
FUNCTIONS = ("FUNC",)


def run(command, text=""):
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode != 0 and not command[0].startswith("eu-"):
        sys.exit(f"FAIL: {' '.join(command)}: {done.stderr}")
    return done.stdout.splitlines()


def sections(path):
    """(name, address, bytes) of what is code."""
    found = []
    for line in run(["readelf", "-SW", path]):
        match = re.match(r"\s*\[\s*\d+\]\s(\S+)\s+(\S+)\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) \S+\s+(\S*)", line)
        if match and "X" in match[5] and match[2] != "NOBITS" and int(match[4], 16) > 0:
            found.append((match[1], int(match[3], 16), int(match[4], 16)))
    return found


def choose(parts, count):
    """Half of them anywhere in the code, half of them with as many of each section; the same ones in every run."""
    total = sum(size for _, _, size in parts)
    chooser = random.Random(total)
    chosen = set()
    for _ in range(count // 2):
        at = chooser.randrange(total)
        for _, start, size in parts:
            if at < size:
                chosen.add(start + at)
                break
            at -= size
    for i in range(100 * count):
        _, start, size = parts[i % len(parts)]
        chosen.add(start + chooser.randrange(size))
        if len(chosen) >= min(count, total):
            break
    return sorted(chosen)


class Symbols:
    """What readelf says that there is, of a file and of what was split off it."""

    def __init__(self, files):
        self.at = collections.defaultdict(dict)  # {start: {name: (type, bytes, rank)}}
        self.named = collections.defaultdict(set)  # {name: starts}
        for path in files:
            self.read(path)
        packed = self.unpack(files[0])
        if packed:
            self.read(packed)
            os.unlink(packed)
        self.starts = sorted(self.at)
        self.reach = max((size for names in self.at.values() for _, size, _ in names.values()), default=0)

    def read(self, path):
        for line in run(["readelf", "-sW", path]):
            match = re.match(r"\s*\d+: ([0-9a-f]{16})\s+(\S+) (\S+)\s+(\S+)\s+\S+\s+(?:\[.*?\] )?\s*(\w+) (\S+)", line)
            if match and match[5] not in ("UND", "ABS", "COM") and match[3] not in ("SECTION", "FILE", "TLS"):
                start, size = int(match[1], 16), int(match[2], 0)
                rank = {"GLOBAL": 0, "UNIQUE": 0, "WEAK": 1}.get(match[4], 2)
                for name in {match[6], re.sub(r"@.*", "", match[6])}:
                    known = self.at[start].get(name)
                    if known is None or (known[0] not in FUNCTIONS, known[2]) > (match[3] not in FUNCTIONS, rank):
                        self.at[start][name] = (match[3], size, rank)
                    self.named[name].add(start)

    @staticmethod
    def unpack(path):
        """The file that is packed into a section of the other, or None."""
        if not any(".gnu_debugdata" in line for line in run(["readelf", "-SW", path])):
            return None
        with tempfile.NamedTemporaryFile(delete=False) as packed:
            pass
        run(["objcopy", "--dump-section", f".gnu_debugdata={packed.name}", path, "/dev/null"])
        with open(packed.name, "rb") as file:
            content = lzma.decompress(file.read())
        with open(packed.name, "wb") as file:
            file.write(content)
        return packed.name

    def holders(self, address):
        """{start: names} of the functions with a size that hold the address."""
        found = {}
        index = bisect.bisect_right(self.starts, address)
        while index > 0 and address - self.starts[index - 1] <= self.reach:
            index -= 1
            start = self.starts[index]
            names = {name for name, (kind, size, _) in self.at[start].items()
                     if kind in FUNCTIONS and address - start < size}
            if names:
                found[start] = names
        return found

    def is_best(self, start, name):
        """Whether this is the name by the rule above among the functions that begin there."""
        def order(other):
            return (self.at[start][other][1] == 0, self.at[start][other][2], len(other) - len(other.lstrip("_")), len(other), other)
        names = [n for n, (kind, _, _) in self.at[start].items() if kind in FUNCTIONS and "@" not in n]
        return name in names and order(name) == min(map(order, names))


def linkage_names(path, parts):
    """[(start, name)] of the entries that objdump names."""
    found = []
    tables = [f"--section={name}" for name, _, _ in parts if name.startswith(".plt")]
    for line in run(["objdump", "-d", *tables, path]) if tables else []:
        match = re.fullmatch(r"([0-9a-f]+) <(.*)@plt>:", line)
        if match:
            found.append((int(match[1], 16), re.sub(r"@.*", "", match[2]) + "@plt"))
    return found


def ours(probe, files, text):
    found = {}
    for line in run([probe, *files], text):
        address, name, readable = line.split("\t")
        found[int(address, 16)] = (name, readable)
    return found


def theirs(path, text, *options):
    """{address: the name of the symbol there}; "(.text)+0x10" is none."""
    found, at = {}, None
    for line in run(["eu-addr2line", "-S", "-a", *options, "-e", path], text):
        if re.fullmatch("0x[0-9a-f]+", line):
            at = int(line, 16)
        elif at is not None:
            name = re.sub(r"\+0x[0-9a-f]+$", "", line)
            found[at] = NONE if re.fullmatch(r"\(\S*\)|\?\?.*", name) else name
            at = None
    return found


def reason(address, mine, eu, symbols, linkage):
    """Why ours may be another name than eu-addr2line's, or None."""
    if mine == re.sub(r"@.*", "", eu):
        return "version"
    if mine.endswith("@plt"):
        index = bisect.bisect_right(linkage, (address, chr(0x10ffff))) - 1
        is_entry = index >= 0 and linkage[index][1] == mine and address - linkage[index][0] < 16
        return "plt" if eu == NONE and is_entry else None
    holders = symbols.holders(address)
    last = max(holders, default=None)
    if last is None:
        return "label" if mine == NONE and eu in symbols.named else None
    if mine not in holders[last] or not symbols.is_best(last, mine):
        return None
    if eu in holders[last]:
        return "alias"
    if any(eu in names for names in holders.values()):
        return "nested"
    return "label" if any(eu in symbols.at[s] for s in symbols.named[eu] if s <= address) else None


def decode_rust(name):
    """Rust's older encoding: lengths before parts, the last a hash, and signs spelt out. None for any other."""
    parts, at = [], 3
    while match := re.compile(r"(\d+)").match(name, at):
        at = match.end() + int(match[1])
        parts.append(name[match.end():at])
    if name[:3] != "_ZN" or not parts or not re.fullmatch("h[0-9a-f]{16}", parts[-1]) or name[at:at + 1] != "E":
        return None
    text = "::".join(part[1:] if part.startswith("_$") else part for part in parts[:-1])
    signs = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "LP": "(", "RP": ")", "C": ",", "SP": "@"}
    for spelt, sign in signs.items():
        text = text.replace(f"${spelt}$", sign)
    return re.sub(r"\$u([0-9a-f]+)\$", lambda code: chr(int(code[1], 16)), text).replace("..", "::")


def readable(names):
    """{mangled: what it means} of names of Rust, by llvm-cxxfilt where it is the newer encoding."""
    newer = [name for name in names if name.startswith("_R")]
    found = {name: text for name in names if (text := decode_rust(name)) is not None}
    if newer:
        found.update(zip(newer, run(["llvm-cxxfilt"], "".join(f"{re.sub('[.].*', '', name)}\n" for name in newer))))
    return found


def is_readable(mine, full):
    """Ours leaves parameters and results out."""
    return mine == full or full.startswith((mine + "(", mine + "[")) or f" {mine}(" in full or f" {mine}[" in full


def build_id(path):
    lines = run(["readelf", "-nW", path]) if os.path.isfile(path) else []
    return next((line.split()[-1] for line in lines if "Build ID:" in line), "")


class Recording:
    """The addresses that a recording has, by module, and the names that it gives them."""

    def __init__(self, path):
        self.modules, self.mappings = {}, collections.defaultdict(list)
        self.functions = collections.defaultdict(dict)  # {(build-id, module): {start: (bytes, name)}}
        self.addresses = collections.defaultdict(set)
        samples, rests = [], {}
        with open(path, encoding="utf-8") as file:
            for record in map(json.loads, file):
                if record["record"] == "module":
                    self.modules[record["pid"], record["module_id"]] = (record["build_id"], record["name"])
                elif record["record"] == "mmap":
                    self.add_mapping(record)
                elif record["record"] == "sample" and "continuation_completion" in record:
                    rests[record["continuation_completion"]] = record.get("user_stack", [])
                elif record["record"] == "sample":
                    samples.append(record)
                elif record["record"] == "data" and record["name"] == "cpu-profilerd.symbols":
                    value = record["value"]
                    start = int(str(value["start"]), 0)
                    self.functions[value["build_id"], value["module"]][start] = (int(str(value["size"]), 0), value["name"])
        for sample in samples:
            for i, address in enumerate(sample.get("user_stack", []) + rests.get(sample.get("continuation"), [])):
                self.add_address(sample, int(str(address), 0) - (i > 0))

    def add_mapping(self, record):
        start, size, vaddr = (int(str(record[key]), 0) for key in ("start", "size", "vaddr"))
        module = self.modules.get((record["pid"], record["module_id"]), ("", "[unknown]"))
        mappings = self.mappings[record["pid"]]
        mappings.append((record["time_ns"], len(mappings), start, start + size, vaddr, module))

    def add_address(self, sample, address):
        held = [m for m in self.mappings[sample["pid"]] if m[0] <= sample["time_ns"] and m[2] <= address < m[3]]
        if held:
            _, _, start, _, vaddr, module = max(held)
            self.addresses[module].add(address - start + vaddr)

    def names(self, module):
        functions = self.functions[module]
        starts, found = sorted(functions), {}
        for address in self.addresses[module]:
            index = bisect.bisect_right(starts, address) - 1
            size, name = functions[starts[index]] if index >= 0 else (0, NONE)
            found[address] = (name, name) if index >= 0 and address - starts[index] < size else (NONE, NONE)
        return found


class Table:
    """A line a module, and their sums."""

    def __init__(self):
        self.total = self.failed = self.unreadable = 0
        print(f"{'module':16} addresses  named  equal"
              + "".join(f"{r or 'unexplained':>{len(r or 'unexplained') + 2}}" for r in REASONS) + "  mangled  readable")

    def judge(self, module, files, parts, mine, judges_readable):
        addresses = sorted(mine)
        text = "".join(f"{a:#x}\n" for a in addresses)
        eu = theirs(files[0], text)
        different = [a for a in addresses if mine[a][0] != eu[a]]
        symbols, linkage = Symbols(files), sorted(linkage_names(files[0], parts))
        reasons = [reason(a, mine[a][0], eu[a], symbols, linkage) for a in different]
        counts = [reasons.count(r) for r in REASONS]
        mangled = [a for a in addresses if judges_readable and mine[a][0] == eu[a] and mine[a][0][:2] in ("_Z", "_R")]
        full = theirs(files[0], text, "-C") if mangled else {}
        rust = readable({mine[a][0] for a in mangled})
        full.update({a: rust[mine[a][0]] for a in mangled if mine[a][0] in rust})
        wrong = [a for a in mangled if not is_readable(mine[a][1], full[a])]
        named = sum(mine[a][0] != NONE for a in addresses)
        print(f"{module[:16]:16} {len(addresses):9} {named:6} {len(addresses) - len(different):6}"
              + "".join(f"{c:{len(r or 'unexplained') + 2}}" for c, r in zip(counts, REASONS))
              + f" {len(mangled):8} {len(mangled) - len(wrong):9}")
        for a in [a for a, r in zip(different, reasons) if r is None][:5]:
            print(f"  {a:#x}\n    ours    {mine[a][0]}\n    theirs  {eu[a]}")
        for a in wrong[:5]:
            print(f"  {a:#x}\n    ours    {mine[a][1]}\n    theirs  {full[a]}")
        self.total += len(addresses)
        self.failed += counts[-1]
        self.unreadable += len(wrong)


def main():
    probe, least, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    modules = [argument for argument in arguments if not argument.startswith("RECORDING=")]
    each = -(-least // len(modules))
    table = Table()
    for argument in modules:
        module, *files = argument.split("=")
        parts = sections(files[0])
        text = "".join(f"{a:#x}\n" for a in choose(parts, each))
        table.judge(module, files, parts, ours(probe, files, text), True)
    drawn = table.total
    for argument in arguments[len(modules):]:
        recording = Recording(argument.split("=")[1])
        for module in sorted(recording.addresses):
            path = re.sub(r" \(inode .*\)$", "", module[1])
            if not os.path.isfile(path) or build_id(path) != module[0]:
                print(f"{'*' + module[1]}: {len(recording.addresses[module])} addresses of what the recording has no "
                      "build-id of, or no file")
            else:
                split = f"/usr/lib/debug/.build-id/{module[0][:2]}/{module[0][2:]}.debug"
                files = [path] + [split] * (module[0] != "" and os.path.exists(split))
                name = "*" + os.path.basename(path)
                table.judge(name, files, sections(files[0]), recording.names(module), False)
    print(f"{table.total} addresses ({table.total - drawn} of samples, with *), {table.failed} unexplained; "
          f"{table.unreadable} names are not readable as they should be")
    if drawn < least or len(modules) < 10:
        sys.exit(f"FAIL: fewer than {least} addresses of 10 modules")
    sys.exit(table.failed + table.unreadable > 0)


main()
