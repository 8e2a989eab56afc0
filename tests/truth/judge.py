# SPDX-License-Identifier: Apache-2.0
"""
judge.py PROGRAMS DUMP... compares every sample of programs that know their own calls with their declarations.

A DUMP is the output of `profctl dump --json` for one recording. PROGRAMS has one line for each program: its name, file,
declaration (chains.py has the grammar), the reason if the program is absent, and the reason why some of its stacks are
known to be false today, with tabs between. Process names select the samples. The verdicts:

  true     the stack is marked complete (quality 1) and matches a whole chain
  marked   the stack has any other quality and matches a whole chain or the inner part of one
  none     the sample has no user stack
  WRONG    the stack is marked incomplete and matches no inner part of any chain
  UNTRUE   the stack is marked complete and matches no whole chain

The judge fails for one WRONG or UNTRUE stack; of a program that is known for them, if there is none. A program with too few samples in the functions that it `spins` in fails
as well, since nothing was tried. An absent program has a row with the reason.
"""
import bisect
import collections
import multiprocessing
import os
import subprocess
import sys

import chains
import recording

SPUN_MIN = 20  # samples in the functions that a program declares as `spins`
STACKS_SHOWN = 6
QUALITIES = {0: "none", 1: "complete", 2: "copy too short", 3: "depth", 4: "no rule", 5: "bad memory", 6: "stitched",
             7: "not proved"}


class Twin:
    """Names of a stripped program, by the symbols of its unstripped twin."""

    def __init__(self, path):
        out = subprocess.run(["nm", "--defined-only", "--numeric-sort", path + ".unstripped"], check=True,
                             capture_output=True, text=True).stdout
        rows = [line.split() for line in out.splitlines()]
        self.rows = [(int(row[0], 16), row[2]) for row in rows if row[1] in "tTwW"]
        self.starts = [row[0] for row in self.rows]
        self.module = os.path.basename(path)

    def named(self, frame):
        at = bisect.bisect_right(self.starts, frame.vaddr)
        if frame.named or frame.module != self.module or at == 0:
            return frame
        return frame._replace(name=self.rows[at - 1][1], named=True)


def verdict_of(declaration, process, frames, quality):
    if not frames:
        return "none"
    text = declaration.text(frames)
    if quality == recording.COMPLETE:
        return "true" if declaration.whole[process].fullmatch(text) else "UNTRUE"
    return "marked" if declaration.inner[process].fullmatch(text) else "WRONG"


class Program:
    """One row of the table."""

    def __init__(self, name, path, declaration, why_not, known):
        self.name = name
        self.why_not = why_not
        self.known = known
        if why_not:
            return
        with open(declaration, encoding="utf-8") as file:
            self.declaration = chains.Declaration(file, declaration, name, "t." + name)
        self.twin = Twin(path) if self.declaration.twin else None
        self.reset()

    def reset(self):
        self.counts = collections.Counter()
        self.qualities = collections.Counter()
        self.spun = 0
        self.bad = collections.Counter()

    def tally(self):
        return self.counts, self.qualities, self.spun, self.bad

    def take(self, tally):
        """Adds what another process has counted; None is nothing."""
        if tally is not None:
            counts, qualities, spun, bad = tally
            self.counts += counts
            self.qualities += qualities
            self.spun += spun
            self.bad += bad

    def add(self, sample):
        frames = [self.twin.named(frame) for frame in sample.frames] if self.twin else sample.frames
        verdict = verdict_of(self.declaration, sample.process, frames, sample.quality)
        self.counts[verdict] += 1
        if verdict == "marked":
            self.qualities[QUALITIES.get(sample.quality, f"quality {sample.quality}")] += 1
        spins = self.declaration.spins
        self.spun += bool(frames) and ("*" in spins or frames[-1].name in spins)
        if verdict in ("WRONG", "UNTRUE"):
            stack = ";".join(frame.name for frame in frames)
            self.bad[f"{verdict} ({QUALITIES.get(sample.quality, sample.quality)}) {stack}"] += 1

    def judge(self):
        """The remark that begins with FAILED; empty for a program without a fault that is not known."""
        bad = self.counts["WRONG"] + self.counts["UNTRUE"]
        if bad and not self.known:
            return "FAILED"
        if self.known and not bad:
            return f"FAILED: its stacks are true now, or marked, so this is over: {self.known}"
        if self.spun < SPUN_MIN:
            return f"FAILED: {self.spun} samples in {' '.join(sorted(self.declaration.spins))}, at least {SPUN_MIN}"
        return ""


def programs_of(path):
    programs = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            programs.append(Program(*line.rstrip("\n").split("\t")))
    return programs


def print_table(programs):
    print(f"{'program':16}{'samples':>8}{'true':>8}{'marked':>8}{'none':>6}{'WRONG':>7}{'UNTRUE':>8}  remarks")
    totals = collections.Counter()
    for program in programs:
        if program.why_not:
            print(f"{program.name:16}{'not judged: ' + program.why_not}")
            continue
        counts = program.counts
        totals.update(counts)
        remarks = [program.judge(), program.known and f"known: {program.known}"] + [f"{name}: {count}" for name, count in program.qualities.most_common()]
        print(f"{program.name:16}{counts.total():8}{counts['true']:8}{counts['marked']:8}{counts['none']:6}"
              f"{counts['WRONG']:7}{counts['UNTRUE']:8}  {', '.join(filter(None, remarks))}")
    print(f"{'total':16}{totals.total():8}{totals['true']:8}{totals['marked']:8}{totals['none']:6}"
          f"{totals['WRONG']:7}{totals['UNTRUE']:8}")


def begin(by_process):
    global judged_by_process
    judged_by_process = by_process


def tallies_of(dump):
    """How many samples have no process name, and the tally of each program that has any, by its name."""
    unknown = 0
    for program in judged_by_process.values():
        program.reset()
    for segment in recording.segments_of(dump):
        for sample in segment.samples({*judged_by_process, "[unknown]"}):
            program = judged_by_process.get(sample.process)
            if program is not None:
                program.add(sample)
            unknown += sample.process == "[unknown]"
    return unknown, {program.name: program.tally() for program in judged_by_process.values() if program.counts}


TRIAL = """spins leaf
let ROOT = _start;*;main
chain ROOT/f1;f2;leaf>*;handler
chain ROOT;deep{3}
chain ROOT;@trial.truth
"""

# A stack (L: of the C library, U: without a name), its quality, and the expected verdict.
TRIALS = """
_start;L:a;L:b;main;f1;f2;leaf      1 true
_start;L:a;main;f1                  1 true
_start;L:a;main;f1;f2;L:x;handler   1 true
_start;L:a;main;f1;L:x              1 true
_start;L:a;main;deep;deep;deep      1 true
_start;L:a;main;U:1                 1 true
_start;L:a;main;f1;__x86.get_pc_thunk.bx       1 true
_start;L:a;main;deep;__x86.get_pc_thunk.ax     1 UNTRUE
_start;L:a;main;__x86.get_pc_thunk.bx;f1       1 UNTRUE
_start;L:a;main;deep;deep           1 UNTRUE
_start;L:a;main;f2;leaf             1 UNTRUE
_start;main;f1;f2;leaf              1 UNTRUE
L:a;main;f1;f2;leaf                 1 UNTRUE
leaf                                1 UNTRUE
_start;L:a;main;f1;f2;leaf;other    1 UNTRUE
_start;L:a;main;f1;f2;U:1           1 UNTRUE
_start;L:a;main;f1;handler          1 UNTRUE
_start;L:a;main;f1;f2;leaf          7 marked
L:b;main;f1;f2;leaf                 2 marked
f2;leaf                             4 marked
deep;deep                           3 marked
L:x;handler                         5 marked
f1;leaf                             2 WRONG
main;leaf                           7 WRONG
other                               4 WRONG
f2;leaf;f2;leaf                     6 WRONG
-                                   0 none
"""


def judge_itself():
    """Ends the program unless the judge finds the faults of TRIALS, and only these."""
    declaration = chains.Declaration(TRIAL.splitlines(), "trial", "trial", "t.trial")
    for line in TRIALS.split("\n")[1:-1]:
        stack, quality, expected = line.split()
        frames = []
        for name in stack.split(";") if stack != "-" else []:
            kind, _, rest = name.rpartition(":")
            module = "libc.so.6" if kind == "L" else "trial.truth"
            frames.append(recording.Frame(rest, module, kind != "U", 0, module))
        said = verdict_of(declaration, "t.trial", frames, int(quality))
        if said != expected:
            sys.exit(f"the judge itself: {stack} of quality {quality} is {expected}, and it says {said}")


def main():
    judge_itself()
    programs = programs_of(sys.argv[1])
    judged = [program for program in programs if not program.why_not]
    by_process = {process: program for program in judged for process in program.declaration.whole}
    unknown = 0
    # Each recording by a process of its own, which has the programs as they are before any sample.
    with multiprocessing.get_context("fork").Pool(initializer=begin, initargs=(by_process,)) as pool:
        for unknown_here, tallies in pool.imap(tallies_of, sys.argv[2:]):
            unknown += unknown_here
            for program in judged:
                program.take(tallies.get(program.name))
    print_table(programs)
    if unknown:
        print(f"{unknown} samples have no process name, so no row counts them")
    failed = [program for program in judged if program.judge()]
    for program in failed:
        print(f"\n{program.name}: {program.judge()}")
        for stack, count in program.bad.most_common(STACKS_SHOWN):
            print(f"    {count:6} {stack}")
        if len(program.bad) > STACKS_SHOWN:
            print(f"    ... and {len(program.bad) - STACKS_SHOWN} more stacks")
    known = sum(1 for program in judged if program.known)
    print(f"\n{len(judged)} programs judged, {known} of them known for false stacks, "
          f"{len(programs) - len(judged)} not here, {len(failed)} failed")
    return 1 if failed or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
