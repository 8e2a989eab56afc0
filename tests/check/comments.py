# SPDX-License-Identifier: Apache-2.0
"""
Finds names in comments that stand for nothing: comments.py, with the path of each source on a line of standard input.
A comment may write `name()` of a function or macro that the code of some source names, or that FOREIGN has, and `name.c`
or `name.h` of a source. A header with a folder before it is the kernel's or a library's.

Prints a line for each fault, and ends with status 1 when there is one. Before that it proves on sources of its own that
it finds both kinds of fault.
"""
import os
import re
import sys

# Functions of others that no source calls, and names of examples.
FOREIGN = {"dwarf_getscopes", "perf_output_begin", "perf_swevent_event", "pthread_cond_signal", "work_N"}
EXAMPLES = {"a.c", "app.c"}
# A comment, or what may hold the beginning of one.
PART = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def faults(sources):
    """The faults of {path: text}, a line each."""
    files = {os.path.basename(path) for path in sources} | EXAMPLES
    comments, words = [], set(FOREIGN)
    for path, text in sources.items():
        comments += [(path, match["comment"]) for match in PART.finditer(text) if match["comment"]]
        words.update(re.findall(r"\w+", PART.sub(lambda match: " " if match["comment"] else match[0], text)))
    for path, comment in comments:
        for name in re.findall(r"\b([A-Za-z_]\w*)\(\)", comment):
            if name not in words:
                yield f"{path}: a comment names {name}(), which no code does"
        for name in re.findall(r"(?<![\w/.-])\w+\.[ch]\b", comment):
            if name not in files:
                yield f"{path}: a comment names {name}, which is no source"


def judge_myself():
    good = {"a/x.c": '/* As x_do() of x.c, and of linux/no.h; see open(). */ int x_do(void) { return open("/*"); }'}
    bad = {"a/x.c": "/* As y_do() of y.c */ // and z_do()"}
    assert not list(faults(good)), list(faults(good))
    assert len(list(faults(bad))) == 3, list(faults(bad))


judge_myself()
found = list(faults({path: open(path, encoding="utf-8").read() for path in sys.stdin.read().split()}))
print("\n".join(found), end="\n" if found else "")
sys.exit(bool(found))
