# SPDX-License-Identifier: Apache-2.0
"""
What a member can pin of the daemon's memory by keeping what Read hands out: kept_streams.py SOCKET USAGE_FILE UID GID PID...

A process of that user and group splices every stream, without reading a byte of it, into sockets of its own, which
it keeps, and closes the stream. First the same bytes again and again, then everything that several sessions record,
each piece several times before it is acknowledged. Both move many times what may be charged to the daemon; where the kernel
moves pages, they stay charged to it. The processes PID are the user's: they spin, once they go on, and stand still.
"""
import ctypes
import os
import resource
import signal
import socket
import sys
import time

import members
from sampler import Connection

SPLICE_F_MOVE, SPLICE_F_NONBLOCK = 1, 2
PIPE_BYTES = 1 << 16
KEPT_BYTES_MAX = 400 << 20
SESSIONS = 5
SPIN_S = 0.6  # all that is recorded in it, kept 15 times in each session, is some 90 MiB
MIB = 1 << 20
# What this user may hold in streams that are open (docs/protocol.md), and as much again for what the kernel charges
# in advance to each CPU, and for the daemon's own heap. Each phase moves at least four times as much.
GROWTH_BYTES_MAX = 8 * MIB


def usage():
    with open(USAGE, encoding="ascii") as file:
        return int(file.read())


class Keeper:
    """Keeps the pages, or the copies, of what is spliced into its sockets."""

    def __init__(self):
        self.sockets, self.bytes = [], 0
        self.pipe = os.pipe()
        self.renew()

    def renew(self):
        near, far = socket.socketpair(socket.AF_UNIX)
        near.setblocking(False)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)  # as far as the kernel lets it
        self.sockets.append((near, far))

    def splice(self, source, sink, size):
        moved = members.LIBC.splice(source, None, sink, None, ctypes.c_size_t(size), SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
        return moved if moved >= 0 else -ctypes.get_errno()

    def keep(self, fd):
        while True:
            taken = self.splice(fd, self.pipe[1], PIPE_BYTES)
            if taken <= 0:
                assert taken == 0, os.strerror(-taken)
                os.close(fd)
                return
            self.bytes += taken
            while taken > 0:
                sent = self.splice(self.pipe[0], self.sockets[-1][0].fileno(), taken)
                if sent <= 0:
                    self.renew()
                else:
                    taken -= sent


def cpu_s(pid):
    with open("/proc/%d/schedstat" % pid, encoding="utf-8") as file:
        return int(file.read().split()[0]) / 1e9


def begin(seconds):
    """A session in which the user's programs have spun for so much CPU time each."""
    client = Connection(PATH)
    # Of the programs of the test alone: tables of names that others run are the daemon's own memory, and may be large.
    client.call("Create", detach=True, config={"frequency_hz": 20000, "unwind": "fp", "max_duration_s": 60,
                                               "targets": {"comms": ["busy"]}})
    client.call("Start")
    ends = {pid: cpu_s(pid) + seconds for pid in SPINNING}
    for pid in SPINNING:
        os.kill(pid, signal.SIGCONT)
    while any(cpu_s(pid) < end for pid, end in ends.items()):
        time.sleep(0.05)
    for pid in SPINNING:
        os.kill(pid, signal.SIGSTOP)
    return client


def keep_again_and_again(child):
    """One chunk, which is never acknowledged, through as many connections as it takes."""
    client = begin(SPIN_S)
    client.call("Stop")
    keeper = Keeper()
    reads = 0
    child.say("begins")
    child.hear()
    while keeper.bytes < KEPT_BYTES_MAX:
        reply = client.ask("Read")
        if "error" in reply:  # refused, so by another connection
            assert reads > 0, reply
            client.socket.close()
            client, reads = Connection(PATH), 0
            client.call("Attach")
            continue
        reads += 1
        keeper.keep(client.fds.pop())
    child.say("%d" % keeper.bytes)
    child.hear()
    client.call("Close")
    child.say("closed")
    child.hear()


def keep_all(child):
    keeper = Keeper()
    child.say("begins")
    child.hear()
    for _ in range(SESSIONS):
        client, ack, end, times = begin(SPIN_S), 0, False, 0
        client.call("Stop")
        while not end or times > 0:
            reply = client.call("Read", **({"ack": ack} if ack > 0 else {}))
            if reply["size_bytes"] > 0:
                keeper.keep(client.fds.pop())
                times = (times + 1) % 15
            ack, end = reply["sequence"] if times == 0 else 0, reply["end"]
        client.call("Close")
        client.socket.close()
    child.say("%d" % keeper.bytes)
    child.hear()


def attack(child, function):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    members.become(UID, UID, [GID])
    function(child)


def settled_usage():
    """The kernel charges in batches, so the least of some moments."""
    return min(usage() for _ in range(20) if time.sleep(0.05) is None)


def judge(function, sentence):
    with members.Child(attack, function) as child:
        assert child.hear() == "begins", "the attack itself went wrong"
        before = settled_usage()
        child.say("go on")
        answer = child.hear()
        assert answer.isdigit(), "the attack itself went wrong: %s" % answer
        grown, kept = settled_usage() - before, int(answer)
        print("%s: %d MiB kept, %+.1f MiB charged to the daemon" % (sentence, kept / MIB, grown / MIB), flush=True)
        assert kept >= 4 * GROWTH_BYTES_MAX, "so little that nothing is proved"
        assert grown <= GROWTH_BYTES_MAX, "a member pins the daemon's memory"
        child.say("end")
        child.hear()


PATH, USAGE, UID, GID = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
SPINNING = [int(pid) for pid in sys.argv[5:]]
# Buffers of a session, the allocator's arenas and names are there before.
with members.Child(attack, lambda child: (begin(SPIN_S).call("Close"), child.say("done"))) as first:
    made = first.hear()
    assert made == "done", "there is no session: " + made
judge(keep_again_and_again, "the same bytes, again and again")
judge(keep_all, "all that %d sessions recorded" % SESSIONS)
