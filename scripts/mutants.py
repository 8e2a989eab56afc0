# SPDX-License-Identifier: Apache-2.0
"""Runs mutants against unit tests: for scripts/proof-mutants.sh, which says what this is.

mutants.py FOLDER COUNT SEED FILE...: FOLDER/sources is a copy of the sources, FOLDER/build is configured for it. Only
this program changes FOLDER. A mutant is a file of its own: it is compiled as the source is, and each unit test that
links that source is linked with the mutant's object before the libraries, so that theirs is not taken.

A mutant does not count, and another one is drawn, when it does not compile or when its object is the source's own. It
is killed when a test fails, crashes, or takes ten times as long as without a mutant and 10 s more.

FOLDER/base.json has the tests of the sources, FOLDER/results a line for each mutant that was run. Both hold for the
sources with one checksum. Of other sources, the test that killed a mutant is only tried first.
"""
import collections
import hashlib
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time

import mutate

LEAST_SHARE = 0.85
ADDRESS_SPACE_BYTES = 8 << 30


def run(command, folder, limit_s=None):
    """Exit status of the command, which has a session of its own; None when it takes longer."""
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=bound) as child:
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def checksum_of(sources):
    total = hashlib.sha256()
    for path in sorted(os.path.join(folder, name) for folder, _, names in os.walk(sources) for name in names):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                total.update(path.encode() + b"\0" + file.read())
    return total.hexdigest()


class Build:
    """The unit tests of the unchanged sources: how each is linked, from which objects, and how long it takes."""

    def __init__(self, folder, paths):
        self.folder = os.path.abspath(f"{folder}/build")
        self.checksum = checksum_of(f"{folder}/sources")
        self.base_path = f"{folder}/base.json"
        with open(f"{self.folder}/compile_commands.json", encoding="utf-8") as file:
            entries = json.load(file)
        sources = os.path.abspath(f"{folder}/sources") + "/"
        self.compiles = collections.defaultdict(list)
        for entry in entries:
            self.compiles[entry["file"].removeprefix(sources)].append(shlex.split(entry["command"]))
        rooms = {object_of(words)[0] for path in paths for words in self.compiles[path]}
        tests = [os.path.basename(path).removesuffix(".c") for path in self.compiles
                 if path.startswith("tests/unit/test_")]
        self.links = {test: words for test, words in self.links_of(tests)
                      if rooms & {os.path.dirname(word) for word in words if word.endswith(".a")}}
        if not self.links:
            sys.exit("no unit test links any of these files")
        subprocess.run(["ninja", "-C", self.folder, *self.links], check=True, stdout=sys.stderr)
        self.tests = self.known_tests()
        for test in self.links.keys() - self.tests.keys():
            self.add_test(test)

    def links_of(self, tests):
        commands = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", *tests], check=True,
                                  capture_output=True, text=True).stdout
        for line in commands.splitlines():
            made = re.search(r" -o bin/(test_\w+) ", line)
            if made:
                yield made[1], shlex.split(line.removeprefix(": && ").removesuffix(" && :"))

    def known_tests(self):
        try:
            with open(self.base_path, encoding="utf-8") as file:
                known = json.load(file)
        except FileNotFoundError:
            return {}
        return known["tests"] if known["checksum"] == self.checksum else {}

    def add_test(self, test):
        """Ends the program when the test fails as it is."""
        trace = subprocess.run([*self.links[test], "-fuse-ld=bfd", "-Wl,--trace,--trace"], cwd=self.folder,
                               check=True, capture_output=True, text=True).stdout
        # A library's member, as GNU ld prints it: (LIBRARY)OBJECT.
        members = re.findall(r"^\((.*)\)(.*\.c\.o)$", trace, re.MULTILINE)
        began = time.monotonic()
        status = run([f"{self.folder}/bin/{test}"], f"{self.folder}/tests")
        if status != 0:
            sys.exit(f"{test} fails without a mutant (status {status})")
        objects = sorted({f"{os.path.dirname(library)}/{member}" for library, member in members})
        self.tests[test] = {"objects": objects, "seconds": time.monotonic() - began}
        with open(self.base_path, "w", encoding="utf-8") as file:
            json.dump({"checksum": self.checksum, "tests": self.tests}, file, indent=1)

    def tests_of(self, path):
        """(compile command, tests) for each object of the source that a test links."""
        for words in self.compiles[path]:
            tests = [test for test in self.links if "/".join(object_of(words)) in self.tests[test]["objects"]]
            if tests:
                yield words, tests


def object_of(words):
    """(folder of its library, name) of the object that a compile command makes."""
    output = words[words.index("-o") + 1]
    return output.split("/CMakeFiles/")[0], os.path.basename(output)


class Runner:
    def __init__(self, folder, build):
        self.build = build
        self.folder = os.path.abspath(folder)
        self.results_path = f"{folder}/results"
        self.verdicts = {}
        self.killers = {}
        self.kills = collections.Counter()
        self.plain = {}
        if os.path.exists(self.results_path):
            with open(self.results_path, encoding="utf-8") as file:
                for result in map(json.loads, file):
                    self.killers[result["key"]] = result["test"]
                    if result["checksum"] == build.checksum:
                        self.verdicts[result["key"]] = result["verdict"]
                        self.kills[result["key"].split(":")[0], result["test"]] += 1

    def verdict_of(self, mutant, text):
        """What became of the mutant: "killed by TEST", "SURVIVED", or None when it does not count."""
        if mutant.key not in self.verdicts:
            test, verdict = self.judge(mutant, text)
            self.verdicts[mutant.key] = verdict
            self.kills[mutant.path, test] += 1
            with open(self.results_path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"checksum": self.build.checksum, "key": mutant.key, "test": test,
                                       "verdict": verdict}) + "\n")
        return self.verdicts[mutant.key]

    def judge(self, mutant, text):
        changed = text[:mutant.start] + mutant.after + text[mutant.end:]
        for words, tests in self.build.tests_of(mutant.path):
            plain = self.plain_object(words, mutant.path, text)
            if self.compile(words, mutant.path, changed) in (None, plain):
                return None, None
            for test in self.ordered(mutant, tests):
                failure = self.failure_of(test)
                if failure is not None:
                    return test, f"killed by {test}{failure}"
        return None, "SURVIVED"

    def ordered(self, mutant, tests):
        """The likeliest killer first: the one of another run, one that killed its like, one of its name, a quick one."""
        stem = os.path.basename(mutant.path).removesuffix(".c")
        return sorted(tests, key=lambda test: (test != self.killers.get(mutant.key), -self.kills[mutant.path, test],
                                               not test.startswith(f"test_{stem}"), self.build.tests[test]["seconds"]))

    def compile(self, words, path, text):
        """The object's bytes, which lie in mutant.o, or None."""
        source = f"{self.folder}/{os.path.basename(path)}"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        words = list(words)
        words[words.index("-o") + 1] = f"{self.folder}/mutant.o"
        at = words.index("-c")
        words[at:at + 2] = ["-iquote", os.path.dirname(f"{self.folder}/sources/{path}"), "-c", source]
        done = subprocess.run(words, cwd=self.build.folder, capture_output=True, check=False)
        os.unlink(source)
        if done.returncode != 0:
            return None
        with open(f"{self.folder}/mutant.o", "rb") as file:
            return file.read()

    def plain_object(self, words, path, text):
        name = words[words.index("-o") + 1]
        if name not in self.plain:
            self.plain[name] = self.compile(words, path, text)
        return self.plain[name]

    def failure_of(self, test):
        """Links the test with the mutant and runs it: None when it passes, else what is to be said of the failure."""
        program = f"{self.folder}/{test}"
        words = list(self.build.links[test])
        words[words.index("-o") + 1] = program
        words.insert(next(index for index, word in enumerate(words) if word.endswith(".a")),
                     f"{self.folder}/mutant.o")
        subprocess.run(words, cwd=self.build.folder, check=True, capture_output=True)
        limit_s = 10 * self.build.tests[test]["seconds"] + 10
        status = run([program], f"{self.build.folder}/tests", limit_s)
        if status is None:  # it may be the machine that took too long
            status = run([program], f"{self.build.folder}/tests", 3 * limit_s)
        os.unlink(program)
        if status is None:
            return ", which takes too long"
        return None if status == 0 else ""


def main():
    folder, count, seed, *paths = sys.argv[1:]
    build = Build(folder, paths)
    texts = {}
    for path in paths:
        if not any(build.tests_of(path)):
            print(f"{path}: no unit test links it; left out", file=sys.stderr)
            continue
        with open(f"{folder}/sources/{path}", encoding="utf-8") as file:
            texts[path] = file.read()
    # By a hash of each, so that a change of one source leaves the choice from all others as it is.
    mutants = sorted((mutant for path, text in texts.items() for mutant in mutate.mutants_of(path, text)),
                     key=lambda mutant: hashlib.sha256(f"{seed}:{mutant.key}".encode()).digest())
    print(f"{len(mutants)} mutants of {len(texts)} files")
    runner = Runner(folder, build)
    counted = survived = 0
    for mutant in mutants:
        if counted == int(count):
            break
        verdict = runner.verdict_of(mutant, texts[mutant.path])
        if verdict is None:
            continue
        counted += 1
        survived += verdict == "SURVIVED"
        line = texts[mutant.path].split("\n")[mutant.line - 1].strip()
        before, after = (" ".join(part.split()) for part in (mutant.before, mutant.after))
        print(f"{mutant.path}:{mutant.line}: {line}\n    {before} -> {after}: {verdict}", flush=True)
    share = (counted - survived) / max(counted, 1)
    print(f"{counted - survived} of {counted} killed, {100 * share:.1f} %, at least {100 * LEAST_SHARE:.0f} % are asked for")
    return share < LEAST_SHARE


sys.exit(main())
