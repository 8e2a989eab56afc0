# SPDX-License-Identifier: Apache-2.0
"""
A member's client that has an attached session and is stopped: root_ends.py SOCKET UID GID STEP...

Goes through the steps (Create, Start, Stop, Read) as that user, says "ready", and waits for a line. Then it asks
for its session once more, and prints what it hears.
"""
import json
import os
import sys
import time

import members
from sampler import Connection, until

PATH, UID, GID, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
members.become(UID, UID, [GID])
client = Connection(PATH)
client.call("Create", config={})
for step in STEPS:
    if step == "Read":
        until(5, lambda: client.call("Read")["size_bytes"] > 0)
        os.close(client.fds.pop())
    else:
        client.call(step)
    time.sleep(0.3)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps(client.ask("Stop")), flush=True)
sys.stdin.readline()
