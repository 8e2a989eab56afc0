# SPDX-License-Identifier: Apache-2.0
"""
A filesystem (FUSE) of one file, `program`: paused_filesystem.py FOLDER PROGRAM FLAG. It mounts itself over FOLDER, and
says "ready". While FLAG is there, no open() is answered; what has the file open goes on.
"""
import ctypes, os, select, struct, sys

folder, program, flag = sys.argv[1:]
content = open(program, "rb").read()
ROOT, FILE = 1, 2
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 3, 14, 15, 17, 18, 25, 26
HEADER = struct.Struct("<IIQQIIII")
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    size, mode = (0, 0o40755) if node == ROOT else (len(content), 0o100755)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, size // 512 + 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def reply(fd, unique, error, body=b""):
    try:
        os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
    except FileNotFoundError:
        pass  # the caller was interrupted


def answer(fd, code, unique, node, body):
    if code == INIT:
        reply(fd, unique, 0, struct.pack("<IIIIHHIIHHIIHHIII", 7, 31, 65536, 0, 12, 10, 131072, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    elif code == LOOKUP:
        known = body.split(b"\0")[0] == b"program"
        reply(fd, unique, 0 if known else -2, struct.pack("<QQQQII", FILE, 0, 0, 1000, 0, 0) + attributes(FILE) if known else b"")
    elif code == GETATTR:
        reply(fd, unique, 0, struct.pack("<QII", 1000, 0, 0) + attributes(node))
    elif code == OPEN:
        reply(fd, unique, 0, struct.pack("<QII", 0, 2, 0))  # its pages stay in the cache
    elif code == READ:
        offset, size = struct.unpack_from("<QI", body, 8)
        reply(fd, unique, 0, content[offset : offset + size])
    elif code == STATFS:
        reply(fd, unique, 0, struct.pack("<QQQQQIIII24x", 1, 0, 0, 2, 0, 4096, 255, 4096, 0))
    elif code in (RELEASE, FLUSH):
        reply(fd, unique, 0)
    elif code not in (2, 42):  # forget, which has no answer
        reply(fd, unique, -38)


fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
if libc.mount(b"slow", folder.encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
print("ready", flush=True)
waiting = []
while True:
    readable, _, _ = select.select([fd], [], [], 0.05)
    if not os.path.exists(flag):
        for request in waiting:
            answer(*request)
        waiting = []
    if readable:
        request = os.read(fd, 1 << 20)
        size, code, unique, node, uid, gid, pid, padding = HEADER.unpack_from(request)
        parsed = (fd, code, unique, node, request[HEADER.size : size])
        if code == OPEN and os.path.exists(flag):
            waiting.append(parsed)
            print("an open waits", flush=True)
        else:
            answer(*parsed)
