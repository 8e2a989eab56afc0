# SPDX-License-Identifier: Apache-2.0
"""A client of the sampler's interface, for tests that must see what profctl does not show."""
import array
import json
import os
import socket
import time

INTERFACE = "io.cpuprofilerd.Sampler"


class Connection:
    """One connection, as a user if `uid` is given."""

    def __init__(self, path, uid=None):
        self.received = b""
        self.fds = []
        self.socket = socket.socket(socket.AF_UNIX)
        os.seteuid(os.geteuid() if uid is None else uid)
        try:
            self.socket.connect(path)
        finally:
            os.seteuid(os.getuid())
        self.socket.settimeout(60)  # not for connect(), which would not wait for a place in the queue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, method, parameters=None, **members):
        name = method if "." in method else INTERFACE + "." + method
        message = {"method": name, "parameters": parameters or {}, **members}
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        """The next reply, or None at the end; its descriptors go to self.fds."""
        while b"\0" not in self.received:
            try:
                piece, control, _, _ = self.socket.recvmsg(70000, socket.CMSG_SPACE(16))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            self.received += piece
            for _, _, data in control:
                fds = array.array("i")
                fds.frombytes(data)
                self.fds.extend(fds)
        text, self.received = self.received.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, parameters=None, **members):
        self.send(method, parameters, **members)
        return self.receive()

    def ask_raw(self, message):
        self.socket.sendall(message)
        return self.receive()

    def is_answered(self):
        reply = self.ask("Status")
        return reply is not None and "status" in reply["parameters"]

    def call(self, method, **parameters):
        reply = self.ask(method, parameters)
        assert "error" not in reply, reply
        return reply["parameters"]

    def read(self, ack=None):
        """(bytes, sequence, end) of a Read."""
        reply = self.call("Read", **({} if ack is None else {"ack": ack}))
        assert set(reply) == {"fd", "size_bytes", "sequence", "end"}, reply
        assert len(self.fds) == (1 if reply["size_bytes"] > 0 else 0)
        assert reply["fd"] == (0 if reply["size_bytes"] > 0 else -1)
        data = b""
        while self.fds:
            with os.fdopen(self.fds.pop(), "rb") as stream:
                data += stream.read()
        assert len(data) == reply["size_bytes"] <= 1 << 20
        return data, reply["sequence"], reply["end"]

    def read_next(self, ack=None):
        """The same, when there is something, or nothing is left."""
        def get():
            data, sequence, end = self.read(ack)
            return (data, sequence, end) if data or end else None
        return until(10, get)


def admitted(path, seconds=60):
    """A connection that is served, be it that the daemon has to see first that earlier ones have gone."""
    def get():
        client = Connection(path)
        try:
            if client.is_answered():
                return client
        except ConnectionError:
            pass
        client.socket.close()
        return None
    return until(seconds, get)


def until(seconds, question):
    """The question's first answer. The limit is there for what never happens: a busy machine has a minute at least."""
    limit = time.monotonic() + max(seconds, 60)
    while time.monotonic() < limit:
        answer = question()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError("it did not happen in %s s" % max(seconds, 60))
