"""Divides a test set into slices, such as the sentences with numbers, and compares two translations on each slice."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from transduce.decoding.words import words as spans_of_words
from transduce.evaluation.scores import AUTO, Comparison, compare
from transduce_lab.comparing.statistics import holm

LENGTH_LIMITS = (5, 10, 20, 40)  # words of a reference
LENGTH_BINS = (
    "up to 5 words",
    "6 to 10 words",
    "11 to 20 words",
    "21 to 40 words",
    "over 40 words",
)
MAX_RARE = 5  # a word with more occurrences in the training text is not rare
NUMBER_PATTERN = re.compile(r"\d+(?:[.,:]\d+)*")


class Kind(NamedTuple):
    """A way to divide a test set by its references, and the words of the references that translations should have."""

    bins: tuple[str, ...]
    choose: Callable[[str], int]  # reference -> index of its bin
    wanted: Callable[[str], Sequence[str]] = lambda _: ()  # reference -> words
    found: Callable[[str], Sequence[str]] = lambda _: ()  # translation -> words


class Slice(NamedTuple):
    """The comparison of two translations on the sentences of a slice."""

    kind: str  # length, rare words, numbers or casing
    name: str
    sentences: int
    scores: list[Comparison]  # BLEU and chrF2, with p-values that are not corrected
    num_words: int  # rare words, numbers or words in capitals in the references
    found: tuple[int, ...]  # number of these words in the first and in the second translation
    p_value: float  # p-value of chrF2, corrected by Holm's method for all tested slices; nan below MIN_TESTED_SENTENCES
    error: float  # standard error of this p-value


def compare_slices(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    rare: Collection[str],
    *,
    tokenize: str = AUTO,
    language: str = "",
) -> list[Slice]:
    """Compare two translations on the slices of a test set by length, rare words, numbers and casing.

    The slices of one kind together hold every sentence once; empty slices are left out. `rare` is from `rare_words`.
    The order of the sentences does not matter. Raises UserError as `compare` does, and ValueError if the numbers of
    lines differ.
    """
    lines = sorted(zip(references, first, second, strict=True))
    slices = list[Slice]()
    for name, kind in _kinds(rare).items():
        chosen = defaultdict[int, list[tuple[str, str, str]]](list)
        for line in lines:
            chosen[kind.choose(line[0])].append(line)
        for place, its in sorted(chosen.items()):
            texts, one, two = (list(column) for column in zip(*its, strict=True))
            scores = compare(one, two, texts, tokenize=tokenize, language=language, ter=False)
            wanted = list(map(Counter, map(kind.wanted, texts)))
            found = tuple(
                sum(
                    (those & Counter(kind.found(text))).total()
                    for those, text in zip(wanted, output, strict=True)
                )
                for output in (one, two)
            )
            total = sum(those.total() for those in wanted)
            chrf = scores[1]
            slices.append(
                Slice(
                    name,
                    kind.bins[place],
                    len(its),
                    scores,
                    total,
                    found,
                    chrf.p_value,
                    chrf.error,
                )
            )
    corrected = holm([each.p_value for each in slices])
    return [
        each._replace(p_value=p, error=each.error * p / each.p_value)
        for each, p in zip(slices, corrected, strict=True)
    ]


def rare_words(references: Iterable[str], training: Iterable[str] | None = None) -> set[str]:
    """The words of the references, in lower case, that occur at most MAX_RARE times in the training text.

    Without a training text, these are the words that occur once in the references.
    """
    counts = Counter(word for text in references for word in _folded(text))
    if training is None:
        return {word for word, number in counts.items() if number == 1}
    seen = Counter(word for text in training for word in _folded(text) if word in counts)
    return {word for word in counts if seen[word] <= MAX_RARE}


def words(text: str) -> list[str]:
    """The words of a text, without punctuation.

    In scripts without spaces, such as Chinese, each character is a word.
    """
    return [word for chunk in text.split() for word in _words(chunk)]


@lru_cache(100_000)
def _words(chunk: str) -> tuple[str, ...]:
    pieces = (chunk[begin:end] for begin, end in spans_of_words(chunk, range(len(chunk))))
    return tuple(piece for piece in pieces if any(map(str.isalnum, piece)))


def _folded(text: str) -> list[str]:
    return [word.casefold() for word in words(text)]


def _in_capitals(text: str) -> list[str]:
    """The words with two or more capital letters and no small letters."""
    return [word for word in words(text) if word.isupper() and sum(map(str.isupper, word)) > 1]


def _casing(text: str) -> int:
    if not any(map(str.isupper, text)):
        return 0
    if not any(map(str.islower, text)):
        return 3
    return 2 if _in_capitals(text) else 1


def _kinds(rare: Collection[str]) -> dict[str, Kind]:
    def rare_in(text: str) -> list[str]:
        return [word for word in _folded(text) if word in rare]

    def length(text: str) -> int:
        return sum(len(words(text)) > limit for limit in LENGTH_LIMITS)

    numbers = NUMBER_PATTERN.findall
    casing = (
        "no capital letters",
        "ordinary capital letters",
        "some words in capitals",
        "only capital letters",
    )
    return {
        "length": Kind(LENGTH_BINS, length),
        "rare words": Kind(
            ("without rare words", "with rare words"),
            lambda text: bool(rare_in(text)),
            rare_in,
            _folded,
        ),
        "numbers": Kind(
            ("without numbers", "with numbers"), lambda text: bool(numbers(text)), numbers, numbers
        ),
        "casing": Kind(casing, _casing, _in_capitals, _in_capitals),
    }
