# SPDX-License-Identifier: Apache-2.0
"""Waits in functions of known names, and measures that by the clock: wait_names_program.py WARM_SECONDS SECONDS.

First it does so without measuring, while the names of its functions get known. Prints "FUNCTION wait_ns" of each thread,
less its CPU time, "wall_ns" of all together, and "from_s", the time since the machine's boot at which that began.
"""
import _thread
import os
import select
import sys
import time

NAP_S = 0.05  # beside it what a sample takes is little


def idle_ns():
    return time.monotonic_ns() - time.thread_time_ns()


class Measured(dict):
    is_over = False

    def add(self, name, since_ns):
        self[name] = self.get(name, 0) + idle_ns() - since_ns


def wait_in_sleep(own):
    begin_ns = idle_ns()
    time.sleep(NAP_S)
    own.add("wait_in_sleep", begin_ns)


def wait_in_pipe(own, fd):
    begin_ns = idle_ns()
    data = os.read(fd, 1)
    own.add("wait_in_pipe", begin_ns)
    return data


def wait_for_lock(own, lock):
    begin_ns = idle_ns()
    lock.acquire()
    own.add("wait_for_lock", begin_ns)


def fill_pipe(own, fd, deadline):
    while time.monotonic() < deadline:
        wait_in_sleep(own)
        os.write(fd, b"x")
    os.close(fd)
    own.is_over = True


def run_pipe(deadline, reader, writer):
    ends = os.pipe()
    _thread.start_new_thread(fill_pipe, (writer, ends[1], deadline))
    while wait_in_pipe(reader, ends[0]):
        pass


def take_turns(own, lock, deadline):
    while time.monotonic() < deadline:
        wait_for_lock(own, lock)
        wait_in_sleep(own)
        wait_in_sleep(own)
        lock.release()
        wait_in_sleep(own)  # the other has its turn
    own.is_over = True


def run_lock(deadline, first, second):
    lock = _thread.allocate_lock()
    _thread.start_new_thread(take_turns, (second, lock, deadline))
    take_turns(first, lock, deadline)


def run(part_s):
    """What both threads have measured. A thread is waited for in sleeps, since join() waits for a lock."""
    both = [Measured(), Measured()]
    for run_part in (run_pipe, run_lock):
        both[1].is_over = False
        run_part(time.monotonic() + part_s, *both)
        while not both[1].is_over:
            wait_in_sleep(both[0])
    return both


def main():
    warm_s, seconds = map(float, sys.argv[1:])
    warm_until = time.monotonic() + warm_s
    while time.monotonic() < warm_until:
        run(0.1)
    select.select([], [], [], 0.2)  # the time since the boot is told to 10 ms
    with open("/proc/uptime", encoding="ascii") as file:
        print("from_s", file.read().split()[0])
    select.select([], [], [], 0.2)
    begin_ns = time.monotonic_ns()
    both = run(seconds / 2)
    wall_ns = time.monotonic_ns() - begin_ns
    for own in both:
        for name, wait_ns in own.items():
            print(name, wait_ns)
    print("wall_ns", wall_ns)


main()
