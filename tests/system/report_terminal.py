# SPDX-License-Identifier: Apache-2.0
"""
What `profctl report` prints fits where it goes: report_terminal.py PROFCTL MAKER FOLDER.

A made recording has names far too long for a line, of programs that would drive the terminal. On terminals of 40 to
200 columns no line is longer, colours are the only escapes, and NO_COLOR and TERM=dumb take them away; in a pipe there
is none, names are whole, as with --wide, and sentences have 80 columns; with COLUMNS a pipe gets what a terminal of that
width does. On a terminal narrower than any table sentences still end between words. A pager gets what the terminal would,
and none is started for a pipe. The locale changes nothing but the bars of --per-second.
"""
import difflib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

from recording_maker import BOOKS, PROCESSES, SESSION, SYMBOLS, Recording

PROFCTL, MAKER, FOLDER = sys.argv[1:]
LONG = "a_namespace::" * 12 + "the_end"
COLOUR = re.compile(r"\033\[[0-9;]*m")
VIEWS = [[], ["--tree", "--min", "0"], ["--tree", "--inverted", "--min", "0"], ["--callers", LONG], ["--annotate", "evil*"],
         ["--processes", "--min", "0"],
         ["--books"], ["--lines"], ["--per-second"],
         *(["--by", by] for by in ("module", "process", "command", "thread", "cpu", "line"))]


def make(path, extra=0):
    made = Recording()
    made.module(7, 1, "/opt/" + "very_long_folder/" * 8 + "library_of_somebody.so", "ab", 0x1000, 0x1000)
    made.data(SYMBOLS, *({"build_id": "ab", "module": "/opt/" + "very_long_folder/" * 8 + "library_of_somebody.so",
                          "start": hex(64 * i), "size": 64, "name": name} for i, name in enumerate((LONG, "evil\033[2J\u009b1m\u202e"))))
    made.name(7, 0, "comm\033]0;\a\u009b")
    made.data(PROCESSES, *({"pid": pid, "boot_ts_ns": "0", "ppid": pid + 1 if pid < 47 else 0, "cmdline": ["/opt/evil\033[2J\u009b1m\u202e", LONG, "x" * 99, "\u2066\n"]}
                           for pid in range(7, 48)))  # deeper than the page is wide
    made.data(SESSION, {"session": "a", "host": "host\033[2J", "kernel": "6.1", "config": {"targets": {"comms": ["x\u202e"] * 64}}})
    counts = {"expected": 12345678, "received": 12300000, "lost": 0, "throttled": 45678, "missed": 1234567, "idle": 0,
              "unexplained": 0, "kept": 12300000, "filtered": 0, "dropped": 0}
    made.data(BOOKS, {"period_ns": 1000000, "cpus": [{"cpu": 0, **counts}], "total": counts, "idle_source": "switches"})
    for depth in range(1, 40 + extra):  # each stack forks the way of the one before it
        made.stack(7, [0x1001 + 64 * (depth % 2)] + [0x1001] * depth)
    made.write(MAKER, path)


def on_terminal(columns, *arguments, **environment):
    """What a terminal of so many columns gets from a report."""
    return verb_on_terminal(columns, "report", *arguments, **environment)


def verb_on_terminal(columns, *arguments, statuses=(0,), with_errors=False, **environment):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LESS", "PAGER", "PROFCTL_PAGER")}
    process = subprocess.Popen([PROFCTL, *arguments], stdout=follower, stderr=follower if with_errors else None, stdin=subprocess.DEVNULL,
                               env={**kept, "TERM": "xterm", "PROFCTL_PAGER": "", **environment})
    output = b""
    has_ended = False
    while not has_ended:  # the terminal stays open: what is in it when its last user closes it may be lost
        has_ended = process.poll() is not None
        while select.select([leader], [], [], 0 if has_ended else 0.01)[0]:
            output += os.read(leader, 65536)
    os.close(follower)
    os.close(leader)
    assert process.returncode in statuses, arguments
    return output.decode().replace("\r\n", "\n")


def in_pipe(*arguments, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment = {**kept, "PROFCTL_PAGER": "sed s/^/paged/", **environment}
    return subprocess.run([PROFCTL, "report", *arguments], check=True, stdout=subprocess.PIPE, env=environment).stdout.decode()


def differs(text, other):
    """Where two texts differ, line by line."""
    return "".join(difflib.unified_diff(other.splitlines(True), text.splitlines(True), "other", "this", n=0)) or None


def check(what, text, columns, has_colours):
    plain = COLOUR.sub("", text) if has_colours else text
    controls = [character for character in plain if ord(character) < 32 and character != "\n" or ord(character) == 127
                or 0x80 <= ord(character) < 0xa0 or character in "\u202e\u2028\u200e\u200f\u061c"]
    assert not controls, f"{what}: {controls}"
    assert (text != plain) == has_colours, f"{what}: colours are {'not ' if has_colours else ''}there"
    too_long = [line for line in plain.splitlines() if len(line) > columns]
    assert not too_long, f"{what}: lines of more than {columns} columns: {too_long[:2]}"
    assert "evil" in plain or "--by" in what or "--callers" in what, f"{what}: the name is not there at all"
    return plain


path = os.path.join(FOLDER, "made.fxt")
make(path)
for view in VIEWS:
    for columns in (40, 59, 60, 80, 200):
        check(f"{view} on {columns} columns", on_terminal(columns, path, *view), columns, True)
    piped = check(f"{view} in a pipe", in_pipe(path, *view, COLUMNS="80"), 80, False)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        difference = differs(on_terminal(80, path, *view, **{name: value}), piped)
        assert difference is None, f"{view} with {name}={value} is not what a pipe gets:\n{difference}"
    in_c = on_terminal(80, path, *view, LC_ALL="C", NO_COLOR="1")
    if "--per-second" in view:  # its bars, and nothing else, are of the locale's characters
        assert "@" in in_c and "\u2588" in piped, f"{view} does not follow the locale"
        in_c = in_c.replace("@", "\u2588")
    assert in_c == piped, f"{view} depends on the locale:\n{differs(in_c, piped)}"
assert len(on_terminal(20, path, NO_COLOR="1").splitlines()) > 5, "a tiny terminal shows nothing"
assert LONG in in_pipe(path, "--wide") and LONG in on_terminal(80, path, "--wide"), "--wide shortens names"
assert LONG in in_pipe(path) and LONG not in in_pipe(path, COLUMNS="80"), "a pipe shortens names, or COLUMNS does not"
sentences = in_pipe(path).split("\n\n")[0]
assert sentences == in_pipe(path, COLUMNS="80").split("\n\n")[0], "sentences in a pipe have not 80 columns"
for columns in 30, 59:
    narrow = on_terminal(columns, path, NO_COLOR="1").split("\n\n")[0]
    assert max(map(len, narrow.splitlines())) <= columns, f"sentences on {columns} columns: {narrow}"
    assert narrow.split() == sentences.split(), f"words are broken on {columns} columns: {narrow}"
    books = on_terminal(columns, path, "--books", NO_COLOR="1").split("\n\n")[-1]
    assert max(map(len, books.splitlines())) <= columns, f"books on {columns} columns: {books}"
    assert ("- total: 12345678 expected, 12300000" in books.replace("\n  ", " ")) == (columns == 30), f"books on {columns} columns: {books}"
# A comparison, and what the doctor finds: only a command that is to be pasted may be longer.
other = os.path.join(FOLDER, "other.fxt")
make(other, 3)
for columns in 40, 60, 71, 72, 80:
    lines = verb_on_terminal(columns, "diff", path, other, NO_COLOR="1").splitlines()
    assert "  profctl record -o before-$i.fxt -- COMMAND_BEFORE" in lines, f"a command is broken on {columns} columns: {lines}"
    too_long = [line for line in lines if len(line) > columns and not line.startswith("  profctl ")]
    assert not too_long, f"diff on {columns} columns: {too_long}"
    assert any(line.startswith(" before ") and "function" in line for line in lines), f"diff has no table on {columns} columns"
    lines = verb_on_terminal(columns, "doctor", "--socket", f"{FOLDER}/no.sock", statuses=(0, 1), NO_COLOR="1").splitlines()
    too_long = [line for line in lines if len(line) > columns and not re.match(" {11}\\S", line)]
    assert len(lines) > 5 and not too_long, f"doctor on {columns} columns: {too_long}"
assert "a_namesp" in on_terminal(40, path, "--by", "function", NO_COLOR="1"), "a narrow page has no names"
tree = in_pipe(path, "--processes", "--min", "0").splitlines()
ancestors = [line for line in tree if "  (/opt/evil?[2J?1m? " in line and line.endswith(")")]
assert len(ancestors) == 40 and sum("/opt/evil" in line for line in tree) == 41, "only one process of 41 has samples"
assert "in (): no sample of its own; shown for what it made" in tree, "what stands in parentheses is not explained"
plain = on_terminal(80, path, NO_COLOR="1").splitlines()
paged = on_terminal(80, path, NO_COLOR="1", PROFCTL_PAGER="sed s/^/paged:/")
assert paged.splitlines() == ["paged:" + line for line in plain], "the pager did not get it all"
assert "\033" in on_terminal(80, path, PROFCTL_PAGER="cat >&1"), "the pager's text has no colours"
assert "\033" not in on_terminal(80, path, PROFCTL_PAGER="cat >&1", LESS="F"), "a pager without -R gets colours"
assert on_terminal(80, path, NO_COLOR="1", PROFCTL_PAGER="exec true") == "", "a pager that ends at once is no failure"
for pager in ("/nonexisting -R", "nonexisting", " "):
    shown = on_terminal(40, path, "--by", "function", with_errors=True, NO_COLOR="1", PROFCTL_PAGER=pager)
    assert "a_namesp" in shown, f"the pager swallows the report: {shown!r}"
    assert pager == " " or f"profctl: note: the pager is not found, so there is none: {pager}" in shown, f"the pager '{pager}' is not missed"
shown = on_terminal(40, path, "--by", "function", with_errors=True, NO_COLOR="1", PROFCTL_PAGER="kill -9 $$")
assert "profctl: note: the pager failed" in shown, "a pager that is killed is not told"
assert "\033" not in on_terminal(80, path, TERM=""), "a terminal without a name gets colours"
assert "\033" in on_terminal(80, path, NO_COLOR=""), "an empty NO_COLOR leaves colours out"
print(f"{len(VIEWS)} views, 40 to 200 columns, in a pipe, without colours, in the C locale, and paged")
