#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges for go_names.sh: go_names.py WHOLE STRIPPED TABLE, where TABLE is go_names_probe's output for STRIPPED."""
import collections
import re
import subprocess
import sys

TYPE_ARGUMENTS = re.compile(r"\[.*\]")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def text_of(path):
    """The address and the size of .text."""
    return next(line.split(" .text ")[1].split()[1:4:2] for line in run("readelf", "-SW", path) if " .text " in line)


def symbols_of(path):
    """What is code, by its address: (name, size)."""
    symbols = collections.defaultdict(list)
    for line in run("nm", "-S", "--defined-only", path):
        match = re.fullmatch(r"([0-9a-f]+)(?: ([0-9a-f]+))? [TtWw] (.*)", line)
        if match:
            symbols[int(match[1], 16)].append((match[3], int(match[2] or "0", 16)))
    return symbols


def difference(name, size, symbols):
    """In which way a function is not as its symbols have it; those that begin with WRONG are no way to be."""
    names = [symbol.removesuffix(".abi0") for symbol, _ in symbols]
    symbol_bytes = max((symbol_size for _, symbol_size in symbols), default=0)
    if not symbols:
        return "WRONG: no symbol is there"
    # The last byte of a jump may look like the padding that follows: no instruction begins there.
    if size not in (symbol_bytes, symbol_bytes - 1):
        return f"WRONG: {size} bytes where the symbol has {symbol_bytes}"
    if name in [symbol for symbol, _ in symbols]:
        return "same name"
    if name in names:
        return "same name, but for .abi0"
    if name in [TYPE_ARGUMENTS.sub("[...]", symbol) for symbol in names]:
        return "same name, but for [...]"
    return f"WRONG: another name than {names}"


def main():
    whole, stripped, table = sys.argv[1:]
    if text_of(whole) != text_of(stripped):
        sys.exit(f"{whole} and {stripped} are not laid out alike")
    symbols = symbols_of(whole)
    start, end = (next(address for address, found in symbols.items() if name in [symbol for symbol, _ in found])
                  for name in ("runtime.text", "runtime.etext"))
    ways, seen = collections.Counter(), set()
    for line in open(table, encoding="utf-8"):
        _, address, size, name = line.rstrip("\n").split(" ", 3)
        address, size = int(address, 16), int(size, 16)
        if start <= address < end:
            way = difference(name, size, symbols[address])
            seen.add(address)
            ways["a byte shorter"] += size < max((symbol_size for _, symbol_size in symbols[address]), default=0)
        elif name.endswith("@plt") or name in [symbol for symbol, _ in symbols[address]]:
            way = "not Go's"
        else:
            way = f"WRONG: a name of C, where {symbols[address]} is"
        if way.startswith("WRONG"):
            print(f"{address:x} {name}: {way}")
            way = "WRONG"
        ways[way] += 1
    missing = [address for address in symbols if start <= address < end and address not in seen]
    for address in missing:
        print(f"{address:x} has no name: {symbols[address]}")
    print(f"{stripped.split('/')[-1]:20} {len(seen):6} functions of Go, {len(missing)} missing;",
          ", ".join(f"{count} {way}" for way, count in sorted(ways.items())))
    sys.exit("WRONG" in ways or bool(missing) or not seen)


main()
