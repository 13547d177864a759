"""Messages with branches in the syntax of ICU, such as `{n, plural, one {# file} other {# files}} found`.

Each branch is translated as a whole sentence, with the words around the argument: `{n, plural, one {# file found} other
{# files found}}`. Plurals get the categories of the target language.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Union

from transduce.inline.events import WITH_BRANCHES
from transduce.inline.markup import pieces
from transduce.inline.placeholders import intact
from transduce.text.formats import MESSAGE
from transduce.wings.documents.plurals import categories

MAX_TEXTS = 64  # maximum number of texts in a message
ARGUMENT = re.compile(
    r"\{\s*+(?P<name>\w++)\s*+,\s*+(?P<kind>plural|selectordinal|select)\s*+,"
    r"(?P<offset>\s*+offset:\d++)?(?P<gap>\s*+)"
)
BRANCH_KEY = re.compile(r"\s*+(?P<key>=\d++|[\w-]++)\s*+\{")
SPECIAL = re.compile(r"''|'(?=[{}#|])|[{}#]")
ALTERNATIVES = Union["Choice", str]  # a choice between messages, or a text to translate


class _Argument(NamedTuple):
    """An argument with branches, as it stands in a message."""

    name: str
    kind: str
    head: str  # the characters up to the first branch
    gap: str  # the blanks before a branch
    closing: str  # the characters behind the last branch
    branches: dict[str, list[Union["_Argument", str]]]


_Parts = list[_Argument | str]


@dataclass(frozen=True)
class Choice:
    """An argument around whole messages, one for each branch."""

    argument: _Argument
    branches: dict[str, ALTERNATIVES]


@dataclass(frozen=True)
class Branched:
    """A message with branches. `texts` are to be translated; `write` puts their translations in the message."""

    texts: list[str]
    doubled: bool  # whether an apostrophe is written twice
    before: str  # blanks around the message
    choice: Choice
    after: str

    def write(self, translations: Sequence[str]) -> str:
        """The translated message, or "" if a translation is missing."""
        pairs = zip(self.texts, translations, strict=True)
        if any(text.strip() and not translation.strip() for text, translation in pairs):
            return ""
        written = self._written(self.choice, iter(translations), "")
        return f"{self.before}{written}{self.after}"

    def _written(self, node: ALTERNATIVES, rest: Iterator[str], plural: str) -> str:
        """`plural` is the name of the argument that # stands for."""
        if isinstance(node, Choice):
            argument = node.argument
            plural = plural if argument.kind == "select" else argument.name
            branches = (
                f"{key} {{{self._written(branch, rest, plural)}}}"
                for key, branch in node.branches.items()
            )
            return f"{argument.head}{(argument.gap or ' ').join(branches)}{argument.closing}"
        text = next(rest)
        text = text.replace("'", "''") if self.doubled else re.sub(r"'(?=[{}#])", "''", text)
        text = text.replace(f"{{#{plural}}}", "#")
        return re.sub(r"\{#(\w+)\}", r"{\1, number}", text)


def branched(text: str, language: str) -> Branched | None:
    """The branches of a message for a target language.

    Returns None for a text without branches, with branches in a tag, with quoted braces, or with more than `MAX_TEXTS`
    texts.
    """
    if not WITH_BRANCHES.search(text) or any(
        piece.kind != "text" and WITH_BRANCHES.search(text[piece.begin : piece.end])
        for piece in pieces(text, html=True)
    ):
        return None
    content = text.strip()
    try:
        parts, end = _parse(content, 0, "")
        choice = _whole(parts, {}, language)
        texts = list(islice(_texts(choice), MAX_TEXTS + 1))
    except (ValueError, RecursionError):
        return None
    # With an offset, the argument and # stand for different numbers.
    has_offset = "offset:" in content and len(ARGUMENT.findall(content)) > 1
    if end < len(content) or isinstance(choice, str) or len(texts) > MAX_TEXTS or has_offset:
        return None
    before, _, after = text.partition(content)
    return Branched(texts, "''" in text, before, choice, after)


def _parse(text: str, at: int, plural: str) -> tuple[_Parts, int]:
    """The parts of the message that begins at an index, and the index behind it.

    Raises ValueError if the message is ambiguous.
    """
    parts: _Parts = [""]
    while special := SPECIAL.search(text, at):
        parts.append(text[at : special.start()])
        at = special.end()
        sign = special.group()
        argument = ARGUMENT.match(text, special.start())
        if sign == "'":
            raise ValueError("quoted signs")
        if sign == "#" and not plural:
            raise ValueError("inside another branch, # could stand for a number")
        if sign == "}":
            return parts, special.start()
        if argument:
            read, at = _parse_argument(text, argument, plural)
            parts.append(read)
        elif sign == "{":
            end = text.index("}", at) + 1
            parts.append(text[special.start() : end])
            at = end
        else:
            parts.append("'" if sign == "''" else f"{{#{plural}}}")
    return [*parts, text[at:]], len(text)


def _parse_argument(text: str, found: re.Match[str], plural: str) -> tuple[_Argument, int]:
    plural = plural if found["kind"] == "select" else found["name"]
    at = found.end()
    branches: dict[str, _Parts] = {}
    while key := BRANCH_KEY.match(text, at):
        branches[key["key"]], end = _parse(text, key.end(), plural)
        at = end + 1
    closing = re.compile(r"\s*+\}").match(text, at)
    if closing is None or "other" not in branches:
        raise ValueError("no valid argument")
    gap = found["gap"] if "\n" in found["gap"] else " "
    argument = _Argument(
        found["name"], found["kind"], found.group(), gap, closing.group(), branches
    )
    return argument, closing.end()


def _whole(parts: _Parts, chosen: dict[str, str], language: str) -> ALTERNATIVES:
    """Move the words around the first argument into its branches. `chosen` maps outer arguments to branches."""
    for i, part in enumerate(parts):
        if isinstance(part, str):
            continue
        before = parts[:i]
        after = parts[i + 1 :]
        branches = part.branches
        if part.name in chosen:
            key = chosen[part.name]
            same = branches.get(key, branches["other"])
            return _whole([*before, *same, *after], chosen, language)
        if part.kind != "select":
            branches = _in_language(part, language)
        return Choice(
            part,
            {
                key: _whole([*before, *branch, *after], {**chosen, part.name: key}, language)
                for key, branch in branches.items()
            },
        )
    return "".join(part for part in parts if isinstance(part, str))


def _in_language(argument: _Argument, language: str) -> dict[str, _Parts]:
    """The branches of a plural for the categories of a language."""
    branches = argument.branches
    exact = {key: branch for key, branch in branches.items() if key.startswith("=")}
    other = branches["other"]
    one = branches.get("one", other)
    is_singular, used = categories(language, ordinal=argument.kind == "selectordinal")
    if not (is_singular or intact(_shown(one), _shown(other), MESSAGE)):
        one = other  # "one" is also for 21, so its text can't be used
    return exact | {
        category: one if category == "one" else branches.get(category, other) for category in used
    }


def _shown(parts: Iterable[_Argument | str]) -> str:
    return "".join(part for part in parts if isinstance(part, str))


def _texts(node: ALTERNATIVES) -> Iterator[str]:
    if isinstance(node, str):
        yield node
        return
    for branch in node.branches.values():
        yield from _texts(branch)
