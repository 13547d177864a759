"""Finds the tokens with which CTranslate2 begins translations that have a given prefix.

CTranslate2 continues tokens, but a prefix of characters may end inside a piece. One forced pass along the usual
segmentation of the prefix returns the probabilities of all tokens at each of its places. Complete words keep their
usual segmentation. Other segmentations of the last word are followed while they are more likely than the best that
reaches the end of the prefix.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.wings.completion.prefixes import Prefix

MAX_PASSES = 2  # each takes as long as a greedy search for the prefix
Logits = NDArray[np.float32]  # (tokens, v)


class Beginning(NamedTuple):
    """The first tokens of a translation."""

    log_prob: float
    tokens: tuple[int, ...] = ()


# For rows of tokens and the indices of their sentences: the logits of each token.
Forced = Callable[[Sequence[int], Sequence[Sequence[int]]], list[Logits]]


def beginnings(
    prefixes: Sequence[Prefix | None], limits: Sequence[int], count: int, forced: Forced
) -> list[list[Beginning]]:
    """For each sentence with a prefix, at most `count` token sequences that reach the prefix's end, best first."""
    found: list[list[Beginning]] = [[] for _ in prefixes]
    unfinished = [(i, Beginning(0.0)) for i, prefix in enumerate(prefixes) if prefix]
    for _ in range(MAX_PASSES):
        if not unfinished:
            break
        rows = [
            (i, begun, _continued(prefix, begun, limits[i]))
            for i, begun in unfinished
            if (prefix := prefixes[i])
        ]
        logits = forced([i for i, _, _ in rows], [row for _, _, row in rows])
        partial: list[list[Beginning]] = [[] for _ in prefixes]
        for (i, begun, row), its in zip(rows, logits, strict=True):
            if prefix := prefixes[i]:
                for is_whole, each in _extended(prefix, begun, row, its, limits[i], count):
                    (found if is_whole else partial)[i].append(each)
        unfinished = []
        for i, others in enumerate(partial):
            found[i] = heapq.nlargest(count, found[i])
            best = heapq.nlargest(count, others)
            unfinished += [(i, each) for each in best if each > found[i][0]]
    return found


def _continued(prefix: Prefix, begun: Beginning, limit: int) -> list[int]:
    """A segmentation of the prefix that begins with given tokens."""
    usual = prefix.segmentation()
    if not begun.tokens and len(usual) <= limit:
        return usual
    return [*begun.tokens, *prefix.shortest(prefix.place(begun.tokens))]


def _extended(
    prefix: Prefix, begun: Beginning, row: list[int], logits: Logits, limit: int, count: int
) -> Iterator[tuple[bool, Beginning]]:
    """Yield the beginnings that leave the tokens of `row` behind `begun`, and whether they reach the prefix's end."""
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    total = begun.log_prob
    place = prefix.place(begun.tokens)
    for i in range(len(begun.tokens), len(row)):
        inside, beyond = prefix.steps(place)
        before = tuple(row[:i])
        best = beyond[np.argsort(-log_probs[i, beyond])[:count]]
        for token in best.tolist():
            yield True, Beginning(total + float(log_probs[i, token]), (*before, token))
        for token, then in inside.items():
            is_short = i + 1 + prefix.fewest[then] <= limit
            if place >= prefix.last_word and token != row[i] and is_short:
                yield False, Beginning(total + float(log_probs[i, token]), (*before, token))
        total += float(log_probs[i, row[i]])
        place = inside.get(row[i], prefix.end)
