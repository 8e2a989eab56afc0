# SPDX-License-Identifier: Apache-2.0
"""Looks for secrets in a recording, NAME.fxt, and for what else there must be of their program, in NAME.json:

no_chain_bytes.py secrets NAME WORD_BYTES known|unknown   those of tests/workloads/secret_frame.c
no_chain_bytes.py openssl NAME KEY                        a key of AES-128 and its round keys, 8 bytes of them

Status 1 when any is found, or when too few samples of the program say that the kernel's chain left the code."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import timeline  # noqa: E402

SECRETS = 256
CODE = range(0x400000, 0x408000), range(0x8048000, 0x8050000)  # where the linker puts a small static program
BAD_MEMORY, NO_RULE = 5, 4
LEAST = 500  # of the 1,600 ticks of a program's 400 ms


def secret_bytes():
    x, out = 1, bytearray()
    for _ in range((SECRETS + 1) * 8):
        x = (1664525 * x + 1013904223) % 2**32
        out.append(0x80 + (x >> 16) % 0x70)
    return bytes(out)


def secret_words(word_bytes):
    """All words of the buffer, aligned or not, as an address is written: 8 bytes."""
    buffer = secret_bytes()
    return {buffer[at : at + word_bytes].ljust(8, b"\0"): at for at in range(len(buffer) - word_bytes + 1)}


def multiply(a, b):
    """In AES's field of 256."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def substitute(byte):
    inverse = next((x for x in range(256) if multiply(byte, x) == 1), 0)
    out = 0x63
    for turn in range(5):
        out ^= (inverse << turn | inverse >> (8 - turn)) & 0xFF
    return out


def round_keys(key):
    words, factor = [key[at : at + 4] for at in range(0, 16, 4)], 1
    while len(words) < 44:
        word = words[-1]
        if len(words) % 4 == 0:
            word = bytes(substitute(byte) for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ factor]) + word[1:]
            factor = multiply(factor, 2)
        words.append(bytes(a ^ b for a, b in zip(words[-4], word)))
    return b"".join(words)


def mix_back(word):
    """InvMixColumns of a column: what AES's own instructions decrypt with."""
    factors = (14, 11, 13, 9)
    terms = [[multiply(word[at], factors[(at - row) % 4]) for at in range(4)] for row in range(4)]
    return bytes(a ^ b ^ c ^ d for a, b, c, d in terms)


def key_words(key):
    schedule = round_keys(key)
    inverse = b"".join(mix_back(schedule[at : at + 4]) for at in range(16, 160, 4))
    # FIPS 197, A.1 and 4.2.3: or this test would look for something else.
    expected = "d014f9a8c9ee2589e13f0cc8b6630ca6"
    assert round_keys(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))[160:].hex() == expected
    assert mix_back(bytes.fromhex("8e4da1bc")).hex() == "db135345"
    return {keys[at : at + 8]: at for keys in (inverse, schedule) for at in range(len(keys) - 7)}


def find(name, words):
    """Where in the secret what is found begins; the file is looked through at every byte."""
    data = open(name + ".fxt", "rb").read()
    return {words[data[at : at + 8]] for at in range(len(data) - 7) if data[at : at + 8] in words}


def judge(name, found, seen, least):
    """`seen`: samples in which a chain led out of the code, so that there was something to keep out."""
    print(f"{name}: {len(found)} words of the secret found; {seen} samples whose chain led to data")
    if found:
        sys.exit(f"FAIL: {name}: the recording has secrets, those that begin at {sorted(found)[:8]}")
    if seen < least:
        sys.exit(f"FAIL: {name}: not {least} samples say that there was anything to find")


def judge_secrets(path, word_bytes, known):
    """Each stack is code alone. An unknown process has no more of it than the interrupted instruction."""
    name = path.rsplit("/", 1)[-1]
    seen = wrong = 0
    with open(path + ".json", encoding="utf-8") as dump:
        recording = timeline.Timeline(dump)
    for sample in recording.samples:
        stack = sample["stack"]
        if not stack or not any(stack[0] in code for code in CODE):
            continue
        if known and recording.process(sample) != "secret_frame" or not known and sample["pid"] != 0:
            continue
        wrong += not all(any(address in code for code in CODE) for address in stack) or not known and len(stack) > 1
        seen += sample["quality"]["stack"] == (BAD_MEMORY if known else NO_RULE)
    if wrong:
        print(f"{name}: {wrong} stacks are not of the program's code alone")
    judge(name, find(path, secret_words(word_bytes)), seen, LEAST)
    if wrong:
        sys.exit(1)


def judge_openssl(path, key):
    """The key's owner works in libcrypto, most of the time with rbp at the key."""
    with open(path + ".json", encoding="utf-8") as dump:
        recording = timeline.Timeline(dump)
    seen = 0
    for sample in recording.samples:
        seen += (recording.process(sample) == "openssl" and sample["quality"]["stack"] == BAD_MEMORY and
                 recording.modules(sample, 1)[0].startswith(("libcrypto", "openssl")))
    judge("openssl", find(path, key_words(key)), seen, LEAST)


def main():
    if sys.argv[1] == "secrets":
        judge_secrets(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "known")
    else:
        judge_openssl(sys.argv[2], bytes.fromhex(sys.argv[3]))


main()
