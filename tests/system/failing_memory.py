# SPDX-License-Identifier: Apache-2.0
"""
Sessions while the daemon's allocations fail at random: failing_memory.py SOCKET PID PLAN FOLDER SECONDS SEED.

PLAN is the file that failing_memory.c looks into. Each round has a seed, and so many of a million allocations
that fail, from before Create or from after it until the client has done what clients do: whatever it is told, it
is told, or cut off. Then nothing fails any more: the session that is left is stopped and read, its recording
can be parsed, its books add up, and what it held has been given back. Every few rounds a session without failures is
whole, and has the names of the very programs that ran meanwhile.
"""
import contextlib
import itertools
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import time

from sampler import Connection, admitted, until

FAILED_MIN = 100
SECONDS_MAX = 60
RATES = (1000, 10000, 50000, 200000, 500000)  # of a million
CONFIGS = (
    {},
    {"unwind": "fp", "frequency_hz": 4000},
    {"kernel_stacks": True},
    {"unwind": "cfi", "stack_copy_bytes": 4096, "targets": {"comms": ["turn*", "busy*"], "cgroups": ["/"]}},
)
WORKLOADS = os.environ["WORKLOADS"]
ROUNDS_BETWEEN = 4
PLAN_BYTES = 40
BEGINNINGS = ("Create", "Start", "programs")  # what is the first to be short of memory


class Told(Exception):
    """An error, or an end of the connection: what may happen while memory is short."""

    def __init__(self, text, is_cut_off):
        super().__init__(text)
        self.is_cut_off = is_cut_off


class Plan:
    def __init__(self, path):
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), PLAN_BYTES)

    def fail(self, per_million, seed, spares_main):
        self.map[0:PLAN_BYTES] = struct.pack("QQQQQ", per_million, seed, spares_main, 0, 0)

    def end(self):
        self.map[0:8] = struct.pack("Q", 0)
        return struct.unpack("QQ", self.map[24:PLAN_BYTES])


class Client(Connection):
    def call(self, method, **parameters):
        try:
            reply = self.ask(method, parameters)
        except (BrokenPipeError, ConnectionResetError):
            reply = None
        if reply is None or "error" in reply:
            raise Told("%s: %s" % (method, "cut off" if reply is None else json.dumps(reply)), reply is None)
        return reply["parameters"]

    def read_some(self, ack=None):
        parameters = {} if ack is None else {"ack": ack}
        reply = self.call("Read", **parameters)
        data = b""
        while self.fds:
            with os.fdopen(self.fds.pop(), "rb") as stream:
                data += stream.read()
        return data, reply["sequence"], reply["end"]


def descriptors(with_files=False):
    """What the daemon has open; files that are being read only when asked for, since they take their time."""
    kinds = []
    for fd in os.listdir("/proc/%d/fd" % DAEMON):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink("/proc/%d/fd/%s" % (DAEMON, fd))
            if with_files or target[0] != "/":
                kinds.append(target.split("[")[0] if target.startswith(("pipe:", "socket:")) else target)
    return sorted(kinds)


def is_alive():
    with contextlib.suppress(FileNotFoundError):
        with open("/proc/%d/stat" % DAEMON, encoding="ascii") as stat:
            return stat.read().rsplit(") ", 1)[1][0] != "Z"
    return False


class Patient:
    """A client that begins anew when it is cut off, and keeps what it was told."""

    def __init__(self):
        self.client = Client(PATH)
        self.told = []

    def attempt(self, call, *arguments, **parameters):
        try:
            getattr(self.client, call)(*arguments, **parameters)
        except Told as error:
            self.told.append(str(error))
            if error.is_cut_off:
                self.client.socket.close()
                self.client = Client(PATH)
                with contextlib.suppress(Told):
                    self.client.call("Attach")

    def close(self):
        self.client.socket.close()


def go_through(seed, plan, rate):
    """What a client does. Its session is a detached one, so that it is there after a connection was cut off."""
    beginning = BEGINNINGS[seed % len(BEGINNINGS)]
    patient = Patient()

    def begin(what):
        if beginning == what:
            plan.fail(rate, seed, seed // 6 % 2)

    begin("Create")
    patient.attempt("call", "Create", config=CONFIGS[seed // 3 % len(CONFIGS)], detach=True)
    begin("Start")
    patient.attempt("call", "Start")
    begin("programs")
    run_programs(seed)
    for _ in range(3):
        patient.attempt("call", "Status")
        patient.attempt("read_some")
    patient.attempt("call", "Stop")
    patient.attempt("read_some")
    if seed % 7 == 0:
        patient.attempt("call", "Close")
    patient.close()
    return patient.told


def run_programs(seed):
    """Files that nobody has seen: one that stays, some that come and go, and libraries that take turns."""
    busy = os.path.join(FOLDER, "busy%d" % seed)
    shutil.copy(os.path.join(WORKLOADS, "busy"), busy)
    programs = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in (
        [busy, "--seconds", "0.3"], [os.path.join(WORKLOADS, "alternate"), "--seconds", "0.2"])]
    for _ in range(20):
        subprocess.run([os.path.join(WORKLOADS, "brief"), "--seconds", "0.002"], stdout=subprocess.DEVNULL, check=True)
    for program in programs:
        assert program.wait() == 0


def finish_session():
    """Of the session that is left, if one is: all of it, and the books."""
    with admitted(PATH) as client:
        session = client.call("Status")["status"]["session"]
        if session is None:
            return None
        state = client.call("Attach")["state"]
        if state == "running":
            client.call("Stop")
        elif state == "created":
            client.call("Close")
            return None
        data, ack, end = b"", None, False

        def read_on():
            nonlocal data, ack, end
            piece, sequence, end = client.read(ack)
            ack = sequence or ack
            data += piece
            return end
        until(20, read_on)
        books = client.call("Status")["status"]["session"]["books"]
        client.call("Close")
    with open(os.path.join(FOLDER, "left.fxt"), "wb") as file:
        file.write(data)
    return books


def check_books(books):
    for account in [*books["cpus"], books["total"]]:
        assert account["received"] == account["kept"] + account["filtered"] + account["dropped"], account
        assert account["expected"] == sum(account[name] for name in (
            "received", "lost", "throttled", "missed", "idle", "unexplained")), account


def profctl(*arguments):
    return subprocess.run(["profctl", *arguments], check=True, capture_output=True, timeout=60, text=True).stdout


def expect_whole(seed):
    """A session like any other, of a program that ran while memory was short. The one before it is there so that its files
    have been read: on a busy machine a worker has no CPU for as long as a first sample waits."""
    path = os.path.join(FOLDER, "whole.fxt")
    busy = os.path.join(FOLDER, "busy%d" % seed)
    for _ in range(2):
        profctl("record", "--no-kernel", "-F", "999", "-o", path, "--", busy, "--seconds", "0.4")
    report = json.loads(profctl("report", "--json", "-n", "0", path))
    # Where others have the CPUs it runs for a part of its time, of which the kernel and the loader have some milliseconds.
    spun = sum(row["self"] for row in report["rows"] if "fifths" in row["name"])
    unnamed = sum(row["self"] for row in report["rows"] if "+0x" in row["name"] or row["name"].startswith("["))
    unnamed -= sum(row["self"] for row in report["rows"] if row["name"] == "[kernel]")
    total = report["books"]["total"]
    assert total["dropped"] == 0 and total["lost"] == 0, total
    assert report["samples"] > 20 and spun > 0.7 * report["samples"], report
    assert unnamed <= 0.05 * report["samples"], (unnamed, report)
    without_stack = report["stacks"].get("none", 0)
    assert report["stacks"]["complete"] >= 0.95 * (report["samples"] - without_stack), report["stacks"]


def main():
    plan = Plan(PLAN)
    files = [kind for kind in descriptors(with_files=True) if kind[0] == "/"]
    before = sorted(descriptors() + ["anon_inode:[timerfd]"])
    with Client(PATH) as client:  # that timer, of a session's end, is the daemon's for good
        client.call("Create", config={}, detach=True)
        client.call("Start")
        client.call("Stop")
        client.call("Close")
    run_programs(0)
    expect_whole(0)
    rounds = asked = failed = left = 0
    began = time.monotonic()
    for seed in itertools.count(SEED):
        # On a machine with other work it takes longer until that many have failed.
        seconds = time.monotonic() - began
        if seconds > SECONDS and (failed > FAILED_MIN or seconds > SECONDS_MAX):
            break
        rate = RATES[seed % len(RATES)]
        try:
            told = go_through(seed, plan, rate)
            counts = plan.end()
            assert is_alive(), "the daemon has gone"
            books = finish_session()
            if books is not None:
                left += 1
                check_books(books)
                profctl("dump", os.path.join(FOLDER, "left.fxt"))
            until(15, lambda: descriptors() == before)
            if seed % ROUNDS_BETWEEN == 0:
                expect_whole(seed)
        except BaseException:
            print("seed %d, %d of a million fail; descriptors before %s, now %s" % (
                seed, rate, before, descriptors() if is_alive() else "none"))
            raise
        finally:
            plan.end()
        os.remove(os.path.join(FOLDER, "busy%d" % seed))
        rounds, asked, failed = rounds + 1, asked + counts[0], failed + counts[1]
        if VERBOSE:
            print(seed, rate, counts, books and (books["total"]["received"], books["total"]["filtered"], books["total"]["dropped"], {name: value for name, value in books.items() if name not in ("cpus", "total")}), told, flush=True)
    until(60, lambda: descriptors(with_files=True) == sorted(files + before))
    print("%d sessions, %d of %d allocations failed; %d sessions were there to be read to their end" % (
        rounds, failed, asked, left))
    assert failed > FAILED_MIN and left > rounds / 4, "nothing is proved"


PATH, DAEMON, PLAN, FOLDER, SECONDS, SEED = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], float(sys.argv[5]), int(sys.argv[6])
VERBOSE = "verbose" in sys.argv[7:]
main()
