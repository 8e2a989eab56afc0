# SPDX-License-Identifier: Apache-2.0
"""
What hostile clients cost the others, and what they leave behind: hostile_clients.py SOCKET PID_OF_DAEMON [LIVE].

Each function in ATTACKS is a generator; a step of it is one round of the attack. A child process, as another
user where this one is root, goes through at least so many rounds, and on until it is told that the victims
have been answered: whatever they got, they got before the attack ended. One victim is a connection of the
attacker's own user that was there before, the other connects anew each time, as a third user. Afterwards
the daemon has as many descriptors as before. With LIVE, the file in which live_memory.c counts what the daemon
holds, a shorter attack of each kind goes before it, after which the daemon holds what it held before: the
count is of blocks, so that what each connection leaves behind is seen, and nothing that an allocator does.
"""
import array
import itertools
import json
import os
import resource
import select
import socket
import sys
import threading
import time
import traceback

from sampler import INTERFACE, Connection, admitted

ATTACKER_UID, VICTIM_UID = 60001, 60002
ROOT = os.getuid() == 0
UID_CONNECTIONS = 8
MESSAGE_BYTES_MAX = 65536
GIGABYTE = 1 << 30
QUESTIONS = 20
FILE_ENTRIES_BYTES = 4096


def connect(uid=None):
    return Connection(PATH, uid)


def call(method, parameters=None):
    return json.dumps({"method": INTERFACE + "." + method, "parameters": parameters or {}}).encode() + b"\0"


def until_cut_off(client, piece):
    """Returns how many bytes went before the daemon cut the connection off; a gigabyte at the most."""
    sent = 0
    try:
        while sent < GIGABYTE:
            sent += client.socket.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return sent


def connects_and_stays():
    clients = []
    for _ in itertools.count():
        clients.extend(connect() for _ in range(100))
        yield
        del clients[:-900]  # as many as a process may have open


def connects_and_goes():
    while True:
        for _ in range(100):
            connect().socket.close()
        yield


def sends_no_nul():
    while True:
        for piece in (b" " * MESSAGE_BYTES_MAX, b"{" * 1000, b'{"method":"' + b"x" * 100000):
            with connect() as client:
                assert until_cut_off(client, piece) < GIGABYTE, "nobody stops a message that does not end"
        yield


def nests_and_repeats():
    deep = b'{"method":"%s.Status","parameters":' % INTERFACE.encode() + b'{"a":' * 5000 + b"1" + b"}" * 5001 + b"\0"
    repeated = b'{"method":"%s.Status",' % INTERFACE.encode() + b",".join([b'"parameters":{}'] * 4000) + b"}\0"
    members = call("Status", {"m%d" % i: i for i in range(4000)})
    twice = call("Create", {"config": {}}).replace(b'"config": {}', b",".join([b'"config": {}'] * 4000))
    assert max(map(len, (deep, repeated, members, twice))) <= MESSAGE_BYTES_MAX
    while True:
        for message in (deep, b"[" * 60000 + b"\0", b'{"a":' * 10000 + b"\0"):
            with connect() as client:
                assert client.ask_raw(message) is None, "deep nesting is taken"
        with connect() as client:
            for message in (repeated, members, twice) * 3:
                reply = client.ask_raw(message)
                assert reply["error"] == "org.varlink.service.InvalidParameter", reply
        yield


def pipelines():
    count = 3000
    while True:
        with connect() as client:
            sender = threading.Thread(target=client.socket.sendall, args=(call("Status") * count,))
            sender.start()
            for i in range(count):
                assert client.receive() is not None, "cut off after %d of %d calls" % (i, count)
            sender.join()
        yield


def passes_descriptors():
    near, far = os.pipe()
    while True:
        passed = 0
        for _ in range(50):
            # Once it waits until the daemon has closed what came before.
            with admitted(PATH) if passed == 0 else connect() as client:
                own = client.socket.fileno()
                try:
                    socket.send_fds(client.socket, [call("Status") * 3], [near, far, own, own] * 8)
                    passed += 1
                except PermissionError:
                    passed += 1  # since Linux 6.16 the kernel refuses for the daemon
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    continue  # its earlier connections are being closed yet, and count
                while client.receive() is not None:
                    pass
                assert not client.fds
        assert passed > 0
        yield


def reads_and_keeps_streams():
    # Of one program: the tables of its files stay in the daemon's cache, and no others come with the next session.
    config = {"unwind": "fp", "targets": {"comms": ["busy"]}}
    while True:
        with connect() as client:
            assert "error" not in client.ask_raw(call("Create", {"config": config}))
            assert "error" not in client.ask_raw(call("Start"))
            refused, ack = set(), 0
            for _ in range(1000):
                reply = client.ask_raw(call("Read", {"ack": ack} if ack else {}))
                refused.add(reply.get("error", "").rpartition(".")[2])
                size_bytes = reply["parameters"].get("size_bytes", 0)
                if size_bytes > 0 and len(client.fds) < UID_CONNECTIONS:
                    assert len(os.read(client.fds[-1], size_bytes)) == size_bytes
                    ack = reply["parameters"]["sequence"]
                if len(client.fds) < UID_CONNECTIONS:
                    time.sleep(0.01)  # something must be recorded in between
            assert len(client.fds) == UID_CONNECTIONS, "%d streams are held" % len(client.fds)
            assert refused - {""} <= {"Failed", "BadState"} and refused - {""}, refused
            yield
        for fd in client.fds:
            os.close(fd)


def never_reads():
    while True:
        clients = [admitted(PATH) for _ in range(UID_CONNECTIONS - 1)]
        rests = {client.socket: b"" for client in clients}
        for sender in rests:
            sender.setblocking(False)
        while senders := select.select([], rests, [], 0.2)[1]:  # until all are held up, and nothing is stored
            for sender in senders:
                calls = rests[sender] or call("Status") * 100
                rests[sender] = calls[sender.send(calls):]
        yield
        for client in clients:
            client.socket.close()


def disconnects_mid_message():
    message = call("Status")
    while True:
        for i in range(100):
            with admitted(PATH) as client:
                client.socket.sendall(message * (i % 20) + message[:i % len(message)])
                if i % 3 == 0:
                    client.socket.shutdown(socket.SHUT_WR)
                if i % 3 == 1:
                    client.socket.shutdown(socket.SHUT_RD)
        yield


ATTACKS = {  # the attack, and its rounds at the least
    connects_and_stays: 10, connects_and_goes: 10, sends_no_nul: 50, nests_and_repeats: 20, pipelines: 2,
    passes_descriptors: 10, reads_and_keeps_streams: 2, never_reads: 4, disconnects_mid_message: 10,
}


def attack(generator, rounds, ready, enough):
    if ROOT:
        os.setgroups([])
        os.setresgid(ATTACKER_UID, ATTACKER_UID, ATTACKER_UID)
        os.setresuid(ATTACKER_UID, ATTACKER_UID, ATTACKER_UID)
    for done, _ in enumerate(generator(), 1):
        if done == 1:
            os.write(ready, b"x")
        if done >= rounds and select.select([enough], [], [], 0)[0]:
            return


def start_attack(generator, rounds):
    """Returns the attacker's pid, and the descriptor whose closing ends it, once its first round is done."""
    is_ready, ready = os.pipe()
    enough, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(end)
            attack(generator, rounds, ready, enough)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(ready)
    os.close(enough)
    assert os.read(is_ready, 1) == b"x", "the attack itself went wrong"
    os.close(is_ready)
    return pid, end


def descriptors():
    return len(os.listdir("/proc/%d/fd" % DAEMON))


def live_bytes():
    with open(LIVE, "rb") as live:
        return int.from_bytes(live.read(8), sys.byteorder)


def settles(question):
    limit = time.monotonic() + 15
    while not question():
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def suffer(generator, rounds, same_user):
    before = descriptors()
    pid, end = start_attack(generator, rounds)
    for _ in range(QUESTIONS):
        assert same_user.is_answered(), "a connection of the same user is not served"
        if ROOT:
            with connect(VICTIM_UID) as other_user:
                assert other_user.is_answered(), "another user is not served"
    assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the attack ended before the victims were served"
    os.close(end)
    ended, status = 0, 0
    while ended == 0:  # a connection that makes no call for a minute is ended
        assert same_user.is_answered(), "a connection of the same user is not served"
        time.sleep(0.1)
        ended, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0, "the attack itself went wrong"
    assert settles(lambda: descriptors() == before), "%d descriptors, %d before" % (descriptors(), before)


def leaves_nothing(generator, rounds, same_user):
    """
    Attacks again. Returns a word on what the daemon holds then. Programs that start meanwhile bring entries of files, of
    some hundred bytes each, which outlive a session: a few of them are allowed. An attack makes hundreds of connections
    or calls, so one block of malloc() left behind by each is more.
    """
    before = live_bytes()
    suffer(generator, rounds, same_user)
    assert settles(lambda: live_bytes() < before + FILE_ENTRIES_BYTES), \
        "%s: %d bytes of memory after %d rounds, %d before" % (generator.__name__, live_bytes(), rounds, before)
    return "%+d bytes of memory" % (live_bytes() - before)


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
    with connect(ATTACKER_UID if ROOT else None) as same_user:
        assert same_user.is_answered()
        for generator, rounds in ATTACKS.items():
            held = "its descriptors are as before"
            if LIVE is None:
                suffer(generator, rounds, same_user)
            else:  # what the daemon keeps for ever (its arrays, the tables of files) is there after the first attack
                suffer(generator, (rounds + 3) // 4, same_user)
                held += ", " + leaves_nothing(generator, rounds, same_user)
            print("%s: the others are served; %s" % (generator.__name__, held), flush=True)


PATH, DAEMON, LIVE = sys.argv[1], int(sys.argv[2]), (sys.argv + [None])[3]
main()
