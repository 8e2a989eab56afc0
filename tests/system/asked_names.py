# SPDX-License-Identifier: Apache-2.0
"""
What passes for a virtual machine of Java: asked_names.py LIBRARY KIND. It has a file mapped that is called libjvm.so, and
listens where tools attach, after SIGQUIT. KIND is what it does then (asked_names.sh).
"""
import ctypes, mmap, os, signal, socket, struct, sys, threading, time

library, kind = sys.argv[1:]
mapped = mmap.mmap(os.open(library, os.O_RDONLY), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
path = f"/tmp/.java_pid{os.getpid()}"


def listen(at):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(at)
    listener.listen(1)
    return listener


def serve(listener):
    while True:
        connection, _ = listener.accept()
        _, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        print("asked by", uid, gid, flush=True)
        try:
            connection.recv(4096)
            if kind == "planted":
                open(f"/tmp/perf-{os.getpid()}.map", "w", encoding="ascii").write("1 1 x\n")
            if kind in ("good", "other", "planted"):
                connection.sendall(b"0\nCommand executed successfully\n")
            elif kind == "refuses":
                connection.sendall(b"1\n\x1b[31mno\x07\n")
            while kind == "endless":
                connection.sendall(b"x" * 4096)
            while kind == "silent":
                time.sleep(1)
        except OSError:
            pass
        connection.close()


if os.fork() == 0:  # has samples, and ends with the other
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.05)
    for left in (path, f"/tmp/perf-{parent}.map"):
        if os.path.lexists(left):
            os.unlink(left)
    os._exit(0)



def take_signals():
    ctypes.CDLL(None).prctl(15, b"Signal Dispatcher", 0, 0, 0)
    time.sleep(1e9)


signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if kind != "server":
    threading.Thread(target=take_signals, daemon=True).start()
    while not any(open(f"/proc/self/task/{task}/comm", encoding="ascii").read() == "Signal Dispatch\n" for task in os.listdir("/proc/self/task")):
        time.sleep(0.01)
foreign = None
if kind == "foreign":
    # The socket of a child, in the name of this process.
    if os.fork() == 0:
        parent = os.getppid()
        foreign = listen(path)
        print("ready", flush=True)
        while os.getppid() == parent:
            time.sleep(0.05)
        os._exit(0)
elif kind == "silent":
    signal.signal(signal.SIGQUIT, lambda *_: None)
    listener = listen(path)
    print("ready", flush=True)
    serve(listener)
elif kind == "closed":
    # A signal that is sent stays pending.
    signal.signal(signal.SIGQUIT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
    print("ready", flush=True)
elif kind != "bare":
    signal.signal(signal.SIGQUIT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
    print("ready", flush=True)
    signal.sigwait([signal.SIGQUIT])
    serve(listen(path))
else:
    print("ready", flush=True)
while True:  # some of the time: it has samples, and leaves the CPUs to the tests beside this one
    for _ in range(100000):
        pass
    time.sleep(0.02)
