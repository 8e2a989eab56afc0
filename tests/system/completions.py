# SPDX-License-Identifier: Apache-2.0
"""
Completion in the shells themselves: completions.py PROFCTL SOURCES FOLDER.

Each shell runs in a terminal of its own, where keys are pressed as a user does: words, TAB, and then keys that turn the line
into one that prints its words. So what is judged are the words of the command that would run.
"""
import os
import pty
import re
import select
import subprocess
import sys
import time

PROFCTL, SOURCES, FOLDER = sys.argv[1:]
SECONDS = 30  # a limit, and no measure: a shell that has not answered by then is stuck
failures = 0

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {SOURCES}/completions/profctl.bash\n"),
    "zsh": (["zsh", "-f", "-i"], f"fpath=({SOURCES}/completions $fpath); autoload -U compinit && compinit -u -D; bindkey -e\n"),
    "fish": (["fish", "--no-config", "-i"], f"source {SOURCES}/completions/profctl.fish\n"),
}
CASES = [
    ("repo\t", ["report"]),
    ("report --per\t", ["report", "--per-second"]),
    ("report --by fun\t", ["report", "--by", "function"]),
    ("report --by=conta\t", ["report", "--by=container"]),
    ("export --format pp\t", ["export", "--format", "pprof"]),
    ("report a\\ rec\t", ["report", "a recording.fxt"]),
    ("record --output=a\\ rec\t", ["record", "--output=a recording.fxt"]),
    ("record -o a\\ rec\t", ["record", "-o", "a recording.fxt"]),
    ("record -u roo\t", ["record", "-u", "root"]),
    ("record -- only_comm\t", ["record", "--", "only_command"]),
    ("status --js\t", ["status", "--json"]),
]


def expect(is_so, text):
    global failures
    if not is_so:
        failures += 1
        print(f"FAIL: {text}")


class Terminal:
    def __init__(self, command, first):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(FOLDER)
            os.environ.update(TERM="dumb", HOME=FOLDER, XDG_CONFIG_HOME=FOLDER, XDG_DATA_HOME=FOLDER, PS1="$ ", LC_ALL="C.UTF-8",
                              PATH=f"{os.path.dirname(PROFCTL)}:{FOLDER}:{os.environ['PATH']}")
            os.execvp(command[0], command)
        self.seen = ""
        self.type(first)
        self.say("begun")

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read_until(self, pattern):
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.seen, re.S)):
            if not select.select([self.fd], [], [], max(end - time.monotonic(), 0))[0]:
                return None
            self.seen += os.read(self.fd, 1 << 16).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found

    def say(self, word):
        """Waits until the shell takes what follows; the terminal's echo of the keys has another form."""
        self.type(f"printf '<%s>' {word} 'END\n")
        self.type("'\n")
        if not self.read_until(f"<{word}><END"):
            sys.exit(f"FAIL: a shell does not answer; it said {self.seen!r}")

    def words(self, keys):
        """The words of a line after these keys, without the first."""
        self.type(f"profctl {keys}\x01printf '<%s>' \x05 'END\n'\n")
        found = self.read_until(r"<profctl>((?:<[^<>]*>)*)<END\r?\n>")
        return re.findall("<([^<>]*)>", found[1]) if found else None

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def offered(*words):
    done = subprocess.run([PROFCTL, "--complete", *words], capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def judge_groups():
    """Control groups are offered by folder, and of all of them the units."""
    root = "/sys/fs/cgroup" if os.path.exists("/sys/fs/cgroup/cgroup.procs") else "/sys/fs/cgroup/unified"
    name = f"cpt-completions-{os.getpid()}"
    groups = [f"{name}.slice", f"{name}.slice/{name}-a.service", f"{name}.slice/{name}-b", f"{name}.slice/{name}-b/{name}-c.scope"]
    try:
        for group in groups:
            os.mkdir(f"{root}/{group}")
    except OSError as error:
        print(f"no control groups are made: {error}")
        made = [group for group in groups if os.path.isdir(f"{root}/{group}")]
    else:
        made = groups
        units = [f"{name}-a.service", f"{name}-c.scope", f"{name}.slice"]
        expect(sorted(offered("record", "-U", name)) == units, f"units are {offered('record', '-U', name)}, not {units}")
        expect(sorted(offered("record", "-U", f"x,{name}-a")) == [f"x,{name}-a.service"], "a second unit is not offered")
        expect(offered("record", "-G", f"/{name}") == [f"/{name}.slice"], "a control group is not offered")
        below = [f"/{name}.slice/{name}-a.service", f"/{name}.slice/{name}-b"]
        expect(sorted(offered("record", "-G", f"/{name}.slice/")) == below, "the control groups below one are not offered")
    finally:
        for group in reversed(made):
            os.rmdir(f"{root}/{group}")


def judge_offers():
    """What is offered is what --help has, and what this machine has."""
    verbs = re.findall(r"^  ((?!profctl)[a-z]+) ", subprocess.run([PROFCTL, "--help"], capture_output=True, text=True, check=True).stdout, re.M)
    expect(offered("") == verbs and len(verbs) > 10, f"verbs are {offered('')}, not {verbs}")
    for verb in verbs:
        text = subprocess.run([PROFCTL, verb, "--help"], capture_output=True, text=True, check=True).stdout
        options = re.findall(r"^  (?:-.[, ] ?)?\s*(--[a-z-]+)", text, re.M)
        found = [word for word in offered(verb, "-") if word.startswith("--")]
        expect(sorted(found) == sorted(options) and "--help" in found, f"{verb}: {found}, not {options}")
    child = subprocess.Popen(["sleep", "600"])
    expect(str(child.pid) in offered("record", "-p", str(child.pid)[:-1]), "a process is not offered")
    expect(f"1,{child.pid}" in offered("record", "--pid", f"1,{child.pid}"), "a second process is not offered")
    expect(f"--tid={child.pid}" in offered("record", f"--tid={child.pid}"), "a thread is not offered")
    child.kill()
    child.wait()
    expect(offered("record", "-F", "") == [], "a number is offered")
    expect(offered("nonsense", "") == [], "an unknown verb has options")
    expect(offered("record", "-G", "") == ["/"], "the control group's root is not offered")
    judge_groups()


def main():
    with open(f"{FOLDER}/a recording.fxt", "w", encoding="ascii"), open(f"{FOLDER}/only_command", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    os.chmod(f"{FOLDER}/only_command", 0o755)
    judge_offers()
    for name, (command, first) in SHELLS.items():
        terminal = Terminal(command, first)
        for keys, expected in CASES:
            found = terminal.words(keys)
            expect(found == expected, f"{name}: {keys!r} becomes {found}, not {expected}; {terminal.seen if found is None else ''!r}")
        terminal.end()
    sys.exit(failures > 0)


main()
