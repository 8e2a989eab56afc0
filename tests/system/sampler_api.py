# SPDX-License-Identifier: Apache-2.0
"""
The rules of the sampler's interface, told to a real daemon over its socket: sampler_api.py SOCKET PID_OF_DAEMON.
Each function called test_* is one rule; they run in the order of this file, each without a session at its
beginning. "client" as the first argument makes it a client that waits to be killed, see killed_client().
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from sampler import INTERFACE, Connection, admitted, until

SERVICE = "org.varlink.service"
OWNER_UID, OTHER_UID = 60001, 60002
USER_UID = OWNER_UID if os.getuid() == 0 else None  # root has rights that others have not


class Sampler(Connection):
    def __init__(self, uid=None):
        super().__init__(PATH, uid)

    def refused(self, error, method, **parameters):
        """The error's parameters, which must be those of the interface description, no more and no fewer."""
        reply = self.ask(method, parameters)
        name = reply.get("error", "")
        assert name.rpartition(".")[2] == error, reply
        assert set(reply["parameters"]) == ERRORS[name], reply
        return reply["parameters"]

    def bad_state(self, method, state, **parameters):
        assert self.refused("BadState", method, **parameters)["state"] == state


def status():
    with Sampler() as watcher:
        return watcher.call("Status")["status"]


def session():
    return status()["session"]


def perf_event_fds():
    count = 0
    for fd in os.listdir("/proc/%d/fd" % DAEMON):
        try:
            count += "perf_event" in os.readlink("/proc/%d/fd/%s" % (DAEMON, fd))
        except FileNotFoundError:
            pass
    return count


def read_errors():
    """The parameters of each error, by its full name, as the daemon describes them."""
    errors = {}
    with Sampler() as client:
        for interface in (INTERFACE, SERVICE):
            text = client.call(SERVICE + ".GetInterfaceDescription", interface=interface)["description"]
            for name, members in re.findall(r"^error (\w+) *\(([^)]*)\)", text, re.M):
                errors[interface + "." + name] = set(re.findall(r"(\w+):", members))
    return errors


def test_create():
    with Sampler() as client, Sampler() as second:
        reply = client.call("Create", config={})
        assert set(reply) == {"session", "holds_s"} and reply["holds_s"] >= 1, reply
        assert perf_event_fds() > 0
        time.sleep(0.2)
        for other in (client, second):
            exists = other.refused("AlreadyExists", "Create", config={})
            assert exists["owner_uid"] == os.getuid() and 200 <= exists["age_ms"] < 600000, exists
        client.call("Close")
        second.call("Create", config={})
        client.refused("AlreadyExists", "Create", config={})


def test_config():
    with Sampler() as client:
        for config, member in (({"sample_period_ns": 9999}, "sample_period_ns"),
                               ({"sample_period_ns": 1000, "frequency_hz": 5}, None),
                               ({"frequency_hz": 100001}, "frequency_hz"),
                               ({"max_stack_depth": 0}, "max_stack_depth"),
                               ({"max_stack_depth": 511}, "max_stack_depth"),
                               ({"options": 0}, "options"),
                               ({"targets": {"pid": 1}}, None)):
            refused = client.refused("InvalidArgs", "Create", config=config)
            assert refused["text"] and member in (None, refused["member"]), refused
        for parameters, member in (({"config": {}, "options": 1}, "options"), ({}, "config"),
                                   ({"config": 5}, "config"), ({"config": {}, "detach": "yes"}, "detach")):
            assert client.refused("InvalidParameter", "Create", **parameters) == {"parameter": member}
        assert client.refused("InvalidParameter", "Start", options=0) == {"parameter": "options"}
        assert client.refused("MethodNotFound", "Pause") == {"method": INTERFACE + ".Pause"}
        assert client.refused("InterfaceNotFound", "a.b.C") == {"interface": "a.b"}
        assert client.ask("Status", flags=1)["parameters"] == {"parameter": "flags"}
        client.call("Create", config={"sample_period_ns": 10000})
        assert session()["config"]["sample_period_ns"] == 10000


def test_start_and_stop():
    with Sampler() as client:
        for method in ("Start", "Stop", "Read", "Close"):
            client.bad_state(method, "none")
        name = client.call("Create", config={})["session"]
        client.bad_state("Stop", "created")
        assert client.call("Start") == {}
        client.bad_state("Start", "running")
        assert session()["state"] == "running"
        assert client.call("Stop") == {"stopped_by": "client"}
        client.bad_state("Stop", "stopped")
        received = session()["books"]["total"]["received"]
        client.call("Start")
        time.sleep(0.2)
        client.call("Stop")
        assert session()["session"] == name
        assert session()["books"]["total"]["received"] >= received


def test_read_in_every_state():
    with Sampler() as client:
        client.bad_state("Read", "none")
        client.call("Create", config={})
        assert client.read() == (b"", 0, False)
        client.refused("InvalidArgs", "Read", ack=1)
        client.call("Start")
        data, sequence, end = client.read_next()
        assert sequence == 1 and not end
        assert client.read() == (data, 1, False), "what was not acknowledged must come again"
        more, sequence, end = client.read_next(1)
        assert sequence == 2 and not end and more != data
        client.refused("InvalidArgs", "Read", ack=3)
        client.call("Stop")
        recorded, end = data, False
        while not end:
            assert more or sequence == 0
            recorded += more
            more, sequence, end = client.read_next(sequence)
        recorded += more
        assert b'"unexplained"' in recorded, "the books must be read before the end"
        assert client.read(sequence) == (b"", 0, True)
        client.call("Start")
        assert client.read_next()[0], "start after stop goes on"
        client.call("Close")
        client.bad_state("Read", "none")


def test_one_read_is_open_at_a_time():
    with Sampler() as client:
        client.call("Create", config={})
        client.call("Start")
        until(5, lambda: client.call("Read")["size_bytes"] > 0)
        client.bad_state("Read", "running")
        os.close(client.fds.pop())
        client.read_next()


def test_close():
    with Sampler() as client:
        for steps in ([], ["Start"], ["Start", "Stop"]):
            client.call("Create", config={})
            for step in steps:
                client.call(step)
            assert client.call("Close") == {}
            client.bad_state("Close", "none")
            assert session() is None and perf_event_fds() == 0, steps


def test_max_duration():
    with Sampler() as client:
        client.call("Create", config={"max_duration_s": 1})
        for _ in range(2):
            client.call("Start")
            assert session()["state"] == "running"
            until(5, lambda: session()["state"] == "stopped")
            assert client.call("Stop") == {"stopped_by": "max_duration"}
            client.bad_state("Stop", "stopped")
        assert client.read_next()[0]


def test_detach_and_attach():
    with Sampler(USER_UID) as client, Sampler(USER_UID) as second:
        client.bad_state("Attach", "none")
        name = client.call("Create", config={}, detach=True)["session"]
        shown = session()
        assert shown["detached"] and shown["config"]["max_duration_s"] == 600
        second.bad_state("Attach", "created")
        client.call("Start")
        data, sequence, _ = client.read_next()
        second.bad_state("Read", "none")
    assert session()["state"] == "running"
    with Sampler(USER_UID) as client:
        client.bad_state("Read", "none")
        assert client.refused("InvalidArgs", "Attach", session="x")["member"] == "session"
        assert client.call("Attach", session=name) == {"session": name, "state": "running"}
        assert client.read_next()[0]
        assert client.call("Stop") == {"stopped_by": "client"}
    with Sampler(USER_UID) as client:
        assert client.call("Attach") == {"session": name, "state": "stopped"}
        client.call("Close")
    assert session() is None and perf_event_fds() == 0


def test_other_users():
    if os.getuid() != 0:
        return
    with Sampler(OWNER_UID) as owner:
        owner.call("Create", config={}, detach=True)
    with Sampler(OTHER_UID) as other:
        assert "uid %d" % OWNER_UID in other.refused("PermissionDenied", "Attach")["text"]
        for method in ("Start", "Stop", "Read", "Close"):
            other.bad_state(method, "none")
        assert other.refused("AlreadyExists", "Create", config={})["owner_uid"] == OWNER_UID
        assert other.call("Status")["status"]["session"]["owner_uid"] == OWNER_UID
    with Sampler(OWNER_UID) as owner:
        owner.call("Attach")
        owner.call("Start")
    with Sampler() as root:
        assert root.call("Attach")["state"] == "running"
        root.call("Close")


def killed_client(detach, steps):
    """A process that gets as far as `steps`, and is killed there."""
    child = subprocess.Popen([sys.executable, __file__, "client", PATH, detach, *steps], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGKILL)
    child.wait()


def run_client(detach, steps):
    client = Sampler()
    client.call("Create", config={}, detach=detach == "detach")
    for step in steps:
        if step == "Read":
            until(5, lambda: client.call("Read")["size_bytes"] > 0)
        elif step == "Stopping":
            client.send("Stop")
        else:
            client.call(step)
    print("ready", flush=True)
    time.sleep(60)


def test_killed_clients():
    for steps, state in (([], "created"), (["Start"], "running"), (["Start", "Read"], "running"),
                         (["Start", "Stopping"], "stopped"), (["Start", "Stop"], "stopped"),
                         (["Start", "Stop", "Read"], "stopped")):
        killed_client("attach", steps)
        until(1, lambda: session() is None and perf_event_fds() == 0)
        killed_client("detach", steps)
        until(5, lambda: session() is not None and session()["state"] == state)
        assert perf_event_fds() > 0
        with Sampler() as client:
            assert client.call("Attach")["state"] == state
            client.call("Close")


def test_framing_and_limits():
    for message in (b"\0", b"x\0", b"[]\0", b'{"method":1}\0', b" " * 65537):
        with Sampler() as client:
            client.socket.sendall(message)
            assert client.receive() is None, message[:20]
    with Sampler() as client:
        for _ in range(100):
            client.send("Start")
        client.send("Start", oneway=True)
        client.send(SERVICE + ".GetInfo")
        for _ in range(100):
            assert client.receive()["parameters"]["state"] == "none"
        assert INTERFACE in client.receive()["parameters"]["interfaces"]
        began = time.monotonic()
        replies = [client.ask("Status", more=True), client.receive(), client.receive()]
        assert all(reply["continues"] for reply in replies) and time.monotonic() - began > 1.5
    clients = [Sampler(USER_UID) for _ in range(9)]
    clients[8].socket.settimeout(5)
    assert clients[8].receive() is None, "a ninth connection of a user must be closed"
    for client in clients:
        client.socket.close()
    admitted(PATH, 1).socket.close()


def slow_descriptor():
    """A TCP connection whose near end takes 20 s to close, unless its far end is closed before."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
    near.setblocking(False)
    try:
        while True:
            near.send(b"x" * 65536)
    except BlockingIOError:
        return near, far


def test_descriptors_are_not_received():
    before = len(os.listdir("/proc/%d/fd" % DAEMON))
    near, far = slow_descriptor()
    with Sampler() as client:
        try:
            socket.send_fds(client.socket, [b'{"method":"x"}\0'], [near.fileno()])
        except PermissionError:  # since Linux 6.16 the kernel refuses for the daemon
            assert client.is_answered(), "a client that sent nothing is cut off"
            far.close()
            near.close()
            return
        os.close(near.detach())
        assert client.receive() is None
    began = time.monotonic()
    assert status() is not None
    assert time.monotonic() - began < 5, "the daemon has waited for a client's socket"
    far.close()
    until(5, lambda: len(os.listdir("/proc/%d/fd" % DAEMON)) <= before)


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            until(1, lambda: session() is None and perf_event_fds() == 0)
            print(name, "ok", flush=True)


if sys.argv[1] == "client":
    PATH = sys.argv[2]
    run_client(sys.argv[3], sys.argv[4:])
else:
    PATH, DAEMON = sys.argv[1], int(sys.argv[2])
    ERRORS = read_errors()
    main()
