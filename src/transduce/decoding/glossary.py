"""A glossary: words of a source text, and what must stand in its translation where they occur."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from transduce.config.schema import UNK
from transduce.decoding.engines.engine import Edges, Wanted
from transduce.decoding.words import Kind, kind, words
from transduce.system.errors import UserError
from transduce.text.pairs import read_pairs
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import SPACE

ASCII = 0x80
OPENING = "\"'/¿¡»«"  # signs that a word may follow without a space, beside brackets, dashes and quotation marks
CHINESE = range(0xE4, 0xEA)  # first bytes of characters that are all written without spaces


class Term(NamedTuple):
    """One entry."""

    source: str  # one or more words; matches any case unless it has capitals
    target: str  # stands in the translation as it is written here


def read_glossary(file: str) -> list[Term]:
    """The entries of a bilingual file, such as a TSV; blank lines are left out.

    Raises UserError for an entry without one side, by its line.
    """
    terms = []
    for source, target, origin in read_pairs([file]):
        if bool(source.strip()) != bool(target.strip()):
            raise UserError(
                f"{origin.file}, line {origin.line} has no {'source' if target.strip() else 'translation'}."
            )
        if source.strip():
            terms.append(Term(source, target))
    return terms


class Glossary:
    """Entries that are found fast; of two with the same source the later counts."""

    def __init__(self, terms: Sequence[Term]) -> None:
        """Raises UserError for an entry with an empty side or a line break, by its number, from 1."""
        entries: dict[tuple[str, ...], str] = {}
        for number, (source, target) in enumerate(terms, 1):
            if not _units(source) or not _units(target) or "\n" in source.strip() or "\n" in target.strip():
                raise UserError(f"Term {number} of the glossary must have one line of text on both sides.")
            entries[_units(source)] = target.strip()
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for units in sorted(entries, key=_has_capitals, reverse=True):  # which count before others that match, too
            self._by_first.setdefault(units[0].casefold(), []).append((units, entries[units]))

    def targets(self, text: str) -> list[str]:
        """What the translation of a text must hold, in the order of the text; of overlapping entries the longest."""
        if not self._by_first:
            return []
        units = _units(text)
        matches = [
            (place, len(wanted), target)
            for place, unit in enumerate(units)
            for wanted, target in self._by_first.get(unit.casefold(), ())
            if _matches(wanted, units[place : place + len(wanted)])
        ]
        found, free = dict[int, str](), [True] * len(units)
        for place, length, target in sorted(matches, key=lambda match: -match[1]):
            if all(free[place : place + length]):
                found[place], free[place : place + length] = target, [False] * length
        return list(dict.fromkeys(found[place] for place in sorted(found)))


def holds(text: str, target: str) -> bool:
    """Whether a target stands in a text, in whole words."""
    spans = _spans(text)
    begins, ends = {begin for begin, _ in spans}, {end for _, end in spans}
    return any(begin + len(target) in ends and text.startswith(target, begin) for begin in begins)


def _matches(wanted: tuple[str, ...], units: tuple[str, ...]) -> bool:
    if _has_capitals(wanted):
        return units == wanted
    return len(units) == len(wanted) and all(a.casefold() == b.casefold() for a, b in zip(units, wanted, strict=True))


def _has_capitals(units: tuple[str, ...]) -> bool:
    return any(unit != unit.lower() for unit in units)


def _spans(text: str) -> list[tuple[int, int]]:
    return words(text, range(len(text)), inside="")


def _units(text: str) -> tuple[str, ...]:
    return tuple(text[begin:end] for begin, end in _spans(text))


# -- in pieces --------------------------------------------------------------------------------------------


def in_pieces(tokenizer: Tokenizer, target: str) -> Wanted:
    """The ways in which a target may be written; raises UserError if the vocabulary has no piece for some of it."""
    behind_space, behind_none = tokenizer.encode_target([target])[0], tokenizer.encode_target_behind(target)
    ways = (tuple(behind_space), tuple(behind_none))
    if UNK in ways[0]:  # of a model from elsewhere
        raise UserError(f"The model's vocabulary can't spell the glossary's {target}; leave this term out.")
    return Wanted(target, ways if ways[0] != ways[1] else ways[:1], kind(target[0]), kind(target[-1]))


def edges(tokenizer: Tokenizer) -> Edges:
    """The kinds of the characters at which the pieces of a vocabulary begin and end."""
    pieces = tokenizer.target_pieces(range(tokenizer.target_size))
    return Edges(*zip(*(_edges(piece) for piece in pieces), strict=True))


@cache
def _edges(piece: str) -> tuple[Kind, Kind, bool]:
    """Of a byte that is part of a character nothing is known: it is taken for what would join."""
    if piece.startswith("<0x") and piece.endswith(">") and len(piece) == len("<0x00>"):
        byte = int(piece[3:5], 16)
        if byte < ASCII:
            return kind(chr(byte)), kind(chr(byte)), _opens(chr(byte))
        return "unspaced" if byte in CHINESE else "mark", "letter", False
    text = piece.replace(SPACE, " ")
    return kind(text[:1]), kind(text[-1:]), _opens(text[-1:])


def _opens(character: str) -> bool:
    return character in OPENING or unicodedata.category(character) in ("Ps", "Pi", "Pd")
