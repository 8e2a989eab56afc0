# SPDX-License-Identifier: Apache-2.0
"""What a user without rights does to the waits of others' recordings.

hostile_waits.py KIND [ARGUMENT...] is the attacker: it becomes that user, prints `ready` and goes on until it is killed.
  exec PROGRAM  a thread that is not its process's leader executes PROGRAM, which naps and works for PROGRAM_S, again and
                again; prints `exec PID TID BEFORE_NS AFTER_NS`: between these the program began
  exit          processes with much memory exit all the time; half of them stay zombies for a while
  naps COUNT    so many threads nap for 50 ms each, again and again

hostile_waits.py ask_timer SOCKET is a member who does not go by profctl. judge_exec TRUTH DUMP, judge_naps DUMP RATE_HZ PID...: what came of it (below).
"""
import collections
import json
import mmap
import os
import signal
import sys
import threading
import time

import members
from sampler import Connection
from event_dump import read_dump

UID, GID = 4711, 4712
PROGRAM_S = 0.3
EXIT_BYTES, EXIT_PROCESSES = 64 << 20, 3
NAP_S = 0.05
TICK_NS = 10_000_000
PR_SET_PDEATHSIG = 1


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def fork():
    """A child that does not outlive its parent."""
    pid = os.fork()
    if pid == 0:
        members.LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return pid


def exec_from_a_thread(program):
    """The child says its thread's id and the time through a pipe; the program ends PROGRAM_S after it began, or later."""
    from_child, to_parent = os.pipe()
    pid = fork()
    if pid == 0:
        def become_it():
            time.sleep(0.01)
            os.write(to_parent, b"%d %d" % (threading.get_native_id(), now_ns()))
            os.execv(program, [program, "2000", "3000", "--seconds", str(PROGRAM_S)])
        threading.Thread(target=become_it).start()
        while True:
            time.sleep(1)
    os.close(to_parent)
    tid, before_ns = map(int, os.read(from_child, 100).split())
    os.close(from_child)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    print("exec", pid, tid, before_ns, now_ns() - int(PROGRAM_S * 1e9), flush=True)


def exit_with_memory():
    """What a process has in small pages takes long to take apart."""
    while True:
        pid = fork()
        if pid == 0:
            memory = mmap.mmap(-1, EXIT_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            memory[::mmap.PAGESIZE] = b"x" * (EXIT_BYTES // mmap.PAGESIZE)
            os._exit(0)
        if pid % 2 == 0:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            time.sleep(0.02)
        os.waitpid(pid, 0)


def nap_forever():
    while True:
        time.sleep(NAP_S)


def attack(kind, *arguments):
    members.LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    members.become(UID, UID, [GID])
    if kind == "exit":
        for _ in range(EXIT_PROCESSES - 1):
            if fork() == 0:
                exit_with_memory()
    elif kind == "naps":
        threading.stack_size(65536)
        for _ in range(int(arguments[0])):
            threading.Thread(target=nap_forever, daemon=True).start()
    print("ready", flush=True)
    while kind == "exec":
        exec_from_a_thread(*arguments)
    if kind == "exit":
        exit_with_memory()
    while True:
        signal.pause()


def ask_timer(path):
    """Each period below that of the limit for members, 10,000 a second, is refused by the daemon itself."""
    members.become(UID, UID, [GID])
    with Connection(path) as client:
        for period in (1, 9_999, 10_000, 99_999):
            config = {"events": [{"event": "task-clock", "period": period}]}
            reply = client.ask("Create", {"config": config})
            text = reply["parameters"].get("text", "") if "error" in reply else "accepted"
            print(f"{period} ns: {text}")
            assert f"with a period of {period} ns; at least 100000 is allowed (max_event_rate_hz in " in text, reply


def judge_exec(truth, dump):
    """The thread that executes has its leader's id from then on, and no record says so. It is over when the program has
    begun: neither its line nor a wait of it goes further. The line of the leader's id begins anew."""
    samples, _, lines = read_dump(dump)
    judged = 0
    with open(truth, encoding="ascii") as file:
        execs = [tuple(map(int, line.split()[1:])) for line in file if line.startswith("exec ")]
    for pid, tid, before_ns, after_ns in execs:
        own = [line for line in lines if line["pid"] == pid]
        ghosts = [line for line in own if line["tid"] == tid and line["boot_ts_ns"] < before_ns]
        if not ghosts or all(line["boot_ts_ns"] < before_ns for line in own):
            continue  # it was over before the recording began, or goes on
        judged += 1
        for line in ghosts:
            late_ns = line["boot_ts_ns"] + line["wall_ns"] - after_ns
            assert late_ns <= 0, f"thread {tid} of {pid} lives on for {late_ns} ns as a ghost: {line}"
        waits = [sample for sample in samples if sample["tid"] == tid and sample["time_ns"] > after_ns]
        assert not waits, f"thread {tid} of {pid} waits as a ghost: {waits[0]}"
        program = [line for line in own if line["tid"] == pid and line["boot_ts_ns"] >= before_ns]
        assert len(program) == 1, f"{pid} is not one program from its exec on: {own}"
        # It works for two parts in five.
        assert program[0]["wall_ns"] >= PROGRAM_S * 1e9 and program[0]["running_ns"] > 0, program
        assert program[0]["wall_ns"] == sum(program[0][term] for term in (
            "running_ns", "waiting_ns", "blocked_ns", "unexplained_ns")), program
    print(f"{judged} of {len(execs)} execs are in the recording from before to after")
    assert judged > 0, "no exec is judged"


def judge_naps(dump, rate_hz, *own_pids):
    """Waits that are long for the number of switches of which one is sampled stand for themselves, and need no sample: where
    they are more than half as many as samples may be, only longer ones are. That length is doubled each fifth of a second,
    and halved for one of these when there were few for 16 of them: so most of the seconds have no more, but for the
    first two. The waits of the daemon and its workers are all written. Where ten times as many wait as may be
    sampled, that is a storm."""
    samples, data, _ = read_dump(dump)
    may = int(rate_hz) * len(data["books"]["cpus"])  # a second
    total = data["books"]["events"][0]["total"]
    own = set(map(int, own_pids))
    first_ns = min(sample["time_ns"] for sample in samples)
    seconds = collections.defaultdict(collections.Counter)
    for sample in samples:
        if sample["pid"] not in own:
            second = seconds[(sample["time_ns"] - first_ns) // 1_000_000_000]
            second["all"] += 1
            second["bare"] += not sample["stack"] and not sample.get("kernel_stack")
    judged = [seconds[number] for number in range(2, max(seconds))]
    print(f"{total['received'] + total['not_sampled']} waits, {may} a second may be sampled; in each second are written, and without "
          f"a stack: {[(second['all'], second['bare']) for second in judged]}")
    assert total["received"] + total["not_sampled"] > 10 * may * len(judged), "this is no storm"
    kept = [second for second in judged if second["bare"] <= may / 2 and second["all"] <= 2 * may]
    assert len(judged) >= 8 and 2 * len(kept) >= len(judged), "too many waits are written"

if sys.argv[1].startswith(("judge_", "ask_")):
    globals()[sys.argv[1]](*sys.argv[2:])
else:
    attack(*sys.argv[1:])
