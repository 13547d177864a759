"""Finds translations that repeat themselves although their sources do not, or that repeat their sources."""

from collections.abc import Hashable, Sequence
from itertools import groupby, pairwise
from string import punctuation
from typing import NamedTuple

from transduce.decoding.types import Hypothesis

MIN_TIMES = 3  # a stretch of tokens that occurs this often in a row is a loop
LONG_PERIOD = 4  # a stretch longer than this is a loop if it occurs twice
# Maximum ratio in tokens of a repetition to the repetition in the source that explains it.
MAX_LENGTH_RATIO = 4
# Minimum ratio of the two stretches' lengths: a sentence that occurs three times doesn't explain "so so so".
MIN_PERIOD_RATIO = 0.5
# Minimum letters in words without a capital, since names and numbers need no translation.
MIN_COPIED_LETTERS = 8
# The second search forbids repeated n-grams of the first size, the third search those of the second size.
RETRY_NGRAMS = (
    3,
    2,
)


class Repetition(NamedTuple):
    """The longest part of a sequence in which the same stretch occurs several times in a row."""

    times: int  # 1: no repetition
    period: int  # tokens in the stretch
    length: int  # tokens in all


def repetition(tokens: Sequence[Hashable]) -> Repetition:
    """Find the longest repetition in a sequence. A single token that occurs twice in a row does not count."""
    bigrams = list(pairwise(tokens))
    longest = Repetition(1, 0, 0)
    if len(set(bigrams)) == len(bigrams):  # usual; a loop would have a bigram twice
        return longest
    for period in range(1, len(tokens) // 2 + 1):
        equal = (one == other for one, other in zip(tokens, tokens[period:], strict=False))
        run = max((sum(group) for same, group in groupby(equal) if same), default=0)
        if run >= period and run + period > longest.length:
            longest = Repetition(run // period + 1, period, run + period)
            # Without this, 40,000 equal tokens would take half a minute.
            if longest.length == len(tokens):
                break
    return longest


def is_loop(source: Sequence[Hashable], target: Sequence[Hashable]) -> bool:
    """Whether the target repeats a stretch of tokens and no repetition in the source explains it."""
    found = repetition(target)
    if found.times < (2 if found.period >= LONG_PERIOD else MIN_TIMES):
        return False
    reason = repetition(source)
    is_longer = found.times > reason.times + 1 or found.length > MAX_LENGTH_RATIO * reason.length
    return is_longer or found.period < MIN_PERIOD_RATIO * reason.period


def find_loops(
    sources: Sequence[Sequence[int]], n_best_lists: Sequence[Sequence[Hypothesis]]
) -> list[int]:
    """The indices of the sentences that have a loop as their best translation."""
    return [
        i for i, best in enumerate(n_best_lists) if best and is_loop(sources[i], best[0].tokens)
    ]


def is_copy(source: str, target: str) -> bool:
    """Whether the target has the same words as the source, and some of them need a translation."""
    words, others = (
        [word.strip(punctuation) for word in text.split()] for text in (source, target)
    )
    # Addresses don't count.
    lower = (word for word in words if not (word[:1].isupper() or set(word) & set(punctuation)))
    return words == others and sum(map(str.isalpha, "".join(lower))) >= MIN_COPIED_LETTERS
