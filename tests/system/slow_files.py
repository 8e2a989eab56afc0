#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slow_files.py PROGRAM FILE: a copy of a program that runs as before, with a compressed .debug_frame of four million
functions. Each claims the end of the same code, the later one the longer end, so that sorting them and finding out
which one has what is as much work as there can be for a file of this size. Prints how many bytes the file has."""
import os
import struct
import sys
import zlib

FUNCTIONS = (1 << 22) - 1024  # the reader gives up a file with more


def debug_frame(address, code_bytes):
    cie = struct.pack("<IIB1sBBBBBBBB", 16, 0xFFFFFFFF, 1, b"\0", 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1) + bytes(2)
    starts = range(code_bytes - 2, 0, -1)
    period = b"".join(struct.pack("<IIQQ", 20, 0, address + start, code_bytes - start) for start in starts)
    periods, rest = divmod(FUNCTIONS, len(starts))
    packer = zlib.compressobj(1)
    parts = [packer.compress(cie)] + [packer.compress(period) for _ in range(periods)]
    parts.append(packer.compress(period[: rest * 24]) + packer.flush())
    size = len(cie) + FUNCTIONS * 24
    return struct.pack("<IIQQ", 1, 0, size, 1) + b"".join(parts)  # ELFCOMPRESS_ZLIB


def main():
    data = bytearray(open(sys.argv[1], "rb").read())
    headers = struct.unpack_from("<Q", data, 40)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58)
    names_header = headers + names * size
    names_at, names_bytes = struct.unpack_from("<QQ", data, names_header + 24)
    found = {}
    for i in range(count):
        at = headers + i * size
        name_at = names_at + struct.unpack_from("<I", data, at)[0]
        found[bytes(data[name_at : data.index(0, name_at)]).decode()] = at
    address, _, code_bytes = struct.unpack_from("<QQQ", data, found[".text"] + 16)
    section = debug_frame(address, code_bytes)
    # In the place of .comment, which nothing reads; with a name at the end of a longer list of names.
    names_list = bytes(data[names_at : names_at + names_bytes]) + b".debug_frame\0"
    struct.pack_into("<QQ", data, names_header + 24, len(data) + len(section), len(names_list))
    struct.pack_into("<IIQQQQ", data, found[".comment"], names_bytes, 1, 0x800, 0, len(data), len(section))
    # Without symbols each of the functions counts; with some, only those do that one begins and ends with.
    struct.pack_into("<I", data, found[".symtab"] + 4, 1)
    with open(sys.argv[2], "wb") as file:
        file.write(data + section + names_list)
    os.chmod(sys.argv[2], 0o755)
    print(os.stat(sys.argv[2]).st_size)


if __name__ == "__main__":
    main()
