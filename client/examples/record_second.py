#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the whole machine for a second into a file, talking varlink to cpu-profilerd by itself.

    ./record_second.py second.fxt && profctl report second.fxt

Needs nothing but Python's own library: a varlink message is a JSON object and a NUL byte, and a
reply to Read brings a stream along, a socket to read from (SCM_RIGHTS).
"""
import array
import json
import os
import socket
import sys
import time

SOCKET = os.environ.get("CPU_PROFILERD_SOCKET") or "/run/cpu-profilerd/control.sock"
INTERFACE = "io.cpuprofilerd.Sampler"
MESSAGE_BYTES_MAX = 65536


class SamplerError(Exception):
    """An error reply: its name and its parameters."""


class Sampler:
    """A connection; a session that it creates ends with it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.received = b""

    def call(self, method, **parameters):
        """Calls a method. Returns the reply's parameters and the descriptors that came with it."""
        message = {"method": f"{INTERFACE}.{method}", "parameters": parameters}
        self.socket.sendall(json.dumps(message).encode() + b"\0")
        fds = array.array("i")
        while b"\0" not in self.received:
            data, control, _, _ = self.socket.recvmsg(
                MESSAGE_BYTES_MAX, socket.CMSG_SPACE(fds.itemsize), socket.MSG_CMSG_CLOEXEC
            )
            if not data:
                raise ConnectionError("the daemon closed the connection")
            self.received += data
            for level, kind, payload in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(payload)
        text, self.received = self.received.split(b"\0", 1)
        reply = json.loads(text)
        if "error" in reply:
            raise SamplerError(reply["error"], reply.get("parameters"))
        return reply.get("parameters", {}), list(fds)

    def read(self, sequence):
        """Reads what is ready; `sequence` confirms what came before. Returns bytes, sequence, end."""
        reply, fds = self.call("Read", **({"ack": sequence} if sequence else {}))
        data = b""
        if reply["fd"] >= 0:
            with os.fdopen(fds[reply["fd"]], "rb") as stream:
                data = stream.read(reply["size_bytes"])
        return data, reply["sequence"], reply["end"]


def record_second(file):
    """Creates a session, starts it, reads for a second, stops it, and reads the rest."""
    sampler = Sampler(SOCKET)
    sampler.call("Create", config={"frequency_hz": 999})
    sampler.call("Start")
    until = time.monotonic() + 1
    running, end, sequence = True, False, 0
    while not end:
        if running and time.monotonic() >= until:
            print("stopped by", sampler.call("Stop")[0]["stopped_by"])
            running = False
        data, sequence, end = sampler.read(sequence)
        file.write(data)
        if not data and not end:
            time.sleep(0.1 if running else 0.005)
    sampler.call("Close")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_second.py FILE")
    try:
        with open(sys.argv[1], "wb") as file:
            record_second(file)
    except (OSError, SamplerError) as error:
        sys.exit(f"record_second.py: {error}")


if __name__ == "__main__":
    main()
