# SPDX-License-Identifier: Apache-2.0
"""
chains.py turns the declaration of a program (programs/NAME.truth) into patterns of its possible stacks.

A declaration has one statement a line; # begins a comment:
  spins NAME...        functions in which the program spends its time; * stands for all
  libc NAME...         functions of the C library inside a static program, beyond LIBC_NAMES
  own NAME...          the program is static, and all its functions but these are the C library's
  let WORD = CHAIN     WORD stands for these frames in later chains; in capitals, as no function is
  chain CHAIN          frames root first, with `;` between them
  process NAME         later chains are of the process with this name, instead of the program's own
  symbols              the program's unstripped twin (NAME.unstripped) names frames without a name

A frame of a chain is a function's name, or `a|b` for one of several, or
  *        one frame or more of the C library, the dynamic linker, the vDSO or a language's unwinder, or an entry of a
           linkage table that no chain names
  @FILE    a frame in FILE without a name in the recording
  a%z      a name that begins with a and ends with z, for names that a compiler or a runtime makes
  NAME{n}  n such frames, NAME+ one or more, NAME? one or none
The frames behind a `/` may be missing from some frame on: `a;b/c;d` allows a;b, a;b;c and a;b;c;d. The frames behind
a `>` may follow any of these, whole or in part: `a/b>*;h` allows a, a;*, a;*;h, a;b, a;b;* and a;b;*;h.
"""
import re

LIBC_MODULES = re.compile(r"(libc\.so\.6|libc\.so|ld-linux-x86-64\.so\.2|ld-linux\.so\.2|ld-musl-x86_64\.so\.1|\[vdso\]"
                          r"|libstdc\+\+\.so\.6[.0-9]*|libgcc_s\.so\.1)$")
# Functions of a static glibc or musl around the calls of a program.
LIBC_NAMES = ("__libc_start_main __libc_start_call_main __libc_start_main_impl __restore_rt __restore "
              "_start_c libc_start_main_stage2 __start_context clone __clone clone3 __clone3 start_thread start "
              # What the compiler calls in 32-bit code: divisions, and thunks that return their own address.
              "__udivdi3 __umoddi3 __x86.get_pc_thunk.ax __x86.get_pc_thunk.bx __x86.get_pc_thunk.cx "
              "__x86.get_pc_thunk.dx __x86.get_pc_thunk.si __x86.get_pc_thunk.di __x86.get_pc_thunk.bp").split()
THUNK = "__x86.get_pc_thunk."
TOKEN = re.compile(r"^(.*?)(\{\d+\}|[+?])?$")


class Declaration:
    """One declaration: for each process name the patterns of whole stacks and of their inner parts."""

    def __init__(self, lines, where, program, process):
        self.spins = set()
        self.libc = set(LIBC_NAMES)
        self.own = set()
        self.file = program + ".truth"
        self.words = {}
        self.twin = False
        self.chains = {}
        self.process = process
        for number, line in enumerate(lines, 1):
            statement = line.split("#")[0].split(None, 1)
            if statement:
                self.add(statement[0], statement[1].strip() if len(statement) > 1 else "", f"{where}:{number}")
        if not self.spins or not self.chains:
            raise ValueError(f"{where}: it needs `spins` and a chain")
        self.names = {name for chains in self.chains.values() for chain in chains for token in chain
                      for name in TOKEN.match(token).group(1).split("|")}
        self.whole = {}
        self.inner = {}
        for process, chains in self.chains.items():
            self.whole[process] = re.compile("|".join(pattern(chain) for chain in chains))
            self.inner[process] = re.compile("|".join(inner_pattern(chain) for chain in chains))

    def add(self, verb, rest, where):
        if verb == "spins":
            self.spins.update(rest.split())
        elif verb == "libc":
            self.libc.update(rest.split())
        elif verb == "own":
            self.own.update(rest.split())
        elif verb == "let":
            word, chain = re.fullmatch(r"(\w+)\s*=\s*(\S+)", rest).groups()
            self.words[word] = self.frames(chain)
        elif verb == "chain":
            self.chains.setdefault(self.process, []).extend(self.expand(rest))
        elif verb == "process":
            self.process = rest
        elif verb == "symbols":
            self.twin = True
        else:
            raise ValueError(f"{where}: no statement '{verb}'")

    def frames(self, text):
        frames = []
        for token in re.split(r"\s*;\s*", text.strip()):
            frames.extend(self.words.get(token, [token]))
        return frames

    def expand(self, text):
        """The plain chains that a chain with / and > stands for."""
        text, _, tail = text.partition(">")
        always, _, then = text.partition("/")
        always, then = self.frames(always), self.frames(then) if then else []
        tail = self.frames(tail) if tail else []
        for length in range(len(then) + 1):
            for tail_length in range(len(tail) + 1):
                yield always + then[:length] + tail[:tail_length]

    def is_library(self, frame):
        if LIBC_MODULES.match(frame.module) or frame.name in self.libc:
            return True
        if frame.name.endswith("@plt"):
            return frame.name not in self.names
        return bool(self.own) and frame.module == self.file and frame.name not in self.own

    def text(self, frames):
        """A stack as the text that the patterns match: each frame marked L (libc's), U (unnamed) or P. A thunk
        as the leaf, which any 32-bit function may call, is left out: its caller is judged as the leaf."""
        parts = []
        if len(frames) > 1 and frames[-1].named and frames[-1].name.startswith(THUNK):
            frames = frames[:-1]
        for frame in frames:
            if self.is_library(frame):
                parts.append(f"L:{frame.name};")
            elif frame.named:
                parts.append(f"P:{frame.name};")
            else:
                parts.append(f"U:{frame.module};")
        return "".join(parts)


def one_frame(name):
    """The pattern of one frame by one of the names between the |."""
    patterns = []
    for each in name.split("|"):
        kind = "U" if each.startswith("@") else "[LP]"
        patterns.append("L:[^;]*;" if each == "*" else
                        f"{kind}:{re.escape(each.lstrip('@')).replace('%', '[^;]*')};")
    return f"(?:{'|'.join(patterns)})"


def token_pattern(token, inner=False):
    """`inner`: the token is the outermost of a part, which may have lost some of its repetitions."""
    name, count = TOKEN.match(token).groups()
    if name == "*":
        count = "+"
    if inner and count and count[0] == "{":
        count = f"{{1,{count[1:-1]}}}"
    return f"(?:{one_frame(name)}){count or ''}"


def pattern(chain):
    return "".join(token_pattern(token) for token in chain)


def inner_pattern(chain):
    """Every innermost part of the chain, itself and the empty one included."""
    result = ""
    for token in chain:
        result = f"(?:{result}{token_pattern(token)}|{token_pattern(token, inner=True)}|)"
    # The empty alternative lets the frames before it be missing; the frames behind it must be there.
    return result
