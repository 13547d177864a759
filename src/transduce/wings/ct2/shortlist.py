"""Which pieces of the target go with a piece of the source, learnt from a corpus by counting (IBM model 1).

A search that chooses from these alone need not multiply with the whole vocabulary at every step.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.tokens.mixture import Mixture

READ, BLOCK = 2_000_000, 4_000  # pairs looked at, at most and together
ENOUGH = 200  # occurrences that a piece of the source is learnt from
LONGEST = 100  # tokens on either side: every one of a source meets every one of its target
MOST = 12_000_000  # such meetings, each some 50 bytes
ROUNDS = 4  # of expectation and maximisation
BEST, LEAST = 100, 0.0003  # pieces that go with a piece, at most, and the least probability of one
COMMON = 500  # the most frequent pieces, which go with everything
NOTHING = 0  # what words come from that have no source; pieces of the source are numbered from 1 here
Row = NDArray[Any]


class Shortlist(NamedTuple):
    """What a search may choose from: `common`, and what goes with the pieces of the source."""

    common: list[int]
    pieces: list[list[int]]  # by piece of the source


class _Cells(NamedTuple):
    """Every token of a source beside every one of its target (cells,)."""

    sources: Row
    targets: Row
    words: Row  # the same number for one token of a target


def learn(mixture: Mixture, source_size: int, *, joint: bool) -> Shortlist:
    """From as many pairs as the pieces need; joint: a piece of the source may go over as it is.

    Raises UserError if there are none.
    """
    pairs = list(_pairs(mixture, source_size))
    if not pairs:
        raise UserError(
            f"decode.shortlist takes pairs of at most {LONGEST} tokens a side, and there are none: leave it out."
        )
    cells = _beside(pairs)
    size = int(cells.targets.max()) + 1
    kinds, kind = np.unique(cells.sources.astype(np.int64) * size + cells.targets, return_inverse=True)
    source, target = np.divmod(kinds, size)
    probability = np.ones(len(kinds))  # of the target, given the source
    for _ in range(ROUNDS):
        shares = probability[kind]
        shares /= np.bincount(cells.words, shares)[cells.words]
        counts = np.bincount(kind, shares)
        probability = counts / np.bincount(source, counts)[source]
    found: list[list[int]] = [[] for _ in range(source_size + 1)]
    likely = np.flatnonzero(probability >= LEAST)
    for i in likely[np.argsort(-probability[likely], kind="stable")].tolist():
        if len(found[source[i]]) < BEST:
            found[source[i]].append(int(target[i]))
    frequent = np.argsort(-np.bincount(target, counts), kind="stable")[:COMMON].tolist()
    pieces = ({*row, piece} if joint else set(row) for piece, row in enumerate(found[NOTHING + 1 :]))
    return Shortlist(sorted({*frequent, *found[NOTHING]}), [sorted(each) for each in pieces])


def _pairs(mixture: Mixture, source_size: int) -> Iterator[tuple[Row, Row]]:
    """Those with a piece that has not been seen often enough, from blocks all over the corpus."""
    seen, met = np.zeros(source_size, np.int64), 0
    blocks = np.random.default_rng(1).permutation(-(-len(mixture) // BLOCK))[: READ // BLOCK]
    for start in (blocks * BLOCK).tolist():
        pairs = np.arange(start, min(start + BLOCK, len(mixture)))
        source_lengths, target_lengths = mixture.lengths(pairs)
        shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
        pairs = pairs[(shorter > 0) & (longer <= LONGEST)]
        rows = mixture.sources(pairs)
        taken = [i for i, row in enumerate(rows) if seen[row].min() < ENOUGH]
        for i, target in zip(taken, mixture.targets(pairs[taken]), strict=True):
            met += (len(rows[i]) + 1) * len(target)
            if met > MOST:
                return
            yield rows[i], target
        if taken:
            seen += np.bincount(np.concatenate([rows[i] for i in taken]), minlength=source_size)


def _beside(pairs: Sequence[tuple[Row, Row]]) -> _Cells:
    sources, targets, words, count = [], [], [], 0
    for source, target in pairs:
        sources.append(np.repeat(np.append(source.astype(np.int32) + 1, np.int32(NOTHING)), len(target)))
        targets.append(np.tile(target.astype(np.int32), len(source) + 1))
        words.append(np.tile(np.arange(count, count + len(target), dtype=np.int32), len(source) + 1))
        count += len(target)
    return _Cells(*map(np.concatenate, (sources, targets, words)))
