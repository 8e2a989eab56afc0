# SPDX-License-Identifier: Apache-2.0
"""A program that knows its own waits, and what a recording says of them whose switch records were off for most of the time.

switched_off.py nap: threads nap and work by turns, and note each moment at which they have a CPU; `napping` says that all
do. Until SIGUSR1 a brief thread begins ten times a second. Then the first one ends, and `ended` says so; at SIGTERM all, and
the moments are printed: `thread TID`, and of each moment a line `TIME_NS CPU_NS`; `brief TID BEGIN_NS END_NS` of each brief one.

switched_off.py judge TRUTH DUMP RATES: TRUTH is what the program printed, DUMP is `profctl dump --json` of a recording that
began and ended meanwhile, RATES has a line `CPU SWITCHES_A_SECOND` for each CPU that was kept busy.
"""
import bisect
import os
import signal
import sys
import threading
import time

from event_dump import read_dump

THREADS = 4
NAP_S, WORK_NS = 0.015, 4_000_000
LONG_NAP_S, LONG_EACH = 0.06, 10  # one nap in so many is longer than MIN_WAIT_NS
MIN_WAIT_NS = 40_000_000  # min_wait_us of switched_off.sh
# max_cost_percent is 1: of 1 % of a second a quarter is for samples, and a switch costs 2,200 ns (wait_rate.c).
SWITCHES_MAX = 10_000_000 * 3 // 4 // 2_200
TICK_NS = 10_000_000


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)


def nap(moments, stop):
    moments.append(now())
    count = 0
    while not stop.is_set():
        count += 1
        time.sleep(NAP_S if count % LONG_EACH else LONG_NAP_S)
        moments.append(now())
        until_ns = moments[-1][1] + WORK_NS
        while time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) < until_ns:
            pass
        moments.append(now())


class Brief:
    """A thread that has gone soon; it began after begin_ns and ended before end_ns, which is 0 while it is there."""

    def __init__(self):
        self.begin_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.end_ns = 0
        thread = threading.Thread(target=self.nap)
        thread.start()
        self.tid = thread.native_id

    @staticmethod
    def nap():
        for _ in range(8):
            time.sleep(NAP_S)  # short: no wait of its is written, unless others have the CPUs


    def look(self):
        if self.end_ns == 0 and not os.path.exists(f"/proc/self/task/{self.tid}"):
            self.end_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def run_brief_ones():
    briefs = []
    count = 0
    while signal.sigtimedwait({signal.SIGUSR1}, 2 * NAP_S) is None:
        count += 1
        if count % 3 == 0:
            briefs.append(Brief())
        for brief in briefs:
            brief.look()
    while any(brief.end_ns == 0 for brief in briefs):
        time.sleep(0.01)
        for brief in briefs:
            brief.look()
    return briefs


def run():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    threads = []
    for _ in range(THREADS):
        moments, stop = [], threading.Event()
        threads.append((threading.Thread(target=nap, args=(moments, stop)), moments, stop))
        threads[-1][0].start()
    tids = [thread.native_id for thread, _, _ in threads]
    while not all(moments for _, moments, _ in threads):
        time.sleep(0.01)
    print("napping", flush=True)
    briefs = run_brief_ones()
    threads[0][2].set()
    threads[0][0].join()
    print("ended", flush=True)
    signal.sigwait({signal.SIGTERM})
    for (thread, moments, stop), tid in zip(threads, tids):
        stop.set()
        thread.join()
        print("thread", tid)
        for moment in moments:
            print(*moment)
    for brief in briefs:
        print("brief", brief.tid, brief.begin_ns, brief.end_ns)


def read_truth(path):
    threads, briefs = {}, {}
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "thread":
                threads[int(words[1])] = moments = []
            elif words[0] == "brief":
                briefs[int(words[1])] = (int(words[2]), int(words[3]))
            elif len(words) == 2:
                moments.append(tuple(map(int, words)))
    return threads, briefs


def judge_samples(tid, moments, samples):
    """At each moment the thread had a CPU, so each of its waits lies between two moments that follow each other, and is no
    longer than the time between them. A wait that is written took MIN_WAIT_NS at least: so did that time. Had the thread
    been taken for one that waits while nothing was recorded of it, a second at a time, its wait would end between two
    moments that are one nap, or what it works, apart."""
    times = [moment[0] for moment in moments]
    count = 0
    for sample in samples:
        place = bisect.bisect_left(times, sample["time_ns"])
        if sample["tid"] == tid and 0 < place < len(times):
            gap_ns = times[place] - times[place - 1]
            assert gap_ns >= MIN_WAIT_NS, f"thread {tid}: a wait is written where it took {gap_ns} ns at the most: {sample}"
            count += 1
    return count


def judge_line(tid, moments, line, steal_ns):
    """What the books say is of a part of what was. The thread's own CPU time is known at its moments, so between two bounds
    at the ends of the line. On a CPU it was for that long at the most, and on none for the rest at the most. Of that the
    books know what the records tell, and of a thread that lives the scheduler's sums, which are a tick (TICK_NS) old at each
    end. While the hypervisor has the CPU a thread has no CPU time. 1 % of wall: what the kernel takes to find the next
    thread, in some 50 switches a second, is in the CPU time of the one or of the other.

    Had the thread been taken for one that waits while nothing was recorded, `blocked` would have what it worked then: of
    some 25 ms, NAP_S and WORK_NS, a sixth."""
    wall, running, off = line["wall_ns"], line["running_ns"], line["waiting_ns"] + line["blocked_ns"]
    times = [moment[0] for moment in moments]
    begin, end = line["boot_ts_ns"], line["boot_ts_ns"] + wall
    before, after = bisect.bisect_right(times, begin), bisect.bisect_right(times, end)
    assert before > 0, "it did not run before the recording"
    most_ns = moments[min(after, len(moments) - 1)][1] - moments[before - 1][1]
    least_ns = moments[after - 1][1] - moments[before][1]
    slack_ns = wall // 100 + 2 * TICK_NS + steal_ns
    print(f"thread {tid}, by {line['source']}: wall {wall} running {running} waiting {line['waiting_ns']} "
          f"blocked {line['blocked_ns']} unexplained {line['unexplained_ns']}, CPU time {least_ns} to {most_ns}")
    assert wall == running + off + line["unexplained_ns"], line
    assert 0 < running <= most_ns + slack_ns, "running"
    assert 0 < line["blocked_ns"] and off <= wall - least_ns + slack_ns, "waiting and blocked"


def judge_briefs(briefs, lines, samples):
    """Most of them begin, and many end, while no switch is recorded. A line may tell less than the thread's life, not more, and
    a wait lies within it. Returns how many waits are written."""
    told = {tid: lines[tid] for tid in briefs if tid in lines}
    print(f"{len(told)} of {len(briefs)} brief threads have a line")
    assert told, "no brief thread has a line"
    for tid, line in told.items():
        begin, end = briefs[tid]
        assert begin <= line["boot_ts_ns"] and line["boot_ts_ns"] + line["wall_ns"] <= end, f"it lived from {begin} to {end}: {line}"
    written = [sample for sample in samples if sample["tid"] in briefs]
    for sample in written:
        begin, end = briefs[sample["tid"]]
        assert begin <= sample["time_ns"] <= end and sample["weight"] <= end - begin, f"it lived from {begin} to {end}: {sample}"
    return len(written)


def judge_books(books, rates):
    """A CPU that had more switches a second than may be recorded, on average, had them in one of the spans that are judged
    (a tenth of a second and more), and was switched off. So was one at least, or nothing was tried."""
    limited = 0
    for cpu in books["events"][0]["cpus"]:
        rate = rates.get(cpu["cpu"], 0)
        print(f"cpu {cpu['cpu']}: {rate:.0f} switches a second, held back for {cpu['held_back_ns']} of {cpu['enabled_ns']} ns, "
              f"{cpu['lost']} waits uncertain, {cpu['short']} short")
        assert cpu["held_back_ns"] <= cpu["enabled_ns"], cpu
        if rate > SWITCHES_MAX:
            limited += 1
            assert cpu["held_back_ns"] > 0, cpu
    assert limited > 0, "no CPU had more switches than may be recorded"
    for event in books["events"]:
        total = event["total"]
        assert total["counted"] == total["sampled"] + total["short_ns"] + total["lost_ns"] + total["unexplained"], event
        assert total["held_back_ns"] == sum(cpu["held_back_ns"] for cpu in event["cpus"]), event
    assert books["events"][0]["total"]["lost"] > 0, "no wait is uncertain"


def judge(truth, dump, rates):
    threads, briefs = read_truth(truth)
    samples, data, lines = read_dump(dump)
    lines = {line["tid"]: line for line in lines}
    with open(rates, encoding="ascii") as file:
        rates = {int(cpu): float(rate) for cpu, rate in map(str.split, file)}
    books = data["books"]
    judge_books(books, rates)
    steal_ns = books["total"]["steal_ns"] + TICK_NS * len(books["cpus"])
    assert len(threads) == THREADS
    written = sum(judge_samples(tid, moments, samples) for tid, moments in threads.items())
    written += judge_briefs(briefs, lines, samples)
    print(f"{written} waits of these threads are written, {len(samples)} of the program")
    assert samples, "no wait is written, though each thread had long ones"
    for tid, moments in threads.items():
        judge_line(tid, moments, lines[tid], steal_ns)
    assert lines[next(iter(threads))]["source"] == "switches", "the thread that has ended was read at the end"


if sys.argv[1] == "nap":
    run()
else:
    judge(*sys.argv[2:])
