"""Word translation probabilities by IBM model 1 (Brown et al., 1993)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Stands for the missing source of some target words; source words are numbered from 1.
NULL_WORD = 0
Row = NDArray[Any]


class Table(NamedTuple):
    """Word pairs that occur together, in the order of source * num_targets + target."""

    source: Row
    target: Row
    occurrences: Row  # expected occurrences of the target word as a translation of the source word


def learn(meetings: Sequence[Row], rounds: int) -> Table:
    """Learn from the result of `meet`, with `rounds` iterations of expectation maximisation."""
    sources, targets, words = meetings
    size = int(targets.max()) + 1
    kinds, kind = np.unique(sources.astype(np.int64) * size + targets, return_inverse=True)
    source, target = np.divmod(kinds, size)
    probability = np.ones(len(kinds))
    for _ in range(rounds):
        shares = probability[kind]
        shares /= np.bincount(words, shares)[words]
        count = np.bincount(kind, shares)
        probability = count / np.bincount(source, count)[source]
    return Table(source, target, count)


def meet(pairs: Sequence[tuple[Row, Row]]) -> list[Row]:
    """Three arrays with the source word, target word and target word's position for each meeting of two words.

    Each source meets each target word of its pair, and so does NULL_WORD. Positions are counted through all pairs.
    """
    lengths = [np.array([len(pair[side]) for pair in pairs], dtype=np.int32) for side in (0, 1)]
    # NULL_WORD is added after each source.
    sources = np.full(int(lengths[0].sum()) + len(pairs), NULL_WORD, dtype=np.int32)
    is_word = np.ones(len(sources), dtype=bool)
    is_word[np.cumsum(lengths[0] + 1) - 1] = False
    sources[is_word] = np.concatenate([source for source, _ in pairs]) + 1
    targets = np.concatenate([target for _, target in pairs]).astype(np.int32)
    # For each source word, the number of target words that it meets.
    words = np.repeat(lengths[1], lengths[0] + 1)
    source = np.repeat(np.arange(len(sources), dtype=np.int32), words)
    # The first target word of the pair.
    first = np.repeat(np.cumsum(lengths[1], dtype=np.int32) - lengths[1], lengths[0] + 1)
    target = np.arange(len(source), dtype=np.int32) - np.repeat(
        np.cumsum(words, dtype=np.int32) - words - first, words
    )
    return [sources[source], targets[target], target]
