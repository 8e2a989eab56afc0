# SPDX-License-Identifier: Apache-2.0
"""Waits of a recording by the function that waits, against what the program measured itself.

wait_names.py LANGUAGE TRUTH OFF_CPU PREEMPTED: TRUTH is what the program has printed, the others are ndjson of both events.
"""
import json
import re
import sys

WITHIN = 0.005  # of wall

# What a recording calls the functions that TRUTH names. Python before 3.12 has none of a program's own: these are of the
# interpreter and of libc, which have them as symbols however they were built.
NAMES = {
    "go": {f"main.{name}": rf"^main\.{name}$" for name in ("waitInSleep", "waitInPipe", "waitForLock")},
    "python": {"wait_in_sleep": "^clock_nanosleep", "wait_in_pipe": "^_Py_read$", "wait_for_lock": "^PyThread_acquire_lock_timed$"},
    "named_python": {name: f"^py::{name}:" for name in ("wait_in_sleep", "wait_in_pipe", "wait_for_lock")},
    "java": {f"WaitNames.{name}": rf" WaitNames\.{name}\(" for name in ("waitInSleep", "waitInPipe", "waitForLock")},
}
IN_RUNTIME = "main.waitInRuntime"
OF_RUNTIME = r"^runtime\.(futex|epollwait|netpoll|usleep)"


def read_truth(path):
    sums, rest = {}, {}
    with open(path, encoding="ascii") as file:
        for line in file:
            name, *value = line.split()
            if name in ("wall_ns", "from_s"):
                rest[name] = float(value[0])
            elif value:
                sums[name] = sums.get(name, 0) + int(value[0])
    return sums, rest["wall_ns"], rest.get("from_s", 0) * 1e9


class Recording:
    """The waits of an event: their weights, and the names of their frames, the innermost first."""

    def __init__(self, path, from_ns):
        frames, stacks, self.waits = {}, {}, []
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row["table"] == "frame":
                    frames[row["frame"]] = row["name"]
                elif row["table"] == "stack":
                    stacks[row["stack"]] = [frames[frame] for frame in row["frames"]]
                elif row["table"] == "sample" and row["boot_ns"] > from_ns:
                    self.waits.append((row["weight"], row["stack"]))
        self.stacks = stacks

    def sums(self, names):
        """Of each wait, what the innermost of the named functions is; None: it is in another."""
        sums, of_stack = dict.fromkeys([*names, None], 0), {}
        for stack, frames in self.stacks.items():
            of_stack[stack] = next((name for frame in frames for name, called in names.items() if re.search(called, frame)), None)
        for weight, stack in self.waits:
            sums[of_stack[stack]] += weight
        return sums


def judge_runtime(truth_ns, off_cpu):
    """A goroutine that waits has no thread; a thread without a goroutine waits in the runtime."""
    sums = off_cpu.sums({IN_RUNTIME: f"^{IN_RUNTIME}$", "runtime": OF_RUNTIME})
    print(f"  {IN_RUNTIME} has {sums[IN_RUNTIME] / 1e6:.3f} ms of {truth_ns / 1e6:.3f}, the runtime {sums['runtime'] / 1e6:.3f}")
    assert sums[IN_RUNTIME] < 0.01 * truth_ns < sums["runtime"], IN_RUNTIME


def main():
    language = sys.argv[1]
    truth, wall_ns, from_ns = read_truth(sys.argv[2])
    names = NAMES[language]
    off_cpu, preempted = Recording(sys.argv[3], from_ns), Recording(sys.argv[4], from_ns)
    blocked, inside = off_cpu.sums(names), preempted.sums(names)
    print(f"  {len(off_cpu.waits)} waits, {blocked[None] / 1e6:.3f} ms of them in none of these functions")
    if language == "go":
        judge_runtime(truth.pop(IN_RUNTIME), off_cpu)
    assert set(truth) == set(names), truth
    for name in names:
        # A thread that was woken, and lost its CPU, is still within what it measures.
        sampled_ns = blocked[name] + inside[name]
        off = abs(sampled_ns - truth[name]) / wall_ns
        print(f"  {name:<24} {sampled_ns / 1e6:>10.3f} ms, measured {truth[name] / 1e6:>10.3f} ms: {100 * off:.3f} % of wall apart")
        assert off <= WITHIN and truth[name] > 0, name


main()
