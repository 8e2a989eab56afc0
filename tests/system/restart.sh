#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Start after Stop goes on with the same session, and a stop always ends: with the worker stopped, so that
# names stay pending, and with a trace buffer that is full when sampling stops and is read late. Told over
# the socket itself, since profctl never starts twice.
. "${0%/*}/lib.sh"
require_perf
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null
# It fills the buffer, and stands still until then.
run_in_background nice -n 10 "$WORKLOADS/busy" --seconds 280 >/dev/null
kill -STOP "$BACKGROUND_PID"

PYTHONPATH=${0%/*} python3 - "$CPU_PROFILERD_SOCKET" "$daemon_pid" "$BACKGROUND_PID" <<'PYTHON' || fail "a restart or a late reader goes wrong"
import os, signal, sys, threading, time
from sampler import Connection

def children():
    """Asked 50 times a second, so this starts no program."""
    pids = []
    for thread in os.listdir("/proc/%s/task" % daemon):
        try:
            pids += open("/proc/%s/task/%s/children" % (daemon, thread), encoding="ascii").read().split()
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended
    return pids

def signal_workers(number):
    for pid in children():
        try:
            # A child that has not executed the worker yet shares the daemon's memory, and the daemon waits for it.
            if "elf-worker" in open("/proc/%s/cmdline" % pid, encoding="utf-8").read():
                os.kill(int(pid), number)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it was replaced, as after each file of another author

def hold_workers(released):
    while not released.wait(0.02):
        signal_workers(signal.SIGSTOP)
    signal_workers(signal.SIGCONT)

class Sampler(Connection):
    def read_on(self, ack):
        data, sequence, end = self.read(ack or None)
        return data, sequence or ack, end

    def read_to_end(self, ack, seconds):
        data, limit = b"", time.monotonic() + seconds
        while time.monotonic() < limit:
            piece, ack, end = self.read_on(ack)
            data += piece
            if end:
                return data
            if not piece:
                time.sleep(0.02)
        raise AssertionError("no end came")

path, daemon, spins = sys.argv[1], sys.argv[2], int(sys.argv[3])
sampler = Sampler(path)
sampler.call("Create", config={"frequency_hz": 999})
released = threading.Event()
holder = threading.Thread(target=hold_workers, args=(released,), daemon=True)
signal_workers(signal.SIGSTOP)
holder.start()
sampler.call("Start")
time.sleep(0.5)
assert sampler.call("Stop")["stopped_by"] == "client"
sampler.call("Start")
ack, recorded = 0, b""
limit = time.monotonic() + 5.5  # past the 5 s for which a stop waits for names
while time.monotonic() < limit:
    piece, ack, end = sampler.read_on(ack)
    recorded += piece
    assert not end, "an end while the session runs"
    time.sleep(0.05)
sampler.call("Stop")
released.set()
holder.join()
recorded += sampler.read_to_end(ack, 15)
assert recorded.count(b'"unexplained"') > 0, "the books are missing"
sampler.call("Close")
print("start after stop:", len(recorded), "bytes")

sampler.call("Create", config={"frequency_hz": 20000, "buffer_kib_per_cpu": 256})
sampler.call("Start")
os.kill(spins, signal.SIGCONT)
time.sleep(1.5)
sampler.call("Stop")
os.kill(spins, signal.SIGKILL)
time.sleep(6)
recorded = sampler.read_to_end(0, 15)
assert b'"expected"' in recorded, "the books are missing after a late read"
dropped = sampler.call("Status")["status"]["session"]["books"]["total"]["dropped"]
assert dropped > 0, "the buffer was never full, so nothing is proved"
print("late reader:", len(recorded), "bytes,", dropped, "dropped")
PYTHON
