#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how often the handlers of the workload in_step were sampled with the CPU time that it measured.

phase.py RATE TICKS_US TRUTH REPORT: TICKS_US is in_step's list of ticks, TRUTH is what it printed, REPORT is `profctl
report --json -n 0`, or lines of function names as `perf script -F sym` prints them. Prints one line for each tick; the
exit status is 1 when a share is more than 5 standard deviations of as many independent samples away.
"""
import collections
import json
import math
import sys

TURNS = [f"work_{number}" for number in range(8)]


def counts_of(path):
    """Samples by function."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.startswith("{"):
        return {row["name"]: row["self"] for row in json.loads(text)["rows"] if row["name"] in TURNS}
    return collections.Counter(line.split("+")[0].strip() for line in text.splitlines())


def judge(rate, tick_us, handler, times, counts):
    """`handler` has the functions in which the handler of the tick has its turn."""
    count = sum(counts.get(name, 0) for name in TURNS)
    share = sum(times.get(name, 0) for name in handler) / sum(times.values())
    found = sum(counts.get(name, 0) for name in handler) / max(count, 1)
    bound = 5 * math.sqrt(share * (1 - share) / max(count, 1))
    good = count > 0 and abs(found - share) <= bound
    print(f"{rate:>6} Hz, tick {int(tick_us) / 1000:g} ms: truth {share:.4f} sampled {found:.4f} "
          f"(n {count}, bound {bound:.4f}){'' if good else ' WRONG'}")
    return good


def main():
    rate, ticks_us, truth_path, report_path = sys.argv[1:5]
    with open(truth_path, encoding="utf-8") as file:
        times = {name: int(cpu_ns) for name, cpu_ns in (line.split() for line in file)}
    counts = counts_of(report_path)
    verdicts = [judge(rate, tick_us, [name for number, name in enumerate(TURNS) if number >> i & 1], times, counts)
                for i, tick_us in enumerate(ticks_us.split(","))]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
