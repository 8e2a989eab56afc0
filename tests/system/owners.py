# SPDX-License-Identifier: Apache-2.0
"""
What runs in the control groups of system.owners, and what judges the recording.

run GROUP SECONDS        joins a group and spins
move SECONDS TIMES OUT GROUP...   goes round groups so many times, and writes between which times it was surely where
threads SECONDS GROUP GROUP       a thread in each of two threaded groups
flood SECONDS GROUP      makes and removes groups with long names below one, as fast as it can
judge DUMP FOLDER        holds a recording against what the programs wrote into FOLDER/NAME.truth
"""
import bisect
import collections
import json
import os
import sys
import threading
import time


def join(group, name="cgroup.procs", task=0):
    with open(f"{group}/{name}", "w") as file:
        file.write(str(task))


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def run(group, seconds):
    join(group)
    spin(float(seconds))


def move(seconds, times, out, *groups):
    """A line for each stay: pid, when it surely was there from and to, group."""
    stays = []
    for i in range(int(times)):
        group = groups[i % len(groups)]
        join(group)
        begin = boot_ns()
        spin(float(seconds) / int(times))
        stays.append((os.getpid(), begin, boot_ns(), group))
    with open(out, "w") as file:
        for stay in stays:
            print(*stay, file=file)


def threads(seconds, *groups):
    def work(group):
        join(group, "cgroup.threads", threading.get_native_id())
        spin(float(seconds))

    started = [threading.Thread(target=work, args=[group]) for group in groups]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def flood(seconds, group):
    end = time.monotonic() + float(seconds)
    count = 0
    deep = group
    for _ in range(8):  # the path is told with each of them
        deep += "/" + "d" * 250
        os.mkdir(deep)
    while time.monotonic() < end:
        names = [f"{deep}/{count + i}" for i in range(64)]
        for name in names:
            os.mkdir(name)
        for name in names:
            os.rmdir(name)
        count += len(names)
    while deep != group:
        os.rmdir(deep)
        deep = os.path.dirname(deep)
    print(f"{count} groups were made and removed")


def load(path):
    """Samples, and the lines of each process by time, read as docs/trace-format.md has them."""
    samples, lines = [], collections.defaultdict(list)
    with open(path) as file:
        for number, text in enumerate(file):
            record = json.loads(text)
            if record["record"] == "sample" and "pid" in record:
                samples.append((record["pid"], record["time_ns"]))
            elif record["record"] == "data" and record["name"] == "cpu-profilerd.processes":
                line = record["value"]
                lines[line["pid"]].append((int(line["boot_ts_ns"]), number, line))
    for told in lines.values():
        told.sort(key=lambda line: line[:2])
    return samples, lines


def line_at(lines, pid, time_ns):
    told = lines[pid]
    at = bisect.bisect_right([line[0] for line in told], time_ns)
    return told[at - 1][2] if at > 0 else {}


def judge(dump, folder, mount, allows_less):
    """Each sample within a stay has its group, or, where that is allowed, less than that, but no other."""
    samples, lines = load(dump)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".truth"):
            continue
        right = wrong = less = 0
        with open(f"{folder}/{name}") as file:
            stays = [line.split() for line in file]
        for pid, begin, end, group in stays:
            for of, time_ns in samples:
                if of == int(pid) and int(begin) < time_ns < int(end):
                    said = line_at(lines, of, time_ns)
                    path = group[len(mount):]
                    if said.get("cgroup") == path:
                        right += 1
                    elif "cgroup" not in said and said.get("unit", os.path.basename(path)) == os.path.basename(path):
                        less += 1
                    else:
                        wrong += 1
        print(f"{name}: {len(stays)} stays, {right} samples right, {less} told less, {wrong} wrong")
        if wrong > 0 or right == 0 or (less > 0 and name not in allows_less):
            sys.exit(f"FAIL: {name}")
    # The first, and two for each of 16 changes of the group, 16 of the unit and the last one.
    most = max(len(told) for told in lines.values())
    if most > 1 + 2 * 33:
        sys.exit(f"FAIL: a process has {most} lines")


def main():
    verb, *arguments = sys.argv[1:]
    if verb == "judge":
        judge(arguments[0], arguments[1], arguments[2], arguments[3:])
    else:
        {"run": run, "move": move, "threads": threads, "flood": flood}[verb](*arguments)


main()
