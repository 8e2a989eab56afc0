# SPDX-License-Identifier: Apache-2.0
"""Clients that are refused, and what the log has of them.

Run as: service_limits.py flood SOCKET, notes SOCKET, or journal PROGRAM FOLDER.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from sampler import Connection

FLOOD = 500
SESSIONS = 150


def flood(path):
    """As many refusals as a client can cause in a moment, of three kinds."""
    with Connection(path) as client:
        for _ in range(FLOOD):
            reply = client.ask("Create", {"config": {"frequency_hz": 0}})
            assert reply["error"].endswith("InvalidArgs"), reply
    for _ in range(FLOOD):
        with Connection(path) as client:
            client.socket.sendall(b"no call\0")
            assert client.receive() is None
    for _ in range(10):
        with Connection(path) as client:
            client.call("Create", config={})
            client.call("Close")


def notes(path):
    """As many sessions, each with a note, and with a second one where memory for such buffers is lacking."""
    begin_s = time.monotonic()
    with Connection(path) as client:
        for _ in range(SESSIONS):
            created = client.call("Create", config={"sample_period_ns": 1000000, "buffer_kib_per_cpu": 4194304})
            assert created["notes"][0].startswith("sample_period_ns: is in step "), created
            client.call("Close")
    # A window of 10 s has room for 100 lines, and a session has three at least: slower, none may be left out.
    if (time.monotonic() - begin_s) / SESSIONS > 0.25:
        print("sessions are made too slowly here to fill a window")
        sys.exit(77)


def parse_entry(data):
    """The journal's own protocol: NAME=value lines; none of ours has a newline in it."""
    return dict(line.split("=", 1) for line in data.decode().splitlines())


def read_journal(program, folder):
    """The journal as a service meets it: standard error is a stream of its own, fields go to its socket."""
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    pathlib.Path("/run/systemd/journal").mkdir(parents=True, exist_ok=True)
    journal.bind("/run/systemd/journal/socket")
    journal.settimeout(10)
    ours, stream = socket.socketpair()
    status = os.fstat(stream.fileno())
    environment = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    control = str(folder / "journal.sock")
    daemon = subprocess.Popen([program, "--socket", control], env=environment, stderr=stream)
    entries = []

    def wait_for(text):
        while not (entries and text in entries[-1]["MESSAGE"]):
            entries.append(parse_entry(journal.recv(65536)))
        return entries[-1]

    try:
        wait_for("listening on")
        with Connection(control) as client:
            client.ask("Create", {"config": {"frequency_hz": 0}})
            refusal = wait_for("refused, InvalidArgs: frequency_hz: is out of range")
            assert refusal["CPU_PROFILERD_UID"] == str(os.getuid()), refusal
            assert refusal["CPU_PROFILERD_PID"] == str(os.getpid()), refusal
            assert refusal["PRIORITY"] == "6" and refusal["SYSLOG_IDENTIFIER"] == "cpu-profilerd", refusal
            assert refusal["MESSAGE_ID"] == "1b4a13d982b646b7be548fccd348b641", refusal
            session = client.call("Create", config={})["session"]
            created = wait_for("created for")
            assert created["CPU_PROFILERD_SESSION"] == session, created
            assert created["MESSAGE_ID"] == "6f9e844f9a6f41a3a3e0123356a94be1", created
        closed = wait_for("closed, its connection has ended")
        assert closed["CPU_PROFILERD_SESSION"] == session, closed
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(10) == 0, daemon.returncode
    finally:
        daemon.kill()
        daemon.wait()
    stream.close()
    assert ours.recv(4096) == b"", "lines went to standard error as well"


if sys.argv[1] == "flood":
    flood(sys.argv[2])
elif sys.argv[1] == "notes":
    notes(sys.argv[2])
else:
    read_journal(sys.argv[2], pathlib.Path(sys.argv[3]))
