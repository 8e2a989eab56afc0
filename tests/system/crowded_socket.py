# SPDX-License-Identifier: Apache-2.0
"""
Members who take all the connections they can get, and the others, who must be served all the same:
crowded_socket.py SOCKET UID GID FIRST_SUBUID. /etc/subuid gives UID the uids from FIRST_SUBUID on.
"""
import encodings.idna  # noqa: F401; socket loads it later, when this is a user who may not be able to read it
import os
import socket
import struct
import sys

import members
from sampler import Connection, until

ACCOUNT_MAX = 8
SUBUIDS = 8
IDLE_S = 60


def dial(path):
    client = Connection(path)
    client.socket.settimeout(20)
    return client


def hold_as(child, uid, count):
    """Holds connections until the parent ends it, and says how many of them the daemon serves."""
    if uid is not None:
        os.setresuid(uid, uid, uid)
    clients = [dial(PATH) for _ in range(count)]
    served = []
    for client in clients:
        try:
            if client.is_answered():
                served.append(client)
        except (BrokenPipeError, ConnectionResetError):
            pass
    child.say("%d" % len(served))
    for client in served:
        client.socket.settimeout(3 * IDLE_S)
    if child.hear() == "stay till the end":
        last = [(client.receive() or {"parameters": {}})["parameters"].get("text", "") for client in served]
        child.say("%d" % sum("made no call for %d s" % IDLE_S in text for text in last))
        child.hear()


def hold_as_subordinates(child):
    """In a user namespace of the user's own, under each of its uids."""
    members.become(UID, UID, [GID])
    try:
        members.enter_user_namespace(child)
    except OSError as error:
        child.say("no user namespace: %s" % error)
        return
    crowd = [members.Child(hold_as, uid if uid > 0 else None, ACCOUNT_MAX) for uid in range(SUBUIDS + 1)]
    child.say(" ".join(one.hear() for one in crowd))
    child.hear()
    for one in crowd:
        one.say("stay till the end")
    for one in crowd:
        one.socket_count = int(one.hear() or "0")
    child.say("%d" % sum(one.socket_count for one in crowd))
    child.hear()


def hold_as_member(child, uid):
    members.become(uid, uid, [GID])
    hold_as(child, None, ACCOUNT_MAX)


def slow_descriptor():
    """A TCP connection whose near end takes as long to close as its far end likes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    near.setblocking(False)
    try:
        while True:
            near.send(b"x" * 65536)
    except BlockingIOError:
        return near, far


def send_slow_descriptors(child):
    """Connections that were refused count too: each brings a descriptor that is not closed for long."""
    members.become(UID, UID, [GID])
    kept = []
    for _ in range(100):
        client = dial(PATH)
        near, far = slow_descriptor()
        try:
            socket.send_fds(client.socket, [b"{"], [near.fileno()])
        except (PermissionError, BrokenPipeError, ConnectionResetError):
            far.close()  # nobody has it but this process; since Linux 6.16 the kernel refuses for the daemon
        near.close()
        kept.append(far)
        client.socket.close()
    child.say("sent")
    child.hear()


def ask_as(child, uid):
    if uid != 0:
        members.become(uid, uid, [GID])
    clients = [dial(PATH) for _ in range(3 if uid == 0 else 1)]
    child.say("served" if all(client.is_answered() for client in clients) else "not served")


def is_served(uid):
    with members.Child(ask_as, uid) as child:
        answer = child.hear()
        print("  uid %d: %s" % (uid, answer), flush=True)
        return answer == "served"


def test_subordinate_uids():
    with members.Child(hold_as_subordinates) as crowd:
        refused = members.map_user_namespace(crowd, UID, FIRST, SUBUIDS)
        if refused is not None:
            print(refused)
            sys.exit(77)
        counts = [int(word) for word in crowd.hear().split()]
        print("%d uids of one user hold %d connections" % (len(counts), sum(counts)), flush=True)
        assert len(counts) == SUBUIDS + 1 and sum(counts) > 0, "the attack itself went wrong"
        assert is_served(0), "root is locked out"
        assert is_served(OTHER), "another member is locked out"
        assert sum(counts) <= ACCOUNT_MAX, "subordinate uids are other users"
        crowd.say("stay")
        ended = int(crowd.hear())
        assert ended == sum(counts), "%d of %d idle connections were ended with a reason" % (ended, sum(counts))
        print("and were ended after a minute without a call")


def test_many_members():
    """Four real members, who take all there is; a member that holds nothing yet gets a place."""
    crowd = [members.Child(hold_as_member, OTHER + 1 + i) for i in range(4)]
    counts = [int(one.hear()) for one in crowd]
    print("four members hold %s connections" % counts, flush=True)
    assert counts == [ACCOUNT_MAX] * 4, "the attack itself went wrong"
    assert is_served(OTHER), "another member is locked out"
    assert is_served(0), "root is locked out"
    for one in crowd:
        one.__exit__()


def test_descriptors_that_are_not_closed():
    with members.Child(send_slow_descriptors) as child:
        answer = child.hear()
        assert answer == "sent", "the attack itself went wrong: " + answer
        assert is_served(0), "root is locked out"
        assert is_served(OTHER), "another member is locked out"
    until(20, lambda: is_served(UID))


PATH, UID, GID, FIRST = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
OTHER = UID + 100
for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
