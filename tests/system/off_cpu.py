# SPDX-License-Identifier: Apache-2.0
"""Waits and books of threads in a recording, against what their program measured itself.

off_cpu.py SOURCE DUMP FOLDER KIND...: SOURCE is where the books must come from, DUMP is `profctl dump --json` of a
recording with off_cpu, and FOLDER/KIND.truth is what known_waits of each KIND has printed in it.
"""
import sys

from event_dump import read_dump

OFF_CPU, PREEMPTED = 1, 2
WAITS_IN = {"nap": ["wait_in_nap"], "pipe": ["wait_in_nap", "wait_in_pipe"], "lock": ["wait_in_nap", "wait_for_lock"],
            "disk": ["wait_for_disk", "wait_in_nap"], "share": []}
WITHIN = 0.005  # of wall
TICK_NS = 10_000_000
NAMES = "pid tid from_ns to_ns wait_ns cpu_ns delay_ns voluntary involuntary".split()


def read_truth(path):
    functions, threads = {}, []
    with open(path, encoding="ascii") as file:
        for line in file:
            kind, name, *words = line.split()
            if kind == "function":
                functions[name] = tuple(int(word, 16) for word in words)
            elif kind == "thread":
                threads.append({"name": name, **dict(zip(NAMES, map(int, words)))})
    return functions, threads


def ms(time_ns):
    return f"{time_ns / 1e6:.3f}"


def near(what, value, truth, wall, steal=0):
    off = abs(value - truth)
    print(f"  {what:<24} {ms(value):>12} ms, measured {ms(truth):>12} ms: {100 * off / wall:.3f} % of wall apart")
    assert off <= WITHIN * wall + steal, what


def judge_samples(kind, functions, thread, samples, steal):
    """What ended while the thread measured, but for its last moments, where it tells what it measured. While the
    hypervisor has its CPU a thread has no CPU time, so it takes that for ready; the CPU's switches do not."""
    own = [s for s in samples if s["tid"] == thread["tid"] and thread["from_ns"] < s["time_ns"] <= thread["to_ns"]]
    wall = thread["to_ns"] - thread["from_ns"]
    blocked = sum(s["weight"] for s in own if s["event"] == OFF_CPU)
    preempted = sum(s["weight"] for s in own if s["event"] == PREEMPTED)
    if kind == "share":
        near("preempted, by samples", preempted, thread["delay_ns"], wall, steal)
    else:
        # A wait's end by the clock comes when the thread has its CPU again, as a switch does; where it was preempted
        # within, that is in the measured time, too.
        inside = sum(s["weight"] for s in own if s["event"] == PREEMPTED and is_in(kind, functions, s))
        near("off-cpu, by samples", blocked + inside, thread["wait_ns"], wall, steal)
    named = sum(s["weight"] for s in own if s["event"] == OFF_CPU and is_in(kind, functions, s))
    print(f"  {len(own)} samples; {100 * named / max(blocked, 1):.2f} % of the blocked time in {WAITS_IN[kind]}")
    # Else the thread waits in its start and, for a moment, for the kernel.
    assert kind == "share" or named >= 0.99 * blocked, kind


def within(address, code):
    return code[0] < address <= code[1]


def is_in(kind, functions, sample):
    return any(within(address, functions[name]) for name in WAITS_IN[kind] for address in sample["stack"])


def life_of(line):
    begin = int(line["boot_ts_ns"])
    return begin, begin + line["wall_ns"]


def judge_life(source, thread, line, stop_ns, made_ns):
    """A thread's time begins before what it measures, and ends behind that: where it lives on, with the sampling."""
    begin, end = life_of(line)
    assert begin <= thread["from_ns"] and thread["to_ns"] <= end <= made_ns, (line, thread, made_ns)
    assert source == "switches" or end == stop_ns, (line, stop_ns)


def judge_line(source, thread, line, steal):
    """Of wall, unexplained is what the other terms leave."""
    wall, ready = line["wall_ns"], line["waiting_ns"]
    blocked = wall - thread["cpu_ns"] - thread["delay_ns"]
    print(f"  books, by {line['source']}: wall {ms(wall)} running {ms(line['running_ns'])} ready {ms(ready)} "
          f"blocked {ms(line['blocked_ns'])} unexplained {ms(line['unexplained_ns'])}")
    assert line["source"] == source, line
    # The scheduler counts nothing for a thread while the hypervisor has its CPU.
    assert abs(line["unexplained_ns"]) <= 0.001 * wall + steal, "unexplained"
    if source == "schedstat":
        near("running", line["running_ns"], thread["cpu_ns"], wall)
        near("ready", ready, thread["delay_ns"], wall)
        near("blocked", line["blocked_ns"], blocked, wall, steal)
    else:
        near("running", line["running_ns"], thread["cpu_ns"], wall, steal)
        near("ready and blocked", ready + line["blocked_ns"], thread["delay_ns"] + blocked, wall, steal)


def judge_books(data, samples):
    for number, event in enumerate(data["books"]["events"], 1):
        total = event["total"]
        assert total["kept"] == sum(1 for s in samples if s["event"] == number), event
        assert total["received"] == total["kept"] + total["filtered"] + total["dropped"], event
        assert total["unexplained"] == total["not_sampled"] == total["standard_error_ns"] == 0, event
        assert total["counted"] == total["sampled"] + total["short_ns"] + total["lost_ns"], event
        print(f"{event['event']}: {total['received']} waits, {total['kept']} kept, {total['short']} short, "
              f"{total['lost']} uncertain, {total['without_stack']} without a stack")


def judge_kind(kind, source, truth, samples, lines, steal, stop_ns, made_ns):
    functions, threads = read_truth(truth)
    assert threads, "the program has told nothing"
    seen = set()
    for thread in threads:
        print(f"{kind}, {thread['name']} thread {thread['tid']}")
        judge_samples(kind, functions, thread, samples, steal)
        seen |= {name for name in WAITS_IN[kind] for s in samples
                 if s["tid"] == thread["tid"] and any(within(a, functions[name]) for a in s["stack"])}
        judge_life(source, thread, lines[thread["tid"]], stop_ns, made_ns)
        judge_line(source, thread, lines[thread["tid"]], steal)
    assert seen == set(WAITS_IN[kind]), seen


def main():
    source, dump, folder, *kinds = sys.argv[1:]
    samples, data, lines = read_dump(dump)
    lines = {line["tid"]: line for line in lines}
    events = data["session"]["events"]
    assert [(e["event"], e["unit"]) for e in events] == [("cpu-clock", "ns"), ("off-cpu", "ns"), ("preempted", "ns")], events
    judge_books(data, samples)
    # It is known to 10 ms of each CPU.
    steal = data["books"]["total"]["steal_ns"]
    print(f"the hypervisor took {ms(steal)} ms")
    steal += TICK_NS * len(data["books"]["cpus"])
    stop_ns = max(life_of(line)[1] for line in lines.values())
    for kind in kinds:
        judge_kind(kind, source, f"{folder}/{kind}.truth", samples, lines, steal, stop_ns, int(data["books"]["at_boot_ns"]))


main()
