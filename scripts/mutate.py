# SPDX-License-Identifier: Apache-2.0
"""The mutants of a C source: for scripts/mutants.py.

mutants_of(path, text) lists every mutant of the text: one small error each, in the body of a function, and never in a
comment, text, preprocessor line, assert or attribute. The operators:
  compare    < and <=, > and >=, == and != change places
  logic      && and || change places
  negate     if (C) and while (C) become if (!(C)) and while (!(C)); not where that is the same as `compare`
  sum        binary + and -, += and -= change places; not in the size of an allocation
  constant   a whole number is 1 larger, or 1 smaller; not in the {0} of an initialiser or the size of a variable or
             an allocation, which only sanitizers watch; r < 0 does not become r < -1, since -errno is never -1 here
  drop       an assignment or a call that is a statement is left out; not one that only releases something, which the
             leak check of the dev build notices
  return     0 becomes 1 or -EIO; 1 and -errno become 0; true and false change places
The text is split into C's tokens. What is a statement or a declaration follows from the house style: no typedefs, and
the braces of a function alone on their lines.
"""
import collections
import re

Mutant = collections.namedtuple("Mutant", "key path line start end before after")
Token = collections.namedtuple("Token", "kind text start end")

TOKEN = re.compile(r"""
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<directive>^\#(?:\\\n|[^\n])*)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

OPPOSITES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
             "+": "-", "-": "+", "+=": "-=", "-=": "+="}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
CLOSING = {"(": ")", "[": "]", "{": "}"}
NOT_MUTATED = {"assert", "static_assert", "_Static_assert", "__attribute__"}
TYPE_WORDS = {"struct", "enum", "union", "const", "volatile", "static", "char", "short", "int", "long", "unsigned",
              "signed", "void", "bool", "float", "double", "_Atomic"}
KEYWORDS = {"if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue", "sizeof",
            "goto"}
ALLOCATION = {"malloc", "calloc", "realloc", "reallocarray", "grow"}
RELEASE = re.compile(r"(^|_)(free|close|munmap|closedir|fclose|unref)$")
WHOLE = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*$")


def is_type(token):
    return token.text in TYPE_WORDS or re.search(r"\w_t$", token.text) is not None


class Function:
    """The tokens of one function's body, from its { to its }."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.pair = {}
        self.around = [] # the innermost bracket that is open behind each token
        opened = []
        for index, token in enumerate(tokens):
            if token.kind == "mark" and token.text in CLOSING:
                opened.append(index)
            elif token.kind == "mark" and token.text in CLOSING.values():
                self.pair[opened.pop()] = index
            self.around.append(opened[-1] if opened else 0)
        self.opening = {last: first for first, last in self.pair.items()}
        self.untouched, self.sizes = set(), set()
        for index, token in enumerate(tokens):
            if token.text in NOT_MUTATED and tokens[index + 1].text == "(":
                self.untouched.update(range(index, self.pair[index + 1] + 1))
            elif token.text in ALLOCATION and tokens[index + 1].text == "(":
                self.sizes.update(range(index, self.pair[index + 1]))
        self.declarations = set()

    def text(self, index):
        return self.tokens[index].text

    def outermost(self, begin, end):
        """Indices of the tokens between the two that are in no bracket of their own."""
        index = begin
        while index < end:
            yield index
            index = self.pair.get(index, index) + 1

    def is_binary(self, index):
        """Whether the + or - at `index` has a left operand. A bracket around a type is a cast."""
        before = self.tokens[index - 1]
        if before.text == ")":
            begin = self.opening[index - 1]
            return not all(is_type(token) or token.text == "*" for token in self.tokens[begin + 1:index - 1])
        return before.text == "]" or (before.kind in ("number", "name") and before.text not in KEYWORDS)

    def statements(self):
        """(first, semicolon) of each statement that is no block; notes declarations."""
        for index in range(1, len(self.tokens)):
            before = self.text(index - 1)
            begins = before in ("{", "}", ";", "else", "do") or (before == ":" and self.is_label(index - 1))
            if before == ")":
                begin = self.opening[index - 1]
                begins = self.text(begin - 1) in ("if", "for", "while", "switch") or \
                    self.text(begin - 1).endswith("_each")
            if not begins or self.text(index) in ("{", "}") or self.text(self.around[index - 1]) != "{":
                continue
            for end in self.outermost(index, len(self.tokens) - 1):
                if self.text(end) == "}" or (self.text(end) == "{" and not self.is_value(end)):
                    break
                if self.text(end) == ";":
                    if self.is_declaration(index):
                        self.declarations.update(range(index, end))
                    else:
                        yield index, end
                    break

    def is_value(self, brace):
        """Whether the { begins an initialiser or a compound literal."""
        before = self.text(brace - 1)
        return before == "=" or (before == ")" and is_type(self.tokens[self.opening[brace - 1] + 1]))

    def is_label(self, colon):
        index = colon - 1
        while index > 0 and self.text(index) not in (";", "{", "}", ":", "case", "default", "?"):
            index -= 1
        return self.text(index) in ("case", "default")

    def is_declaration(self, index):
        if is_type(self.tokens[index]):
            return True
        if self.tokens[index].kind != "name" or self.text(index) in KEYWORDS:
            return False
        following = self.pair[index + 1] + 1 if self.text(index + 1) == "(" else index + 1
        return self.tokens[following].kind == "name"

    def is_dropped(self, first, end):
        """Whether the statement is an assignment or a call, and does more than release something."""
        if self.text(first) in KEYWORDS or first in self.untouched:
            return False
        if any(self.text(index) in ASSIGNMENTS for index in self.outermost(first, end)):
            return True
        call = first + 3 if [token.text for token in self.tokens[first:first + 3]] == ["(", "void", ")"] else first
        return self.tokens[call].kind == "name" and self.text(end - 1) == ")" and not RELEASE.search(self.text(call))


def errors_in_tokens(function):
    """(first, last, replacement, operator) of what is wrong with one token."""
    for index, token in enumerate(function.tokens):
        if index in function.untouched:
            continue
        if token.kind == "mark" and token.text in OPPOSITES:
            if token.text not in ("+", "-") or (function.is_binary(index) and index not in function.sizes):
                operator = {"&": "logic", "|": "logic", "+": "sum", "-": "sum"}.get(token.text[0], "compare")
                yield index, index, OPPOSITES[token.text], operator
        elif token.kind == "number" and WHOLE.match(token.text):
            around = function.text(index - 1) + function.text(index + 1)
            if around in ("{}", "return;") or (around == "[]" and index in function.declarations) or \
                    index in function.sizes:
                continue
            yield index, index, f"({token.text} + 1)", "constant"
            if token.text != "0" or function.text(index - 1) not in ("<", ">="):
                yield index, index, f"({token.text} - 1)", "constant"


def errors_in_conditions(function):
    for index, token in enumerate(function.tokens):
        if token.text in ("if", "while") and index not in function.untouched:
            begin, end = index + 1, function.pair[index + 1]
            marks = {function.text(inner) for inner in function.outermost(begin + 1, end)}
            if marks & {"&&", "||", "?"} or not marks & {"==", "!="}:
                yield begin, end, None, "negate"


def errors_in_statements(function, statements):
    returned = {"0": ["1", "-EIO"], "1": ["0"], "true": ["false"], "false": ["true"]}
    for first, end in statements:
        if function.is_dropped(first, end):
            yield first, end, ";", "drop"
        elif function.text(first) == "return" and end - first == 2:
            for value in returned.get(function.text(first + 1), []):
                yield first + 1, first + 1, value, "return"
        elif function.text(first) == "return" and end - first == 3 and \
                re.match(r"-E[A-Z0-9]+$", function.text(first + 1) + function.text(first + 2)):
            yield first + 1, first + 2, "0", "return"


def functions_of(text):
    tokens = [Token(match.lastgroup, match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)]
    tokens = [token for token in tokens if token.kind not in ("skip", "directive")]
    begin = None
    for index, token in enumerate(tokens):
        if token.text in "{}" and (token.start == 0 or text[token.start - 1] == "\n"):
            if token.text == "{":
                begin = index
            elif begin is not None:
                yield Function(tokens[begin:index + 1])
                begin = None


def mutants_of(path, text):
    lines = text.split("\n")
    seen = collections.Counter()
    for function in functions_of(text):
        statements = list(function.statements())
        errors = [*errors_in_tokens(function), *errors_in_conditions(function),
                  *errors_in_statements(function, statements)]
        for first, last, after, operator in sorted(errors, key=lambda error: error[:2]):
            start, end = function.tokens[first].start, function.tokens[last].end
            before = text[start:end]
            after = f"(!{before})" if after is None else after
            line = text.count("\n", 0, start)
            # The key does not change when lines come or go elsewhere in the file.
            key = f"{path}:{lines[line].strip()}:{operator}:{before}:{after}"
            seen[key] += 1
            yield Mutant(f"{key}:{seen[key]}", path, line + 1, start, end, before, after)
