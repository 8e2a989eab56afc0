# SPDX-License-Identifier: Apache-2.0
"""
lost_exec.py MODE FXT JSON RUNS: no secret of secret_words is in a recording in which records of execs were lost.
"""
import json
import sys

mode, fxt, dump, runs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
x = 1
secrets = []
for _ in range(256):
    word = 0
    for letter in range(6):
        x = (1664525 * x + 1013904223) % 2**32
        word |= (ord("a") + (x >> 16) % 26) << 8 * letter
    secrets.append(word.to_bytes(8, "little"))
with open(fxt, "rb") as file:
    recording = file.read()
found = [secret for secret in secrets if secret in recording]

lost = 0
with open(dump, encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        if record["record"] == "data" and record["name"] == "cpu-profilerd.books":
            lost = record["value"]["sideband_lost"]
print(f"{mode}: {len(found)} secrets {found[:4]}, {lost} records lost")
# Each run has more mappings and names than a ring has room for.
sys.exit(1 if found or lost < runs else 0)
