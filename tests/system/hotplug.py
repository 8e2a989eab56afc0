# SPDX-License-Identifier: Apache-2.0
"""A CPU goes offline and comes back: hotplug.py STORY SOCKET PID CPU, a sampler's client that turns it off and
on itself. The caller has the CPU online again at the end."""
import os
import random
import sys
import threading
import time

from sampler import Connection, until

PERIOD_NS = 250000
CONFIG = {"sample_period_ns": PERIOD_NS, "unwind": "fp", "exclude_self": False}
TERMS = ("received", "lost", "throttled", "missed", "idle", "unexplained")


class Cpu:
    def __init__(self, number):
        self.number = number
        self.path = "/sys/devices/system/cpu/cpu%d/online" % number

    def turn(self, on):
        """Returns when it was begun and when it was done, as CLOCK_MONOTONIC has it."""
        began = time.monotonic_ns()
        with open(self.path, "w", encoding="ascii") as file:
            file.write("1" if on else "0")
        return began, time.monotonic_ns()


def status(connection):
    return connection.call("Status")["status"]["session"]


def row(session, cpu):
    return next((c for c in session["books"]["cpus"] if c["cpu"] == cpu.number), None)


def has_returned(connection, times):
    return lambda: status(connection)["cpus_returned"] >= times


def stop(connection):
    connection.call("Stop")
    return status(connection)


def close_books(session, runs):
    """Each of the runs of a CPU's timer, a start or a return begins one, has the bounds of one start: the parts
    of a period at both its ends, and a sample that may belong before or after a switch.
    All together differ by what the two clocks do."""
    names = ("cpu", "expected") + TERMS + ("offline_ns",)
    for c in session["books"]["cpus"]:
        print(*("%s %d" % (name, c[name]) for name in names), sep=", ")
        assert c["expected"] == sum(c[name] for name in TERMS), c
        assert c["received"] == c["kept"] + c["filtered"] + c["dropped"], c
        assert c["lost"] == 0, c
        bound = max(c["expected"] / 1000, 2) + 2 * runs
        # Where switch records were given up for a while, ticks that are missed meanwhile stay unexplained.
        bound += c["expected"] / 100 if c["idle_source"] != "switches" else 0
        assert abs(c["unexplained"]) <= bound, (c, bound)
        assert c["steal_ns"] < 60e9, "steal of another time"


def returns(connection, cpu):
    """Three times within a session: the time offline is what it was, and samples come again at once."""
    connection.call("Create", config=CONFIG)
    connection.call("Start")
    least = most = 0
    for times in range(3):
        time.sleep(0.7)
        off_begun, off_done = cpu.turn(False)
        time.sleep(0.3)
        on_begun, _ = cpu.turn(True)
        until(5, has_returned(connection, times + 1))
        back = time.monotonic_ns()
        least += on_begun - off_done
        most += back - off_begun
        received = row(status(connection), cpu)["received"]
        time.sleep(0.7)
        more = row(status(connection), cpu)["received"] - received
        print("away for %.0f to %.0f ms, then %d samples in 0.7 s" % (
            (on_begun - off_done) / 1e6, (back - off_begun) / 1e6, more))
        # Half of the ticks of a busy CPU: who else has it is the hypervisor's to know.
        assert more >= 1400, more
    session = stop(connection)
    close_books(session, 4)
    assert least <= row(session, cpu)["offline_ns"] <= most, (least, row(session, cpu), most)
    assert all(c["offline_ns"] == 0 for c in session["books"]["cpus"] if c["cpu"] != cpu.number)
    assert session["cpus_refused"] == 0, session
    connection.call("Close")


def states(connection, cpu):
    """Offline at Create, between Create and Start, between Stop and Start, at Stop, at Close."""
    cpu.turn(False)
    connection.call("Create", config=CONFIG)
    connection.call("Start")
    time.sleep(0.2)
    assert row(status(connection), cpu) is None, "a CPU that was never there is in the books"
    on_begun, _ = cpu.turn(True)
    until(5, has_returned(connection, 1))
    time.sleep(0.5)
    session = stop(connection)
    close_books(session, 1)
    assert row(session, cpu)["received"] > 100 and row(session, cpu)["offline_ns"] > 2e8, session
    cpu.turn(False)
    connection.call("Start")
    time.sleep(0.2)
    cpu.turn(True)
    until(5, has_returned(connection, 2))
    cpu.turn(False)
    cpu.turn(True)
    until(5, has_returned(connection, 3))
    cpu.turn(False)
    session = stop(connection)
    close_books(session, 4)
    connection.call("Close")
    cpu.turn(True)

    connection.call("Create", config=CONFIG)
    cpu.turn(False)
    connection.call("Start")
    time.sleep(0.3)
    session = stop(connection)
    close_books(session, 1)
    assert 2e8 < row(session, cpu)["offline_ns"] < 6e8 and row(session, cpu)["expected"] == 0, session
    cpu.turn(True)
    until(5, has_returned(connection, 1))
    connection.call("Start")
    time.sleep(0.5)
    session = stop(connection)
    close_books(session, 2)
    assert row(session, cpu)["received"] > 100, session
    cpu.turn(False)
    connection.call("Close")
    cpu.turn(True)


def others(connection, cpu):
    """A CPU that is not sampled: nothing of it in the books, its sideband is taken up again."""
    rest = next(n for n in sorted(os.sched_getaffinity(0)) if n != cpu.number)
    connection.call("Create", config={**CONFIG, "cpus": str(rest)})
    connection.call("Start")
    cpu.turn(False)
    cpu.turn(True)
    until(5, has_returned(connection, 1))
    session = stop(connection)
    close_books(session, 1)
    assert [c["cpu"] for c in session["books"]["cpus"]] == [rest], session
    connection.call("Close")


def belongings(pid):
    """Descriptors and mappings of rings."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        rings = sum("[perf_event]" in line for line in maps)
    return len(os.listdir("/proc/%d/fd" % pid)), rings


def is_left(pid, before):
    """Whether what a round left would show. The worker that was there at first for slow files may have ended."""
    descriptors, rings = belongings(pid)
    return descriptors > before[0] or rings != before[1]


def storm(connection, cpu, pid):
    """Twenty rounds: every one is followed, and nothing is left behind."""
    connection.call("Create", config=CONFIG)
    connection.call("Start")
    before = belongings(pid)
    for times in range(20):
        cpu.turn(False)
        cpu.turn(True)
        until(5, has_returned(connection, times + 1))
    until(5, lambda: not is_left(pid, before))
    session = stop(connection)
    close_books(session, 21)
    print("20 rounds, %d descriptors and %d rings before and after" % before)
    connection.call("Close")


def refused(connection, cpu, pid):
    """No descriptors are left when it comes back: that is said, and done better when there are some again."""
    import resource
    connection.call("Create", config=CONFIG)
    connection.call("Start")
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    cpu.turn(False)
    # The least number that is not in use is the one that the next descriptor would have.
    used = {int(name) for name in os.listdir("/proc/%d/fd" % pid)}
    least = min(n for n in range(limits[0]) if n not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (least, limits[1]))
    cpu.turn(True)
    until(5, lambda: status(connection)["cpus_refused"] == 1)
    time.sleep(1.2)
    assert status(connection)["cpus_refused"] == 1, "counted again"
    others_received = [c["received"] for c in status(connection)["books"]["cpus"] if c["cpu"] != cpu.number]
    assert min(others_received) > 0, "the others have stopped"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    until(5, has_returned(connection, 1))
    close_books(stop(connection), 2)
    connection.call("Close")


def races(connection, cpu):
    """Start, Stop and Close at any moment of a CPU that goes and comes."""
    over = threading.Event()

    def turn_on_and_off():
        while not over.is_set():
            cpu.turn(False)
            time.sleep(random.random() / 20)
            cpu.turn(True)
            time.sleep(random.random() / 20)

    turner = threading.Thread(target=turn_on_and_off)
    turner.start()
    try:
        limit = time.monotonic() + 3
        rounds = runs = 0
        while time.monotonic() < limit:
            connection.call("Create", config=CONFIG)
            for _ in range(random.randrange(4)):
                connection.call("Start")
                runs += 1
                time.sleep(random.random() / 10)
                session = stop(connection)
                for c in session["books"]["cpus"]:
                    assert c["expected"] == sum(c[name] for name in TERMS), c
            connection.call("Close")
            rounds += 1
        print("%d sessions, %d runs" % (rounds, runs))
    finally:
        over.set()
        turner.join()


if __name__ == "__main__":
    story, path, daemon, cpu_number = sys.argv[1:]
    arguments = [Connection(path), Cpu(int(cpu_number))]
    if story in ("storm", "refused"):
        arguments.append(int(daemon))
    print("==", story)
    began = time.monotonic()
    globals()[story](*arguments)
    print("%s took %.1f s" % (story, time.monotonic() - began))
