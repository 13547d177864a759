"""The plan of batches: a pure function of lengths, budget, seed, epoch and block.

Sentences of similar length share a batch (section 5.1 of the paper). Lengths count tokens without EOS;
cells count EOS, so that a batch of n sentences has n * (longest + 1) cells on each side.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]


def micro_batches(
    source_lengths: ArrayLike, target_lengths: ArrayLike, *, budget: int, seed: int, epoch: int, block: int = 0
) -> list[Indices]:
    """Every sentence in exactly one batch, with at most `budget` cells on the source and on the target side.

    Batches come in random order and are redrawn every epoch. At most one batch is a remainder.
    block: the number of this part of the epoch, if the epoch has several.
    Raises ValueError if a sentence alone exceeds the budget.
    """
    source, target = _cells(source_lengths), _cells(target_lengths)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} source lengths and {len(target)} target lengths")
    longest = max(source.max(initial=0), target.max(initial=0))
    if longest > budget:
        raise ValueError(f"a sentence of {longest} tokens, EOS counted, does not fit a budget of {budget}")
    random = np.random.default_rng((seed, epoch, block))
    order = random.permutation(len(source))
    order = order[_by_length(source[order], target[order], random)]
    batches = _cut(order, np.maximum(source, target)[order], budget)
    return [batches[i] for i in random.permutation(len(batches))]


def padding_share(batches: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """The share of all cells, both sides together, that hold padding; 0 if there are none.

    batches: the lengths of the sources and of the targets of each.
    """
    cells = tokens = 0
    for lengths in batches:
        source, target = map(_cells, lengths)
        cells += len(source) * int(source.max() + target.max())
        tokens += int(source.sum() + target.sum())
    return 1 - tokens / cells if cells else 0.0


def _cells(lengths: ArrayLike) -> Indices:
    return np.asarray(lengths, dtype=np.int64) + 1


def _by_length(source: Indices, target: Indices, random: np.random.Generator) -> Indices:
    """An order in which neighbours have similar lengths on both sides; ties stay in the order given.

    The longer side decides how many sentences fill a batch, so it comes first. Among sentences whose longer side is
    equal, the difference of the sides rises and falls by turns, so that it doesn't jump from one length to the next.
    """
    longer, difference = np.maximum(source, target), source - target
    # Large batches hold all sentences of some lengths; starting elsewhere moves the places where they are cut.
    falling, direction = random.integers(2), random.choice((-1, 1))
    return np.lexsort((np.where(longer % 2 == falling, -difference, difference), direction * longer))


def _cut(order: Indices, longer: Indices, budget: int) -> list[Indices]:
    """`order` in pieces as long as the budget allows; `longer` is the cells of each sentence's longer side."""
    batches, start = [], 0
    while start < len(order):
        most = budget // longer[start]  # sentences, if no longer one follows
        longest = np.maximum.accumulate(longer[start : start + most])
        size = int(np.count_nonzero(longest * np.arange(1, len(longest) + 1) <= budget))
        batches.append(order[start : start + size])
        start += size
    return batches
