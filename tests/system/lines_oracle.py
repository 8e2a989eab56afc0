# SPDX-License-Identifier: Apache-2.0
"""Compares lines_probe with eu-addr2line on addresses of modules: lines_oracle.py PROBE COUNT MODULE...

What may differ, counted by its reason; everything else is a failure:

symbol    The debugging information has no function at the address, as of _start or of an alias. eu-addr2line
          then has the symbol table's name, ours none: the recording has the symbol's name itself. Of _start
          eu-addr2line may tell a line of another function, which llvm-symbolizer confirms to be none.
witness   eu-addr2line has not all that is there, and llvm-symbolizer, which is a reader of its own, has
          function by function what ours has. Three cases: functions within namespaces (Rust has nearly all
          there), into which eu-addr2line does not look; files of clang without .debug_aranges, of which it finds
          no unit; and functions that were inlined in several pieces, whose callers it takes from another piece.
line 0    Code of no line. llvm-symbolizer calls it line 0 of a file, ours nothing; functions are compared.
"""
import os
import random, subprocess, sys


def run(command, text, is_strict=True):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=is_strict)
    return done.stdout.splitlines()


def choose(module, count):
    """Addresses within functions, the same ones in every run."""
    functions = []
    for line in run(["nm", "-S", "--defined-only", module], ""):
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwW" and int(fields[1], 16) > 0:
            functions.append((int(fields[0], 16), int(fields[1], 16)))
    chooser = random.Random(len(functions))
    chosen = set()
    for _ in range(20 * count):
        start, size = chooser.choice(functions)
        chosen.add(start + chooser.randrange(size))
        if len(chosen) == count:
            break
    return sorted(chosen)


def blocks(lines):
    """{address: the lines that follow it}"""
    found, at = {}, None
    for line in lines:
        if line.startswith("0x"):
            at = found.setdefault(int(line, 16), [])
        else:
            at.append(line)
    return found


def place(text):
    """FILE:LINE of FILE:LINE[:COLUMN]; without a line there is no file."""
    fields = text.split(" (discriminator")[0].rsplit(":", 2)
    if len(fields) == 3 and fields[1].isdigit():
        fields = fields[:2]
    else:
        fields = [":".join(fields[:-1]), fields[-1]]
    return "??:0" if fields[1] in ("0", "?") else os.path.normpath(fields[0]) + ":" + fields[1]


def ours(probe, module, text):
    return {address: [(name, place(where)) for name, where in (line.split("\t") for line in lines)]
            for address, lines in blocks(run([probe, module], text)).items()}


def theirs(tool, module, text):
    found = {}
    for address, lines in blocks(run([tool, "-f", "-i", "-a", "-e", module], text, False)).items():
        names = [line.split(" inlined at ")[0] for line in lines[::2]]
        found[address] = list(zip(names, map(place, lines[1::2])))
    return found


def witness(module, addresses):
    """What llvm-symbolizer says; it answers without the addresses, a blank line between."""
    text = "".join(f"{address:#x}\n" for address in addresses)
    answers = "\n".join(run(["llvm-symbolizer", "--functions=linkage", "--no-demangle", "-e", module], text))
    found = {}
    for address, answer in zip(addresses, answers.strip().split("\n\n")):
        lines = answer.split("\n")
        found[address] = list(zip(lines[::2], map(place, lines[1::2])))
    return found


def reason(mine, eu, other):
    """Why ours may be another answer than eu-addr2line's, or None."""
    if not mine and len(eu) == 1 and other[0][1] == "??:0":
        return "symbol"
    if [("??", where) for _, where in eu] == mine:
        return "symbol"
    # The outermost name may be the symbol table's, which has suffixes of its own.
    names, other_names = [name for name, _ in mine], [name for name, _ in other]
    if mine and len(mine) == len(other) and names[:-1] == other_names[:-1] and (
            names[-1] in (other_names[-1], eu[-1][0]) or other_names[-1].startswith(names[-1] + ".")):
        if [where for _, where in mine] == [where for _, where in other]:
            return "line 0" if mine[0][1] == "??:0" else "witness"
    return None


def main():
    probe, least, modules = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    each = -(-least // len(modules))
    total = failed = 0
    print(f"{'module':28} addresses  inlined  equal  symbol  witness  line 0  unexplained")
    for module in modules:
        addresses = choose(module, each)
        text = "".join(f"{address:#x}\n" for address in addresses)
        mine, eu = ours(probe, module, text), theirs("eu-addr2line", module, text)
        different = [a for a in addresses if mine[a] != eu[a]]
        other = witness(module, different) if different else {}
        reasons = [reason(mine[a], eu[a], other[a]) for a in different]
        counts = [reasons.count(r) for r in ("symbol", "witness", "line 0", None)]
        inlined = sum(len(mine[a]) > 1 for a in addresses)
        print(f"{os.path.basename(module)[-28:]:28} {len(addresses):9} {inlined:8} {len(addresses) - len(different):6}"
              f" {counts[0]:7} {counts[1]:8} {counts[2]:7} {counts[3]:12}")
        for address in [a for a, r in zip(different, reasons) if r is None][:3]:
            print(f"  {address:#x}\n    ours    {mine[address]}\n    theirs  {eu[address]}\n    witness {other[address]}")
        total += len(addresses)
        failed += counts[3]
    print(f"{total} addresses, {failed} unexplained")
    if total < least or len(modules) < 10:
        sys.exit(f"FAIL: fewer than {least} addresses of 10 modules")
    sys.exit(failed > 0)


main()
