# SPDX-License-Identifier: Apache-2.0
"""
The samples in the output of `profctl dump --json`, for tests and benches: a partial gets its CPU from its
id, and from its completion the rest of its stack and its quality (docs/trace-format.md, "Continuation").
"""
import json


def whole_samples(lines):
    """Of the lines of a dump; see completed()."""
    return completed(map(json.loads, lines))


def completed(records):
    """Yields each sample as an object with `cpu`, `user_stack` and, where it is told, `quality`."""
    waiting = {}
    for record in records:
        if record["record"] == "segment":  # whose ids are its own
            for samples in waiting.values():
                yield from samples
            waiting = {}
        if record["record"] != "sample":
            continue
        completed = record.get("continuation_completion")
        if completed is not None:
            for sample in waiting.pop(completed, []):
                sample["user_stack"] += record.get("user_stack", [])
                yield {**record, **sample}
            continue
        record.setdefault("user_stack", [])
        partial = record.get("continuation")
        if partial is None:
            yield record
        else:
            record.setdefault("cpu", int(partial, 16) >> 48)
            waiting.setdefault(partial, []).append(record)
    for samples in waiting.values():
        yield from samples


def ticks_between(lines, period_ns):
    """CPU -> for each two of its samples that follow one another, how many ticks between them have none."""
    times = {}
    for sample in whole_samples(lines):
        times.setdefault(sample["cpu"], []).append(sample["time_ns"])
    return {cpu: [round((after - before) / period_ns) - 1 for before, after in zip(sorted(of_cpu), sorted(of_cpu)[1:])]
            for cpu, of_cpu in times.items()}
