# SPDX-License-Identifier: Apache-2.0
"""Counts how many different words a text has, as one writes that in a hurry."""
import json, random

draw = random.Random(1)
text = [f"word{draw.randrange(9000)}" for _ in range(40000)]
seen = []
for word in text:
    if word not in seen:
        seen.append(word)
report = [json.dumps({"word": word, "length": len(word)}) for word in text]
print(len(seen), sum(map(len, report)))
