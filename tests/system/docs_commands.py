# SPDX-License-Identifier: Apache-2.0
"""
Runs the commands that pages show: docs_commands.py SOURCES MAN READY WORK, where MAN has the manual pages, READY what is
copied to the folder of each page, and WORK is for these folders.

In README.md and docs/, a block marked `console` has commands behind a prompt (`$ ` or `# `) and below each what it prints;
a block marked `sh` has commands alone. A command with <<'END' goes on to that line. In a manual page each literal block below EXAMPLES has commands, or a config in
JSON. One shell runs all of a page, in order. A command ends with status 0, or with another where the output shown is a
complaint ("profctl: ...").

Outputs are compared as words, so that lines may break elsewhere. Numbers, times, sizes, ids, the host and what a machine
does on its own (which commands ran, what casts doubt, what the books are of) are all alike, and so are rows that differ
in numbers only; a line `...` stands for anything.

A block behind `<!-- not run: REASON -->` is not run, in a manual page one behind `.\\" not run: REASON`; with
`<!-- not run, nor is another block of this page: REASON -->` no block of the page is.
"""
import os, pathlib, re, shutil, subprocess, sys, time

COMMAND_S = 60 * float(os.environ.get("CPU_PROFILERD_PATIENCE", "1"))
LEAST_COMMANDS = 80  # that all pages together have, so that a change of their form is seen here
PROMPT = re.compile(r"^\w*[$#] ")
NOT_RUN = re.compile(r"^<!-- not run(, nor is another block of this page)?: (.+) -->$")


class Block:
    def __init__(self, page, line, kind, text, reason):
        self.page, self.line, self.kind, self.text, self.reason = page, line, kind, text, reason

    def commands(self):
        """(command, shown output or None) of each."""
        if self.kind == "json":
            check = "cpu-profilerd --check" if "daemon" in self.page else "profctl check"
            yield "\n".join(["cat >config.json <<'END'", *self.text, "END", check + " config.json"]), None
            return
        commands = []
        is_open = False
        end = None  # of a text that a command has behind it, <<'END'
        for line in self.text:
            if end is not None:
                commands[-1][0] += "\n" + line
                end = None if line == end else end
                continue
            if self.kind == "console" and not is_open and not PROMPT.match(line):
                commands[-1][1].append(line)
                continue
            text = line if is_open or self.kind != "console" else PROMPT.sub("", line)
            if is_open:
                commands[-1][0] += "\n" + text
            elif text.strip():
                commands.append([text, []])
            is_open = text.endswith("\\")
            marked = re.search(r"<<'(\w+)'", text)
            end = marked[1] if marked else None
        for command, output in commands:
            yield command, output if self.kind == "console" else None


def markdown_blocks(name, text):
    kind, lines, start, reason, page_reason = None, [], 0, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if kind is not None:
            if line.startswith("```"):
                if kind not in ("console", "sh") and any(PROMPT.match(each) for each in lines):
                    sys.exit(f"{name}:{start}: a block with a prompt is marked `console`")
                if kind in ("console", "sh"):
                    yield Block(name, start, kind, lines, reason or page_reason)
                kind, reason = None, ""
            else:
                lines.append(line)
        elif line.startswith("```"):
            kind, lines, start = line[3:].strip(), [], number
        elif NOT_RUN.match(line):
            whole, why = NOT_RUN.match(line).groups()
            reason, page_reason = why, why if whole else page_reason
        elif line:
            reason = ""


def manual_blocks(name, text):
    at_examples, lines, reason = False, None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(".Sh "):
            at_examples = line == ".Sh EXAMPLES"
        elif line.startswith('.\\" not run: '):
            reason = line.partition(": ")[2]
        elif at_examples and line.startswith(".Bd -literal"):
            lines = []
        elif line == ".Ed" and lines is not None:
            yield Block(name, number - len(lines), "json" if lines[0].startswith("{") else "sh", lines, reason)
            lines, reason = None, ""
        elif lines is not None:
            lines.append(line.replace("\\-", "-").replace("\\e", "\\"))


LIKE = [  # what is alike, and what stands for it
    # A command that had to wait for a CPU, on a busy machine.
    (r"(?m)^profctl: note: '[^'\n]*' had a CPU for [^\n]*\n", ""),
    # In a report a warning goes on in the next lines, and is the last; elsewhere it is one line, however long.
    (r"(?m)^warning: cpu (?:[^\n]{69,}\n|[^\n]*\n((?!warning: |profctl )[^\n]+\n)*)", ""),
    (r"(?s)Nothing casts doubt on it:.*?(?:is|are)\s+missing\.|But mind:\n(- [^\n]*\n(  [^\n]*\n)*)+", " DOUBT "),
    (r"(?s)books: of .*?\((?:--books|profctl\s+status):\s+of\s+each\s+CPU\)", " BOOKS "),
    (r"(?s)CPU time by command:.*?\.\n", " COMMANDS "),
    (r"\S+ \(Linux [^)]*\)", "HOST"),
    (r"\b[0-9a-f]{16}\b", "N"),
    (r"(?<!\w)-?\d+([.,:/-]\d+)*", "N"),
    (r"\b([KMG]i)?B\b|\bbytes\b", "BYTES"),
    (r"(?m) /\S*/(\S+)$", r" \1"),  # a file at the end of a row: its folder stands there where the row is wide enough
]


def words(lines):
    text = "\n".join("\0" if line == "..." else line for line in lines) + "\n"
    for pattern, name in LIKE:
        text = re.sub(pattern, name, text)
    found = []
    for line in text.splitlines():
        row = re.sub(r"\bN( +N)+\b", "N", " ".join(line.split())).split()
        if row and found[-len(row):] != row:
            found += row
    return [word for i, word in enumerate(found) if not (word == "N" and i > 0 and found[i - 1] == "N")]


def differs(shown, printed):
    """What is shown and not printed, or printed and not shown; "" where nothing is."""
    pieces, actual, at = [[]], words(printed), 0
    for word in words(shown):
        pieces.append([]) if word == "\0" else pieces[-1].append(word)
    for i, piece in enumerate(pieces):
        is_last = i == len(pieces) - 1
        starts = [at] if i == 0 else [len(actual) - len(piece)] if is_last and piece else range(at, len(actual) - len(piece) + 1)
        start = next((start for start in starts if start >= at and actual[start:start + len(piece)] == piece), None)
        if start is None:
            return f"'{' '.join(piece)}' is shown; printed from there on: '{' '.join(actual[at:at + 60])}'"
        at = start + len(piece)
    if (pieces[-1] or len(pieces) == 1) and at != len(actual):
        return f"'{' '.join(actual[at:at + 60])}' is printed and not shown"
    return ""


def is_up(shown, printed):
    """Whether what goes on in the background has printed what it prints first: as shown, or that it listens."""
    return any("listening" in line for line in printed) if shown is None else not differs(shown, printed)


class Shell:
    """Runs commands in one folder, one after the other, with what they print in files."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.socket = str(folder / "control.sock")
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, cwd=folder, text=True, stdout=subprocess.DEVNULL)

    def run(self, command, shown):
        """The status, or None when time is up, and the lines printed. What goes on in the background has time to print."""
        self.count += 1
        script, out, done = (self.folder / f".{kind}.{self.count}" for kind in ("script", "out", "done"))
        script.write_text(command.replace("/tmp/control.sock", self.socket) + "\n")
        self.process.stdin.write(f". '{script}' >'{out}' 2>&1 </dev/null\necho $? >'{done}.new'; mv '{done}.new' '{done}'\n")
        self.process.stdin.flush()
        until = time.monotonic() + COMMAND_S
        while time.monotonic() < until:
            if done.exists():
                printed = out.read_text(errors="replace").replace(self.socket, "/tmp/control.sock").splitlines()
                if not command.rstrip().endswith("&") or is_up(shown, printed):
                    return int(done.read_text()), printed
            time.sleep(0.02)
        return None, out.read_text(errors="replace").splitlines()

    def end(self):
        self.process.stdin.write("profctl close 2>/dev/null\nkill $(jobs -p) 2>/dev/null\nwait\n")
        self.process.stdin.close()
        self.process.wait()


def fault_of(status, shown, printed):
    may_fail = shown is not None and any(line.startswith("profctl: ") and not line.startswith("profctl: note: ") for line in shown)
    if status is None:
        return "is not done in time, or does not print what is shown"
    if (status != 0) != may_fail:
        return f"ends with status {status}"
    # Of `--help` the same line stands alone.
    complaint = any(a.startswith("profctl: ") and b.startswith("usage: ") for a, b in zip(printed, printed[1:]))
    if not may_fail and complaint:
        return "is wrong usage in a pipe, which has another status"
    return "" if shown is None else differs(shown, printed)


def run_page(blocks, ready, folder):
    shutil.copytree(ready, folder, symlinks=True)
    shell, faults, count = Shell(folder), 0, 0
    for block in blocks:
        for command, shown in block.commands():
            status, printed = shell.run(command, shown)
            fault = fault_of(status, shown, printed)
            count += 1
            if fault:
                faults += 1
                print(f"{block.page}:{block.line}: {command}\n    {fault}\n    it printed:", *printed[:30], sep="\n    ")
    shell.end()
    return faults, count


def self_test():
    cases = [  # shown, printed, whether they differ
        (["a 1"], ["a 22"], False), (["a 1"], ["b 1"], True), (["a"], ["a", "b"], True), (["a", "b"], ["a"], True),
        (["a", "..."], ["a", "b"], False), (["...", "b"], ["a", "b"], False), (["...", "b"], ["b", "a"], True),
        (["a", "...", "c", "..."], ["a", "b", "c", "d"], False), (["a", "...", "d"], ["a", "b", "c"], True),
        (["x  1.5  f", "y"], ["x  f  y"], True), (["  0  12 3"], ["0 1 2", "1 4 5", "2 1 1"], False),
        (["total %  self %  function", " 1 2 f"], ["total %  function", " 1 f"], True), ([], ["a"], True), ([], [], False),
        (["a b", "c"], ["a", "b c"], False), (["vm (Linux 6.1-x), 2026-01-02 03:04:05 UTC"], ["h (Linux 5.9), 2025-01-02 03:04:05 UTC"], False),
        (["5.5 KiB in p.fxt"], ["1.2 MiB in p.fxt"], False), (["session 63528abd8f92689d: ok"], ["session 1111111111111111: ok"], False),
        (["..."], [], False), (["a", "...", "a"], ["a"], True), (["1 f m", "2 f m"], ["3 f m"], False),
    ]
    for shown, printed, expected in cases:
        if bool(differs(shown, printed)) != expected:
            sys.exit(f"the comparison itself: {shown} and {printed}: {differs(shown, printed)!r}")
    blocks = list(markdown_blocks("x", "<!-- not run: why -->\n```sh\na\n```\n```console\n$ b \\\n  c\nd\n# e\n```\n"))
    texts = list(markdown_blocks("x", "```sh\ncat >f <<'END'\na\n\nEND\nb\n```\n"))
    if list(texts[0].commands()) != [("cat >f <<'END'\na\n\nEND", None), ("b", None)]:
        sys.exit("the reading of texts behind a command")
    if [block.reason for block in blocks] != ["why", ""] or list(blocks[1].commands()) != [("b \\\n  c", ["d"]), ("e", [])]:
        sys.exit("the reading of pages itself")


def main():
    self_test()
    sources, manual, ready, work = map(pathlib.Path, sys.argv[1:])
    pages = [(path.relative_to(sources), markdown_blocks) for path in [sources / "README.md", *sorted((sources / "docs").glob("*.md"))]]
    pages = [(str(name), list(read(str(name), (sources / name).read_text()))) for name, read in pages]
    pages += [(path.name, list(manual_blocks(path.name, path.read_text()))) for path in sorted(manual.glob("*.[1-8]"))]
    faults = count = 0
    for name, blocks in pages:
        for block in blocks:
            if block.reason:
                print(f"{block.page}:{block.line}: not run: {block.reason}")
        blocks = [block for block in blocks if not block.reason]
        if blocks:
            began = time.monotonic()
            page_faults, page_count = run_page(blocks, ready, work / name.replace("/", "_"))
            faults, count = faults + page_faults, count + page_count
            print(f"{name}: {page_count} commands in {time.monotonic() - began:.1f} s")
    if count < LEAST_COMMANDS:
        sys.exit(f"only {count} commands were found")
    print(f"{count} commands, {faults} of them with faults")
    sys.exit(faults > 0)


main()
