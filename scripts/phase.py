#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how often the handler of the workload in_step was sampled with the CPU time that it measured.

phase.py RATE TICK_US TRUTH REPORT: TRUTH is what in_step printed, REPORT is `profctl report --json -n 0`, or lines of
function names as `perf script -F sym` prints them. Prints one line; the exit status is 1 when the share is more than
5 standard deviations of as many independent samples away.
"""
import collections
import json
import math
import sys

HANDLER, REST = "handler_of_the_tick", "rest_of_the_tick"


def counts_of(path):
    """Samples by function."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.startswith("{"):
        return {row["name"]: row["self"] for row in json.loads(text)["rows"] if row["name"] in (HANDLER, REST)}
    return collections.Counter(line.split("+")[0].strip() for line in text.splitlines())


def main():
    rate, tick_us, truth_path, report_path = sys.argv[1:5]
    with open(truth_path, encoding="utf-8") as file:
        truth = {name: int(cpu_ns) for name, cpu_ns in (line.split() for line in file)}
    counts = counts_of(report_path)
    handler, count = counts.get(HANDLER, 0), counts.get(HANDLER, 0) + counts.get(REST, 0)
    share = truth[HANDLER] / (truth[HANDLER] + truth[REST])
    found = handler / max(count, 1)
    bound = 5 * math.sqrt(share * (1 - share) / max(count, 1))
    good = count > 0 and abs(found - share) <= bound
    print(f"{rate:>6} Hz, tick {int(tick_us) / 1000:g} ms: truth {share:.4f} sampled {found:.4f} "
          f"(n {count}, bound {bound:.4f}){'' if good else ' WRONG'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
