# SPDX-License-Identifier: Apache-2.0
"""Recordings for tests, made by recording_maker.c out of Python values. Texts are str or bytes."""
import json, subprocess

SESSION, SYMBOLS, BOOKS, PROCESSES = 7, 8, 9, 10  # known strings, names of Data blobs


def digits(text):
    content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return content.hex() or "-"


class Recording:
    """A segment of one process or several, in the order of the calls."""

    def __init__(self, provider="test"):
        self.lines = [f"segment {digits(provider)}"]
        self.time_ns = 1000

    def string(self, index, text):
        self.lines.append(f"string {index} {digits(text)}")

    def name(self, pid, tid, text):
        self.lines.append(f"name {pid} {tid} {digits(text)}")

    def module(self, pid, number, path, build_id, start, size_bytes, vaddr=None):
        """A module and its mapping, of the module's addresses from `vaddr` or 0 on."""
        self.lines.append(f"module {pid} {number} {digits(path)} {build_id or '-'}")
        if vaddr is None:
            self.lines.append(f"mmap {pid} {number} {start} {size_bytes}")
        else:
            self.lines.append(f"segment_mmap {pid} {number} {start} {size_bytes} {vaddr}")

    def sample(self, pid, address):
        self.time_ns += 1000
        self.lines.append(f"sample {self.time_ns} {pid} {address}")

    def stack(self, pid, user, kernel=None, tid=None, cpu=0, quality=1):
        """A sample with both stacks, leaf first; `kernel` None: it was not in the kernel."""
        self.time_ns += 1000
        words = [",".join(str(address) for address in stack or []) or "-" for stack in (user, kernel)]
        self.lines.append(f"stack {self.time_ns} {pid} {tid or pid} {cpu} {quality} {words[0]} {words[1]}")

    def event(self, pid, number, weight, user, kernel=None, tid=None, cpu=0):
        """A sample of the session's event `number`, other than 0, which is the clock."""
        self.time_ns += 1000
        words = [",".join(str(address) for address in stack or []) or "-" for stack in (user, kernel)]
        self.lines.append(f"event {self.time_ns} {pid} {tid or pid} {cpu} {number} {weight} {words[0]} {words[1]}")

    def partial(self, pid, number, user):
        """A sample whose stack goes on as the completion `number` says; on CPU 0."""
        self.time_ns += 1000
        self.lines.append(f"partial {self.time_ns} {pid} {pid} {number} {','.join(map(str, user)) or '-'}")

    def completion(self, number, user):
        self.lines.append(f"completion {number} {','.join(map(str, user)) or '-'}")

    def drops(self, cpu, first_ns, last_ns, count):
        """Samples that a CPU's buffer had no room for."""
        self.lines.append(f"drops {cpu} {first_ns} {last_ns} {count}")

    def data(self, name, *objects):
        """A Data blob of JSON objects, or of lines as they are; `name` is a known string or a text."""
        lines = [o if isinstance(o, str) else json.dumps(o, ensure_ascii=False) for o in objects]
        kind = "named_data" if isinstance(name, str) else "data"
        self.lines.append(f"{kind} {name} {digits(''.join(line + chr(10) for line in lines))}")

    def write(self, maker, path):
        with open(path, "wb") as file:
            subprocess.run([maker], input="\n".join(self.lines).encode() + b"\n", stdout=file, check=True)
