#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_frames.py PROGRAM FOLDER: copies of a program that still run, each with its call-frame information
broken in another way. Prints their names."""
import os
import random
import struct
import sys


def sections(data):
    """name -> (offset of its header, offset, size)"""
    header_offset = struct.unpack_from("<Q", data, 40)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58)
    names_offset = struct.unpack_from("<Q", data, header_offset + names * size + 24)[0]
    found = {}
    for i in range(count):
        at = header_offset + i * size
        name_at = names_offset + struct.unpack_from("<I", data, at)[0]
        name = bytes(data[name_at : data.index(0, name_at)]).decode()
        found[name] = (at, *struct.unpack_from("<QQ", data, at + 24))
    return found


def loaded_end(data):
    offset = struct.unpack_from("<Q", data, 32)[0]
    size, count = struct.unpack_from("<HH", data, 54)
    ends = []
    for i in range(count):
        if struct.unpack_from("<I", data, offset + i * size)[0] == 1:
            file_offset, _, _, bytes_in_file = struct.unpack_from("<QQQQ", data, offset + i * size + 8)
            ends.append(file_offset + bytes_in_file)
    return max(ends)


def fdes(data):
    """offsets of the FDEs, behind their lengths"""
    _, at, size = sections(data)[".eh_frame"]
    end = at + size
    while at + 8 <= end:
        length, pointer = struct.unpack_from("<II", data, at)
        if length == 0:
            return
        if pointer != 0:
            yield at + 4
        at += 4 + length


def truncated(data):
    del data[loaded_end(data) :]


def huge(data):
    for fde in fdes(data):
        struct.pack_into("<I", data, fde + 8, 0xFFFFFFFF)


def overlapping(data):
    for fde in fdes(data):
        struct.pack_into("<iI", data, fde + 4, sections(data)[".text"][1] - (fde + 4), 0x7FFFFFFF)


def cyclic(data):
    for number, fde in enumerate(fdes(data)):
        struct.pack_into("<I", data, fde, (4, 0xFFFFFFFC, 24)[number % 3])


def endless(data):
    _, at, _ = sections(data)[".eh_frame"]
    struct.pack_into("<IQ", data, at, 0xFFFFFFFF, 1 << 63)


def noise(data):
    _, at, size = sections(data)[".eh_frame"]
    data[at : at + size] = random.Random(1).randbytes(size)


def move(data, offset, size):
    at = sections(data)[".eh_frame"][0]
    struct.pack_into("<QQ", data, at + 24, offset, size)


def nowhere(data):
    move(data, 1 << 63, 1 << 62)


def bomb(data):
    """16 million bytes of FDEs, each over all of the code, each with many rows."""
    cie = struct.pack("<IIB3sBBBBB", 0x14, 0, 1, b"zR\0", 1, 0x78, 16, 1, 0x1B).ljust(24, b"\0")
    at, fde = len(data), bytearray(cie)
    text = sections(data)[".text"]
    rows = bytes([0x41, 0x0E, 16, 0x41, 0x0E, 8]) * 40
    body_bytes = (17 + len(rows) + 3) & ~3
    while len(fde) < 16_000_000:
        place = at + len(fde)
        body = struct.pack("<IiI", len(fde) + 4, text[1] - (place + 8) + len(fde) % 64, 0x7FFFFFFF) + b"\0" + rows
        fde += struct.pack("<I", body_bytes) + body.ljust(body_bytes, b"\0")
    data += fde + bytes(4)
    move(data, at, len(fde) + 4)


def main():
    original = open(sys.argv[1], "rb").read()
    for change in (truncated, huge, overlapping, cyclic, endless, noise, nowhere, bomb):
        data = bytearray(original)
        change(data)
        path = os.path.join(sys.argv[2], "bad_" + change.__name__)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        print(path)
    # 4 GB of zeros that take no room.
    data = bytearray(original)
    move(data, len(data), 0xFFFFFFF0)
    path = os.path.join(sys.argv[2], "bad_sparse")
    with open(path, "wb") as file:
        file.write(data)
        file.truncate(len(data) + 0xFFFFFFF0)
    os.chmod(path, 0o755)
    print(path)


if __name__ == "__main__":
    main()
