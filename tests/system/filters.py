# SPDX-License-Identifier: Apache-2.0
"""What filters.sh asks of its recordings, and the process that changes under the eyes of one.

    filters.py expect DUMP REPORT TASKS LABEL...   exactly the labelled tasks have samples; the books close
    filters.py chameleon COMM UID                  changes its name and its uid, and tells when
    filters.py migrant PROCS                       changes its cgroup, and tells when
    filters.py changes DUMP REPORT STORY...        holds a recording against what these told

TASKS has a line "LABEL PID TID" for each task that runs all the while. PROCS is the cgroup.procs of another
cgroup. STORY has a line "PID WHAT STATE BOOT_NS CPU_NS" for each moment.
"""
import ctypes
import json
import os
import sys
import time

PHASE_S = 4  # of uid and cgroup, which are read once a second, by a thread that has other work as well ...
NOTICED_S = 2.5  # ... so with one reading that fails or comes late, a change is noticed after two and a round
DRAINED_S = 0.5  # a sample is judged when it is read from its ring, by what the process is known to be then
PERIOD_NS = 1002001  # of the default rate
PIECE_S = 0.005
PR_SET_NAME = 15


def fail(text):
    print(f"FAIL: {text}")
    sys.exit(1)


def read_samples(dump):
    with open(dump, encoding="utf-8") as file:
        records = [json.loads(line) for line in file if '"record":"sample"' in line]
    # A completion is of several samples, of which each has its own record.
    return [(record["pid"], record["tid"], record["time_ns"]) for record in records if "pid" in record]


def check_books(report):
    with open(report, encoding="utf-8") as file:
        told = json.load(file)
    books = told["books"]
    for cpu in [*books["cpus"], books["total"]]:
        if cpu["received"] != cpu["kept"] + cpu["filtered"] + cpu["dropped"]:
            fail(f"{report}: the books do not close: {cpu}")
    total = books["total"]
    print(f"{os.path.basename(report)}: kept {total['kept']}, filtered {total['filtered']}")
    if told["samples"] != total["kept"] or total["dropped"] != 0 or total["filtered"] == 0:
        fail(f"{report}: {told['samples']} samples, and the books say {total}")


def expect(dump, report, tasks, *labels):
    check_books(report)
    with open(tasks, encoding="utf-8") as file:
        named = {(int(pid), int(tid)): label for label, pid, tid in map(str.split, file)}
    counts = dict.fromkeys([*named.values(), "others"], 0)
    for pid, tid, _ in read_samples(dump):
        counts[named.get((pid, tid), "others")] += 1
    for label, count in counts.items():
        if label not in labels and count > 0:
            fail(f"{label} has samples, in are {labels}: {counts}")
    print(counts)
    if any(counts[label] < 5 for label in labels):
        fail(f"a target has hardly a sample: {counts}")


def tell(what, state):
    print(os.getpid(), what, state, time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.process_time_ns(), flush=True)


def spin(seconds, cpu_seconds=0):
    """Until so much time has passed, and so much of it was spent here. It rests for seven eighths of the time: a spell of
    200 ticks comes in some 40 pieces, each of which has up to one sample more or less than its length says, with a
    standard deviation of at most 1/2; five of them all are 16 samples, and a target may lack 60."""
    end, cpu_end = time.monotonic() + seconds, time.process_time() + cpu_seconds
    while time.monotonic() < end or time.process_time() < cpu_end:
        piece_end = time.process_time() + PIECE_S
        while time.process_time() < piece_end:
            pass
        time.sleep(7 * PIECE_S)


def spell(what, state, seconds=PHASE_S, settle=NOTICED_S):
    """Tells from when to when the state must be as it is."""
    spin(settle)
    tell(what, state)
    spin(seconds - settle, 0.2)
    tell(what, state)


def chameleon(comm, uid):
    libc = ctypes.CDLL(None)
    set_name = lambda name: libc.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    spell("nothing", "out", 1, 0)
    # A name counts at once.
    set_name(comm)
    spell("comm", "in", 1, 0.001)
    set_name("nobody-asks-for")
    spell("comm", "out", 1, 0.001)
    spin(DRAINED_S)
    os.seteuid(int(uid))
    spell("uid", "in")
    os.seteuid(0)
    spell("uid", "out")


def migrant(procs):
    spell("nothing", "out", 1, 0)
    for folder, state in (os.path.dirname(procs), "in"), (os.path.join(os.path.dirname(procs), ".."), "out"):
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        spell("cgroup", state)


def changes(dump, report, *stories):
    check_books(report)
    times = {}
    for pid, _, time_ns in read_samples(dump):
        times.setdefault(pid, []).append(time_ns)
    moments = []
    for story in stories:
        with open(story, encoding="utf-8") as file:
            moments += [line.split() for line in file]
    strangers = times.keys() - {int(moment[0]) for moment in moments}
    if strangers:
        fail(f"processes that match nothing have samples: {strangers}")
    for begin, end in zip(moments[::2], moments[1::2]):
        pid, what, state = begin[:3]
        within = [time_ns for time_ns in times.get(int(pid), []) if int(begin[3]) <= time_ns < int(end[3])]
        count = len(within)
        ticks = (int(end[4]) - int(begin[4])) / PERIOD_NS
        print(f"{what} {state}: {count} samples, {ticks:.0f} ticks of CPU time")
        if ticks < 100:
            fail(f"{what} {state}: the process hardly ran")
        if (count > 0) if state == "out" else (count < 0.7 * ticks):
            after_ms = [(time_ns - int(begin[3])) // 1_000_000 for time_ns in within[:10]]
            fail(f"{what}: {state}, and it has {count} samples of {ticks:.0f}; first ms: {after_ms}")


{"expect": expect, "chameleon": chameleon, "migrant": migrant, "changes": changes}[sys.argv[1]](*sys.argv[2:])
