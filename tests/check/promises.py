# SPDX-License-Identifier: Apache-2.0
"""
Finds what SECURITY.md promises without a test: promises.py PAGE TESTS, where TESTS has the name of each test on a line
of its own. The page itself documents the notation, in its section "How to read this page":

A sentence is held by the tests that it names in backticks (`unit.x`, `system.x`, `check.x`, `fuzz.x`). A row of a table
is held by those in its column "held by". A sentence that ends with a colon and names tests also holds each item of the
list, or each row of the table, that follows it. No test is needed for the sections that UNHELD matches, for paragraphs
that begin with UNPROMISED, for a sentence that ends with a colon, and for the rows of a table or list under such a
sentence that names tests.

Prints a line for each fault, and ends with status 1 when there is one. Before that it proves on pages of its own that
it finds every kind of fault, and that it accepts what is right.
"""
import re
import sys

UNHELD = re.compile(r"^(How to read this page|Reporting|Background\b.*)$")
UNPROMISED = "Not promised:"
TEST = re.compile(r"^(unit|system|check|fuzz)\.\w+$")
# The end of a sentence: a full stop and the like, perhaps with a bracket behind it, before a new beginning.
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[\"'(*\[\x00A-Z0-9])")


def blocks(text):
    """(line number, section, kind, text) of each paragraph, list item and table row; code blocks are left out."""
    section, code, block, start, kind = "", False, [], 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            code = not code
        head = re.match(r"#+ +(.*?) *$", line)
        begins = head or line.startswith("|") or re.match(r"[-*] ", line) or not line.strip() or line.startswith("```")
        if begins and block:
            yield start, section, kind, " ".join(block)
            block = []
        if head:
            section = head[1]
        if code or head or line.startswith("```") or not line.strip():
            if not line.strip() and not code:
                yield number, section, "gap", ""
            continue
        if not block:
            start, kind = number, "row" if line.startswith("|") else "item" if re.match(r"[-*] ", line) else "text"
        block.append(re.sub(r"^[-*] ", "", line.strip()))


def sentences(text):
    """The sentences of a paragraph. What stands between backticks ends none."""
    spans = []

    def keep(match):
        spans.append(match[0])
        return "\0%d\0" % (len(spans) - 1)

    for sentence in SENTENCE_END.split(re.sub(r"`[^`]*`", keep, text)):
        yield re.sub("\0(\\d+)\0", lambda match: spans[int(match[1])], sentence)


def tests_in(text):
    return [span for span in re.findall(r"`([^`]*)`", text) if TEST.match(span)]


def cells(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


class Page:
    def __init__(self, known):
        self.known, self.faults, self.sentence_count = known, [], 0

    def hold(self, number, text, tests):
        self.sentence_count += 1
        if not tests:
            self.faults.append("line %d: no test holds: %s" % (number, text[:120]))
        self.faults.extend("line %d: there is no test '%s'" % (number, test) for test in tests if test not in self.known)

    def text(self, number, text):
        """Returns whether the last sentence holds what follows."""
        held = False
        for sentence in sentences(text):
            held = sentence.endswith(":") and tests_in(sentence) != []
            if held or not sentence.endswith(":"):
                self.hold(number, sentence, tests_in(sentence))
        return held

    def read(self, text):
        held, header, last = False, None, ""
        for number, section, kind, block in blocks(text):
            if section != last:
                held, header, last = False, None, section
            if kind == "gap":
                header = None
                continue
            if UNHELD.match(section) or block.startswith(UNPROMISED):
                held, header = False, None
            elif kind == "text":
                held = self.text(number, block)
            elif kind == "item":
                if not held:
                    self.text(number, block)
            elif header is None:
                header = cells(block)
                if not held and "held by" not in header:
                    self.faults.append("line %d: the table has no column 'held by'" % number)
            elif not held and "held by" in header and not re.match(r"^\|[-| :]+\|$", block):
                row = cells(block)
                at = header.index("held by")
                self.hold(number, block, tests_in(row[at]) if len(row) == len(header) else [])
        return self


def self_test():
    """Each case: a page, and for each fault that it has a part of what is said of it."""
    table = "| input | held by |\n|---|---|\n"
    cases = [
        ("## A\nIt holds (`unit.a`). So does this, of `x.y. Z` (`unit.a`, `unit.b`).\n", []),
        ("## A\nIt holds (`unit.a`). This does not. It holds (`unit.b`).\n", ["no test holds: This does not."]),
        ("## A\nIt holds (`unit.a`): so\nit is (`unit.none`).\n", ["no test 'unit.none'"]),
        ("## A\n- It holds (`unit.a`).\n- It does not,\n  at all.\n", ["no test holds: It does not, at all."]),
        ("## A\n" + table + "| x | `unit.a` |\n| y | |\n", ["no test holds: | y"]),
        ("## A\n" + table + "| x | `unit.c` |\n", ["no test 'unit.c'"]),
        ("## A\n" + table + "| x `unit.a` | |\n", ["no test holds: | x"]),
        ("## A\n| x | y |\n|---|---|\n| a | b |\n", ["no column 'held by'"]),
        ("## A\nIt is so (`unit.a`):\n\n| x | y |\n|---|---|\n| a | b |\n\nIt is not.\n", ["no test holds: It is not."]),
        ("## A\nThese are so:\n- One.\n- Two (`unit.a`).\n", ["no test holds: One."]),
        ("## A\nThese are so (`unit.a`):\n- One.\n- Two.\n\nThree.\n", ["no test holds: Three."]),
        ("## A\n```sh\nNo sentence. At all.\n```\nNot promised: this. Nor this.\n\nBut this.\n", ["holds: But this."]),
        ("## A\nThese are so (`unit.a`):\n## B\n| x | y |\n|---|---|\n| a | b |\n", ["no column 'held by'"]),
        ("## Reporting\nNo.\n## Background: x\nNo.\n### Sub\nYes.\n", ["holds: Yes."]),
    ]
    for page, expected in cases:
        faults = Page({"unit.a", "unit.b"}).read(page).faults
        if len(faults) != len(expected) or not all(part in fault for part, fault in zip(expected, faults)):
            print("the check itself: of %r it says %s, not %s" % (page, faults, expected))
            sys.exit(1)


def main():
    self_test()
    known = set(open(sys.argv[2], encoding="utf-8").read().split())
    page = Page(known).read(open(sys.argv[1], encoding="utf-8").read())
    for fault in page.faults:
        print("%s: %s" % (sys.argv[1], fault))
    if page.sentence_count == 0:
        print("%s: it promises nothing" % sys.argv[1])
    sys.exit(page.faults != [] or page.sentence_count == 0)


main()
