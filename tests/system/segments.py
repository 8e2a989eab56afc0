# SPDX-License-Identifier: Apache-2.0
"""
Readers of one session that come and go: segments.py SOCKET FOLDER. What the n-th of them acknowledged is
FOLDER/n.fxt, whatever became of the rest; what a client gets that comes when all has been read is FOLDER/late.fxt.
"""
import json
import struct
import sys
import time

from sampler import Connection

PATH, FOLDER = sys.argv[1:]


def save(name, pieces):
    with open("%s/%s.fxt" % (FOLDER, name), "wb") as file:
        file.write(b"".join(pieces))


def attach():
    client = Connection(PATH)
    client.call("Attach")
    return client


def has_sample(piece):
    """Whether there is a SAMPLE blob among its records."""
    at = 0
    while at < len(piece):
        header, = struct.unpack_from("<Q", piece, at)
        if header & 15 == 5 and header >> 48 & 255 == 0x80:
            return True
        at += (header >> 4 & 4095) * 8
    return False


def read_and_die(count):
    """
    Acknowledges `count` pieces, or more until there is a sample in the last, reads another one twice, and goes.
    Returns the pieces, and that one.
    """
    pieces = []
    with attach() as client:
        piece, sequence, _ = client.read_next()
        while len(pieces) < count or (pieces and not has_sample(pieces[-1])):
            pieces.append(piece)
            piece, sequence, _ = client.read_next(sequence)
        assert client.read()[:2] == (piece, sequence), "what was not acknowledged must come again"
    return pieces, piece, sequence


def read_all(ack=None):
    """Everything, acknowledged."""
    pieces, end = [], False
    with attach() as client:
        while not end:
            piece, ack, end = client.read_next(ack)
            pieces.append(piece)
        client.read(ack)
    return pieces


with Connection(PATH) as creator:
    # The files of other programs of this machine would be read first.
    config = {"frequency_hz": 4000, "targets": {"comms": ["busy", "forker", "brief"]}}
    creator.call("Create", config=config, detach=True)
    creator.call("Start")

for n in range(8):
    time.sleep(0.3 if n > 0 else 0)  # the first one comes before the files have been read
    done, last, number = read_and_die((n + 2) % 3)
    if n % 4 == 3:
        # It had arrived after all: the next one says so before it reads.
        done.append(last)
        with attach() as successor:
            successor.read(number)
    save(n, done)
with attach() as client:
    client.call("Stop")
read_and_die(0)
save(8, read_all())
save("late", read_all())
with attach() as client:
    books = client.call("Status")["status"]["session"]["books"]
    client.call("Close")
print(json.dumps(books))
