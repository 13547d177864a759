"""Stand-ins: one character instead of each placeholder, for models that learn to copy such characters.

A model that sees `{0}` or `` :func:`open` `` as letters copies it badly, and makes up others. One that was trained on
stand-ins sees the same few pieces again and again, which say nothing but "this comes here, too".
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from transduce.config.schema import STAND_INS
from transduce.text.clean import Cleaning
from transduce.text.pairs import Pair
from transduce.text.placeholders import Mark, Masked, Patch, mask, weave
from transduce.text.rules import PLACEHOLDERS_DIFFER

ANY = re.compile(f"[{STAND_INS}]")
KIND = re.compile(r"https?|[^\w`]*(?:[A-Za-z][\w:.+-]*:(?=`))?`*")  # how a placeholder begins, which tells its kind


def stand_in(masked: Masked) -> Masked:
    """The text with a stand-in for each word that has a mark, equal ones for equal words.

    A text that holds such a character itself stays as it is.
    """
    words = _words(masked)
    return _renamed(masked, _names(words)) if words and not _is_taken(masked) else masked


def stand_in_pairs(pairs: Iterable[Pair], report: Cleaning) -> Iterator[Pair]:
    """The pairs without tags and with stand-ins for their placeholders; those that differ in them are left out."""
    for pair in pairs:
        texts = both(pair.source, pair.target)
        if texts is None:
            report.count(PLACEHOLDERS_DIFFER, pair.origin)
        else:
            yield Pair(*texts, pair.origin)


def both(source: str, target: str) -> tuple[str, str] | None:
    """A text and its translation with the same stand-ins; None if not all placeholders of either are in the other.

    What only one side has may be another name of the same thing, as in `:term:`bit`` and `:term:`octet <bit>``: the
    first of a kind is taken for the first of its kind.
    """
    read, written = mask(source), mask(target)
    if _is_taken(read) or _is_taken(written):
        return None
    here, there = _words(read), _words(written)
    names, written_as = _names(here), _names(there)
    free: dict[str, list[str]] = {}  # by kind, the first last
    for raw in reversed([raw for raw in names if raw not in written_as]):
        free.setdefault(_kind(raw), []).append(raw)
    for raw in written_as:
        if raw not in names and (same := free.get(_kind(raw))):
            names[raw] = names[same.pop()]
    if Counter(names[mark.opening] for mark in here) != Counter(names.get(mark.opening) for mark in there):
        return None
    return _renamed(read, names).text, _renamed(written, names).text


def same_stand_ins(source: str, target: str) -> bool:
    """Whether both hold the same stand-ins, as often."""
    return sorted(ANY.findall(source)) == sorted(ANY.findall(target))


def strays(text: str, translation: str) -> list[Patch]:
    """What takes the stand-ins out of a translation that are not in the text, each with the blank before it."""
    made_up = [found for found in ANY.finditer(translation) if found.group() not in text]
    return [Patch(at - translation[:at].endswith(" "), at + 1, "") for at in (found.start() for found in made_up)]


def _words(masked: Masked) -> list[Mark]:
    return [mark for mark in masked.marks if mark.kind == "word"]


def _kind(raw: str) -> str:
    found = KIND.match(raw)
    return found.group() if found else ""


def _names(words: list[Mark]) -> dict[str, str]:
    """Placeholders with their stand-ins, in the order in which they first stand in the text."""
    distinct = dict.fromkeys(mark.opening for mark in words)
    return {raw: STAND_INS[number % len(STAND_INS)] for number, raw in enumerate(distinct)}


def _is_taken(masked: Masked) -> bool:
    """Whether there are such characters in the text by themselves."""
    return bool(ANY.search(weave(masked.text, [Patch(mark.begin, mark.end, "") for mark in _words(masked)])))


def _renamed(masked: Masked, names: dict[str, str]) -> Masked:
    """The text with these names of its words; no other mark begins or ends within a word."""
    words = _words(masked)
    ends = [mark.end for mark in words]
    shorter = [0, *accumulate(mark.end - mark.begin - len(names[mark.opening]) for mark in words)]

    def moved(at: int) -> int:
        return at - shorter[bisect_right(ends, at)]

    text = weave(masked.text, [Patch(mark.begin, mark.end, names[mark.opening]) for mark in words])
    return Masked(text, tuple(mark._replace(begin=moved(mark.begin), end=moved(mark.end)) for mark in masked.marks))
