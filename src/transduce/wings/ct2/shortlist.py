"""Learns the likely target pieces of each source piece from a corpus, with IBM model 1.

A search that is limited to these target pieces computes fewer logits at each step.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from transduce.system.errors import UserError
from transduce.tokens.mixture import Mixture
from transduce.wings import ibm_model_1
from transduce.wings.ibm_model_1 import NULL_WORD, Row, meet

MAX_READ_PAIRS, READ_BLOCK_PAIRS = 2_000_000, 4_000  # pairs to read, in total and at a time
ENOUGH_OCCURRENCES = 200  # of a source piece, after which no more pairs are read for it
MAX_SIDE_TOKENS = 100  # pairs with a longer side are skipped: each source token meets each target token of its pair
MAX_MEETINGS = 12_000_000  # of a source token with a target token; a meeting takes about 50 bytes
ROUNDS = 4  # of expectation maximisation
MAX_CANDIDATES, MIN_PROBABILITY = 100, 0.0003  # of target pieces for each source piece
COMMON_PIECES = 500  # the most frequent target pieces, which are always allowed


class Shortlist(NamedTuple):
    """The target pieces that a search may use for every source (`common`) and for each source piece (`pieces`)."""

    common: list[int]
    pieces: list[list[int]]  # target pieces by source piece


def learn(mixture: Mixture, source_size: int, *, joint: bool) -> Shortlist:
    """Learn a shortlist that, if `joint`, allows each source piece itself; raises UserError without short pairs."""
    pairs = list(_pairs(mixture, source_size))
    if not pairs:
        raise UserError(
            f"decode.shortlist needs pairs with at most {MAX_SIDE_TOKENS} tokens per side, but the corpus has none. "
            "Leave this option unset."
        )
    source, target, probability, counts = ibm_model_1.learn(meet(pairs), ROUNDS)
    candidates: list[list[int]] = [[] for _ in range(source_size + 1)]
    likely = np.flatnonzero(probability >= MIN_PROBABILITY)
    for i in likely[np.argsort(-probability[likely], kind="stable")].tolist():
        if len(candidates[source[i]]) < MAX_CANDIDATES:
            candidates[source[i]].append(int(target[i]))
    frequent = np.argsort(-np.bincount(target, counts), kind="stable")[:COMMON_PIECES].tolist()
    pieces = ({*row, piece} if joint else set(row) for piece, row in enumerate(candidates[NULL_WORD + 1 :]))
    return Shortlist(sorted({*frequent, *candidates[NULL_WORD]}), [sorted(each) for each in pieces])


def _pairs(mixture: Mixture, source_size: int) -> Iterator[tuple[Row, Row]]:
    """Yield pairs with a source piece that has occurred fewer than ENOUGH_OCCURRENCES times so far."""
    seen, meetings = np.zeros(source_size, np.int64), 0
    blocks = np.random.default_rng(1).permutation(-(-len(mixture) // READ_BLOCK_PAIRS))[
        : MAX_READ_PAIRS // READ_BLOCK_PAIRS
    ]
    for start in (blocks * READ_BLOCK_PAIRS).tolist():
        pairs = np.arange(start, min(start + READ_BLOCK_PAIRS, len(mixture)))
        source_lengths, target_lengths = mixture.lengths(pairs)
        shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
        pairs = pairs[(shorter > 0) & (longer <= MAX_SIDE_TOKENS)]
        rows = mixture.sources(pairs)
        taken = [i for i, row in enumerate(rows) if seen[row].min() < ENOUGH_OCCURRENCES]
        for i, target in zip(taken, mixture.targets(pairs[taken]), strict=True):
            meetings += (len(rows[i]) + 1) * len(target)
            if meetings > MAX_MEETINGS:
                return
            yield rows[i], target
        if taken:
            seen += np.bincount(np.concatenate([rows[i] for i in taken]), minlength=source_size)
