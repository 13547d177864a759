"""Writes Python's regular expressions as JavaScript's, for the web page of an export."""

import re

_FLAGS = ((re.DOTALL, "s"), (re.IGNORECASE, "i"))
# Classes of characters that JavaScript's u mode can't subtract, or reads as ASCII.
_LETTER, _ALPHANUMERIC, _WORD = r"\p{L}", r"\p{L}\p{N}", r"\p{L}\p{N}_"
_CLASSES = {r"[^\W\d_]": _LETTER, r"[^\W_]": f"[{_ALPHANUMERIC}]"}
_BORDER = f"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))"
_ESCAPED = {
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "d": r"\p{Nd}",
    "b": _BORDER,
    "A": "^",
    "Z": "$",
}
_IN_CLASS = {"w": _WORD, "d": r"\p{Nd}"}
_SYNTAX = "^$\\.*+?()[]{}|/"
_KEPT = "sSnrtfvux"  # escapes that JavaScript has, too


def to_javascript(pattern: re.Pattern[str]) -> dict[str, str]:
    """The arguments `source` and `flags` of JavaScript's RegExp for a pattern.

    A difference stays: JavaScript counts U+FEFF as white space.
    """
    flags = "gu" + "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
    return {"source": _Writer(pattern).written(), "flags": flags}


class _Writer:
    """Reads a pattern from left to right. `atom` is where the last atom of `out` begins."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.text = pattern.pattern
        self.is_verbose = bool(pattern.flags & re.VERBOSE)
        self.place = 0
        self.out = ""
        self.atom = 0
        self.open: list[int] = []  # where the groups that are open begin
        self.conditions: dict[int, str] = {}  # of conditional groups, by the number of open groups
        self.caseless = 0  # number of open groups when a group without case began
        self.atomic = 0  # number of possessive quantifiers

    def written(self) -> str:
        while self.place < len(self.text):
            self._step()
        return self.out

    def _step(self) -> None:
        rest = self.text[self.place :]
        if known := next((each for each in _CLASSES if rest.startswith(each)), ""):
            self._add(_CLASSES[known], len(known))
        elif rest[0] == "\\":
            self._add(*_escape(rest, _ESCAPED))
        elif rest[0] == "[":
            written, read = _class(rest)
            if self.caseless and "\\" not in written:
                written = f"{written[:-1]}{written[1:-1].upper()}]"
            self._add(written, read)
        elif rest[0] == "(":
            self._open(rest)
        elif rest[0] == ")":
            if self.caseless == len(self.open):
                self.caseless = 0
            self.conditions.pop(len(self.open), None)
            begin = self.open.pop()
            self._add(")", 1)
            self.atom = begin
        elif rest[0] == "|" and (name := self.conditions.get(len(self.open))):
            self._add(f"|(?=\\k<{name}>)", 1)
        elif rest[0] in "*+?{" and (quantifier := re.match(r"(?:[*+?]|\{\d*,?\d*\})([+?]?)", rest)):
            self._repeat(quantifier)
        elif self.is_verbose and rest[0].isspace():
            self.place += 1
        elif self.is_verbose and rest[0] == "#":
            self.place += len(rest.partition("\n")[0])
        else:
            self._add(rest[0] if rest[0] not in "{}]" else f"\\{rest[0]}", 1)

    def _add(self, written: str, read: int) -> None:
        self.atom = len(self.out)
        self.out += written
        self.place += read

    def _open(self, rest: str) -> None:
        self.open.append(len(self.out))
        if found := re.match(r"\(\?P=(\w+)", rest):  # a back-reference; `)` closes the group
            self._add(f"(?:\\k<{found[1]}>", found.end())
        elif found := re.match(r"\(\?\((\w+)\)", rest):
            # In JavaScript, a reference to a group without a match matches the empty text.
            self.conditions[len(self.open)] = found[1]
            self._add(f"(?:(?!\\k<{found[1]}>)", found.end())
        elif rest.startswith("(?i:"):  # new in JavaScript; only sets of letters are without case
            self.caseless = len(self.open)
            self._add("(?:", len("(?i:"))
        elif rest.startswith("(?P<"):
            self._add("(?<", len("(?P<"))
        else:
            found = re.match(r"\((?:\?(?:[:=!]|<[=!]))?", rest)
            assert found
            self._add(found[0], found.end())

    def _repeat(self, quantifier: re.Match[str]) -> None:
        """A possessive quantifier becomes a lookahead, which JavaScript never enters again."""
        self.place += quantifier.end()
        if quantifier[1] != "+":
            self.out += quantifier[0]
            return
        self.atomic += 1
        name = f"atomic{self.atomic}"
        begin = self.atom
        atom = self.out[begin:]
        self.out = f"{self.out[:begin]}(?:(?=(?<{name}>{atom}{quantifier[0][:-1]}))\\k<{name}>)"
        self.atom = begin


def _escape(rest: str, known: dict[str, str]) -> tuple[str, int]:
    """The JavaScript of the escape that `rest` begins with, and its length in Python."""
    letter = rest[1]
    if letter == "U":
        return f"\\u{{{int(rest[2:10], 16):x}}}", 10
    if letter in "ux":
        length = 6 if letter == "u" else 4
        return rest[:length], length
    if letter in known:
        return known[letter], 2
    return (rest[:2] if letter in _SYNTAX or letter in _KEPT or letter.isdigit() else letter), 2


def _class(rest: str) -> tuple[str, int]:
    """The JavaScript of the set of characters that `rest` begins with, and its length in Python."""
    begin = 2 if rest[1] == "^" else 1
    written = rest[:begin]
    place = begin
    while rest[place] != "]" or place == begin:
        if rest[place] == "\\":
            escaped, read = (
                (r"\-", 2) if rest[place + 1] == "-" else _escape(rest[place:], _IN_CLASS)
            )
            written += escaped
            place += read
        else:
            written += f"\\{rest[place]}" if rest[place] in "[]{}()/|" else rest[place]
            place += 1
    return f"{written}]", place + 1
