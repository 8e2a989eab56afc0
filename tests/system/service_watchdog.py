# SPDX-License-Identifier: Apache-2.0
"""The service manager's end of sd_notify: starts the daemon, and looks at what it is told.

Run with the daemon's program and a folder to work in.
"""
import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from sampler import Connection, until

WATCHDOG_S = 2
PTRACE_INTERRUPT, PTRACE_SEIZE, PTRACE_DETACH = 0x4207, 0x4206, 17
WALL = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


class Manager:
    def __init__(self, folder):
        self.path = str(folder / "notify.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def heard(self, seconds):
        """The lines of all messages that come in so many seconds."""
        lines, limit = [], time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                lines += self.socket.recv(4096).decode().splitlines()
            except TimeoutError:
                break
        return lines

    def wait_for(self, line, seconds=10):
        seen = []
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            seen += self.heard(0.1)
            if any(line in text for text in seen):
                return seen
        raise AssertionError(f"no {line} in {seconds} s: {seen}")


def call_ptrace(request, tid):
    assert LIBC.ptrace(request, tid, None, None) == 0, os.strerror(ctypes.get_errno())


class Frozen:
    """One thread stands still, as after a fault in the kernel, and all others go on."""

    def __init__(self, tid):
        self.tid = tid

    def __enter__(self):
        call_ptrace(PTRACE_SEIZE, self.tid)
        call_ptrace(PTRACE_INTERRUPT, self.tid)
        os.waitpid(self.tid, WALL)

    def __exit__(self, *_):
        call_ptrace(PTRACE_DETACH, self.tid)


def find_thread(pid, name):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    return None


def beats(lines):
    return lines.count("WATCHDOG=1")


program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
manager = Manager(folder)
control = str(folder / "control.sock")
environment = {**os.environ, "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": str(WATCHDOG_S * 1000000)}
with open(folder / "daemon.log", "ab") as log:
    daemon = subprocess.Popen([program, "--socket", control], env=environment, stderr=log)
try:
    lines = manager.wait_for("READY=1")
    assert "STATUS=idle, no session" in lines, lines
    count = beats(manager.heard(3))
    assert 4 <= count <= 8, f"{count} beats in 3 s without a session"

    sampler = Connection(control)
    sampler.call("Create", config={"frequency_hz": 99})
    sampler.call("Start")
    lines = manager.wait_for("STATUS=recording at 99 Hz for uid 0 since 20")
    count = beats(manager.heard(3))
    assert 4 <= count <= 8, f"{count} beats in 3 s while it records"

    collector = until(5, lambda: find_thread(daemon.pid, "collector"))
    with Frozen(collector):
        manager.heard(WATCHDOG_S / 2 + 0.6)  # as long as it may take to notice
        silence = manager.heard(WATCHDOG_S + 1)
        assert beats(silence) == 0, f"beats while the collector stands still: {silence}"
        status = sampler.call("Status")["status"]
        assert status["session"]["state"] == "running", "the main thread does not answer"
    manager.wait_for("WATCHDOG=1", 2)

    os.kill(daemon.pid, signal.SIGSTOP)
    manager.heard(0.2)
    assert beats(manager.heard(1.5)) == 0, "beats of a process that is stopped"
    os.kill(daemon.pid, signal.SIGCONT)
    manager.wait_for("WATCHDOG=1", 2)

    # A client that changes the state all the time does not fill the manager's queue.
    began, turns = time.monotonic(), 0
    while time.monotonic() < began + 2:
        sampler.call("Stop")
        sampler.call("Start")
        turns += 1
    told = [line for line in manager.heard(0.1) if line.startswith("STATUS=")]
    assert turns > 10 and len(told) <= 4, f"{len(told)} of {turns} changes were told"

    daemon.send_signal(signal.SIGTERM)
    manager.wait_for("STOPPING=1")
    sampler.call("Close")
    assert daemon.wait(10) == 0, daemon.returncode
finally:
    daemon.kill()
    daemon.wait()
