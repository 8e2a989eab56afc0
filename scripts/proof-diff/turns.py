# SPDX-License-Identifier: Apache-2.0
"""Work of several kinds, in turns: turns.py SECONDS. Prints at its end how many there were, as `turns number`."""
import json, random, re, sys, time, zlib

WORDS = ["word%d" % number for number in range(400)]


def shuffle():
    words = WORDS[:]
    random.shuffle(words)
    return words


def count(words):
    table = {}
    for word in words * 5:
        table[word] = table.get(word, 0) + len(word)
    return table


def add_numbers(text):
    return sum(int(number) for number in re.findall(r"\d+", text))


def take_turn():
    words = shuffle()
    text = json.dumps(count(words), indent=1)
    add_numbers(text)
    zlib.compress(text.encode())
    sorted(words, key=lambda word: word[::-1])


end = time.monotonic() + float(sys.argv[1])
turns = 0
while time.monotonic() < end:
    take_turn()
    turns += 1
print("turns", turns)
