#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long bench/phase.sh records at each rate: phase_plan.py PROFCTL RATE... prints lines `RATE SECONDS`.

A run judges a handler with a share p of 2.6 % of a tick by n = rate x seconds samples, with a bound of 5 standard
deviations, b = 5 sqrt(p (1 - p) / n). It is as long as two conditions need, and no longer:

- A handler that is never found must be wrong: p > b, that is n > 25 (1 - p) / p = 937. A third is added for the
  samples that fall on other programs.
- The samples stand at the multiples of the session's true period, so at the end a sweep of the tick is half done. From
  whichever phase they begin, the share that they find must not be off by more than b / 2; the other half is left to
  what the machine does at random. For each tick the worst phase is counted out, from all that there are.
"""
import json
import math
import subprocess
import sys
import tempfile

SHARE = 0.026
TICKS_NS = (1_000_000, 4_000_000, 10_000_000)
SAMPLES_MIN = 25 * (1 - SHARE) / SHARE * 4 / 3
SECONDS_MIN, SECONDS_MAX = 2, 60


def period_of(profctl, rate):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"frequency_hz": rate}, file)
        file.flush()
        answer = subprocess.run([profctl, "check", "--json", file.name], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["config"]["sample_period_ns"]


def worst_error(period_ns, count, tick_ns):
    """The largest difference between SHARE and the part of `count` samples in a window of that share of the tick."""
    phases = sorted(i * period_ns % tick_ns for i in range(count))
    width = SHARE * tick_ns
    around = phases + [phase + tick_ns for phase in phases]
    end = most = 0
    least = count
    for start in range(count):
        while around[end] < around[start] + width:
            end += 1
        most = max(most, end - start)  # the window begins at a sample,
        least = min(least, end - start - 1)  # or just behind it
    return max(most / count - SHARE, SHARE - least / count)


def seconds_of(period_ns):
    seconds = max(SECONDS_MIN, math.ceil(SAMPLES_MIN * period_ns / 1e9))
    while seconds < SECONDS_MAX:
        count = int(seconds * 1e9 / period_ns)
        bound = 5 * math.sqrt(SHARE * (1 - SHARE) / count)
        if all(worst_error(period_ns, count, tick_ns) <= bound / 2 for tick_ns in TICKS_NS):
            break
        seconds += 1
    return seconds


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for text in sys.argv[2:]:
        print(text, seconds_of(period_of(sys.argv[1], int(text))))
