"""Finds the terms of a glossary in a text, and makes search constraints from the translations of the terms."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from transduce.config.schema import UNK
from transduce.decoding.capitals import case_folding
from transduce.decoding.types import Match, Term
from transduce.decoding.words import Kind, kind, words
from transduce.system.errors import UserError
from transduce.text.pairs import read_pairs
from transduce.text.plain import display_name
from transduce.tokens.normalization import composed
from transduce.tokens.spans import Span
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import SPACE, Vocabulary
from transduce.wings.terms.lemmas import Lemmas
from transduce.wings.terms.tbx import read_tbx

ASCII_BYTES = 0x80
OPENING = "\"'/¿¡»«"  # signs that a word may follow without a space, in addition to opening brackets and dashes
# First bytes, in UTF-8, of characters that are all written without spaces.
CHINESE = range(0xE4, 0xEA)


class WordBoundaries(NamedTuple):
    """For each target piece, the kind of its first character, and whether a word can follow without a space."""

    first: tuple[Kind, ...]
    # A word may follow without a space: after a bracket, a quotation mark, a hyphen.
    opens: tuple[bool, ...]


class Constraint(NamedTuple):
    """A text that must occur in a translation as one or more whole words."""

    text: str
    # Its ids after a space and, if they differ, its ids without a space.
    segmentations: tuple[tuple[int, ...], ...]
    first: Kind  # kind of the first character
    last: Kind  # kind of the last character


def read_glossary(file: str, languages: tuple[str, str]) -> list[Term]:
    """Read terms from TBX or a bilingual file; skips blank lines. Raises UserError if a term lacks its translation.

    `languages` are the languages of the translation; a termbase may have more languages, or another order.
    """
    is_tbx = file.lower().endswith(".tbx")
    terms = list(read_tbx(file, languages) if is_tbx else _bilingual(file, languages))
    if not terms:
        raise UserError(
            f"{display_name(file)} has no terms.",
            "Write one in each line of a .tsv file: source, TAB, translation.",
        )
    return terms


def _bilingual(file: str, languages: tuple[str, str]) -> Iterator[Term]:
    """The terms of a bilingual file."""
    for source, target, origin, *_ in read_pairs([file], languages):
        if bool(source.strip()) != bool(target.strip()):
            raise UserError(
                f"{origin.file}:{origin.line}: expected a source term and its translation."
            )
        if source.strip():
            yield Term(source, target)


class _Table:
    """The terms whose words are compared in one way, such as in lower case."""

    def __init__(self, fold: Callable[[str], str]) -> None:
        self._fold = fold
        self._targets: dict[tuple[str, ...], str] = {}
        self._lengths: dict[str, set[int]] = {}  # of the terms that begin with a word

    def add(self, units: tuple[str, ...], target: str) -> None:
        words = tuple(map(self._fold, units))
        self._targets[words] = target
        self._lengths.setdefault(words[0], set()).add(len(words))

    def matches(self, units: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
        """The places, lengths and targets of the terms in the words of a text."""
        words = tuple(map(self._fold, units)) if self._targets else ()
        for place, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                found = words[place : place + length]
                target = self._targets.get(found)
                if target and len(found) == length:
                    yield place, length, target


@lru_cache(maxsize=16)  # thousands of terms take a second
def open_glossary(terms: tuple[Term, ...], language: str, inflected: bool = False) -> "Glossary":
    """A glossary for sources in `language`, which also finds inflected sources if `inflected` is true."""
    return Glossary(terms, language, Lemmas(language) if inflected else None)


class Glossary:
    """Terms, indexed by their words; if two terms have the same source, the later term applies."""

    def __init__(
        self, terms: Sequence[Term], language: str = "", lemmas: Lemmas | None = None
    ) -> None:
        """`language` is the code of the sources. With `lemmas`, other forms of a term's words match, too.

        Raises UserError if a text of a term is blank or has a line break.
        """
        fold = case_folding(language)
        # Terms with capitals match only words with these capitals.
        exact = [_Table(str)]
        caseless = [_Table(fold)]
        if lemmas:
            exact.append(_Table(lemmas.with_capitals))
            caseless.append(_Table(lambda unit: fold(lemmas.with_capitals(unit))))
        # In the order of precedence.
        self._tables = [table for both in zip(exact, caseless, strict=True) for table in both]
        for number, term in enumerate(terms, 1):
            source, target = composed([text.strip() for text in term])
            if not _units(source) or not _units(target) or "\n" in source + target:
                raise UserError(
                    f"Term {number} of the glossary must have a source and a target of one line each."
                )
            units = _units(source)
            for table in exact if _has_capitals(units) else caseless:
                table.add(units, target)

    def matches(self, text: str) -> list[Match]:
        """The terms in a text, in the text's order; of overlapping terms, only the longest counts."""
        spans = spans_of(text)
        units = _units(text)
        found = [match for table in self._tables for match in table.matches(units)]
        by_place = dict[int, Match]()
        free = [True] * len(units)
        for place, length, target in sorted(found, key=lambda match: (-match[1], match[0])):
            if all(free[place : place + length]):
                by_place[place] = Match((spans[place][0], spans[place + length - 1][1]), target)
                free[place : place + length] = [False] * length
        return [by_place[place] for place in sorted(by_place)]


def contains(text: str, target: str) -> bool:
    """Whether a text contains a target as one or more whole words."""
    spans = spans_of(text)
    begins = {begin for begin, _ in spans}
    ends = {end for _, end in spans}
    return any(begin + len(target) in ends and text.startswith(target, begin) for begin in begins)


def _has_capitals(units: tuple[str, ...]) -> bool:
    return any(unit != unit.lower() for unit in units)


def spans_of(text: str) -> list[Span]:
    """The spans of the words and punctuation marks by which terms are found."""
    return words(text, range(len(text)), inside="")


def _units(text: str) -> tuple[str, ...]:
    return tuple(_plain(text[begin:end]) for begin, end in spans_of(text))


def _plain(unit: str) -> str:
    """A word without invisible characters, such as soft hyphens and marks of direction, and with composed accents."""
    if unit.isascii():
        return unit
    seen = "".join(
        each for each in unicodedata.normalize("NFC", unit) if unicodedata.category(each) != "Cf"
    )
    return (seen or unit).replace("’", "'")


def segment(tokenizer: Tokenizer, target: str) -> Constraint:
    """The constraint that requires a target; raises UserError if the model's vocabulary can't spell the target."""
    behind_space = tokenizer.encode_target([target])[0]
    behind_none = tokenizer.target.encode_behind(target)
    segmentations: tuple[tuple[int, ...], ...] = (tuple(behind_space), tuple(behind_none))
    if UNK in segmentations[0]:  # possible with an imported model
        raise UserError(
            f"The model's vocabulary can't spell the term {target}.",
            "Remove the term from the glossary.",
        )
    if segmentations[0] == segmentations[1]:
        segmentations = segmentations[:1]
    return Constraint(target, segmentations, kind(target[0]), kind(target[-1]))


@lru_cache(maxsize=2)  # small, because it keeps the vocabularies of dropped models in memory
def word_boundaries(vocabulary: Vocabulary) -> WordBoundaries:
    """The word boundaries of all pieces of a target vocabulary."""
    pieces = vocabulary.all_pieces()
    return WordBoundaries(*zip(*(_boundaries(piece) for piece in pieces), strict=True))


@cache
def _boundaries(piece: str) -> tuple[Kind, bool]:
    """The items of `first` and `opens` in `WordBoundaries` for one piece."""
    text = piece.replace(SPACE, " ")
    if piece.startswith("<0x") and piece.endswith(">") and len(piece) == len("<0x00>"):
        byte = int(piece[3:5], 16)
        if byte >= ASCII_BYTES:
            return "unspaced" if byte in CHINESE else "mark", False
        text = chr(byte)
    return kind(text[:1]), text[-1:] in OPENING or unicodedata.category(text[-1:]) in (
        "Ps",
        "Pi",
        "Pd",
    )
