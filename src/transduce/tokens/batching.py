"""Divides sentences into batches by their lengths.

Sentences of similar length share a batch (section 5.1 of the paper). Lengths don't include EOS. A cell is one position
in a padded batch. Each side of a batch of n sentences has n * (longest + 1) cells, since EOS follows each sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]
Sized = tuple[int, list[int]]  # a sentence and its cells on both sides

LOOKAHEAD = 16  # sentences that may wait for a row with more room


def micro_batches(
    source_lengths: ArrayLike,
    target_lengths: ArrayLike,
    *,
    budget: int,
    seed: int,
    epoch: int,
    block: int = 0,
) -> list[Indices]:
    """Return batches of sentence indices, with at most `budget` cells on each side of a batch.

    `seed`, `epoch` and `block` seed the random order. Raises ValueError if a sentence needs more than `budget` cells.
    """
    source = _cells(source_lengths)
    target = _cells(target_lengths)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} source lengths and {len(target)} target lengths")
    longest = max(source.max(initial=0), target.max(initial=0))
    if longest > budget:
        raise ValueError(
            f"a sentence of {longest} tokens (with EOS) does not fit a budget of {budget} tokens"
        )
    random = np.random.default_rng((seed, epoch, block))
    order = random.permutation(len(source))
    order = order[_by_length(source[order], target[order], random)]
    batches = _cut(order, np.maximum(source, target)[order], budget)
    return [batches[i] for i in random.permutation(len(batches))]


def packed_batches(
    source_lengths: ArrayLike,
    target_lengths: ArrayLike,
    *,
    budget: int,
    width: int,
    seed: int,
    epoch: int,
    block: int = 0,
) -> list[Indices]:
    """Return batches of sentence indices for up to `budget` tokens on each side, in rows of `width` tokens.

    Sentences are in the order of their rows: one that does not fit into a row begins the next. Otherwise the order is
    random, by `seed`, `epoch` and `block`. Raises ValueError if a sentence needs more than `width` cells.
    """
    lengths = np.stack([_cells(source_lengths), _cells(target_lengths)], axis=1)
    if (longest := lengths.max(initial=0)) > width:
        raise ValueError(f"a sentence of {longest} tokens (with EOS) does not fit a row of {width}")
    order = np.random.default_rng((seed, epoch, block)).permutation(len(lengths))
    coming = iter(zip(order.tolist(), lengths[order].tolist(), strict=True))
    rows = list[list[int]]()
    row, waiting = _row([], coming, width)
    while row:
        rows.append(row)
        row, waiting = _row(waiting, coming, width)
    size = budget // width
    return [
        np.array([i for row in rows[start : start + size] for i in row])
        for start in range(0, len(rows), size)
    ]


def _row(
    waiting: Sequence[Sized], coming: Iterator[Sized], width: int
) -> tuple[list[int], list[Sized]]:
    """Fill a row, first with sentences that did not fit into the last one; returns it, and those that don't fit now."""
    row = list[int]()
    later = list[Sized]()
    free = [width, width]
    for sentence, (source, target) in chain(waiting, coming):
        if source <= free[0] and target <= free[1]:
            row.append(sentence)
            free = [free[0] - source, free[1] - target]
        else:
            later.append((sentence, [source, target]))
            if len(later) == LOOKAHEAD:
                break
    return row, later


def padding_share(batches: Iterable[tuple[ArrayLike, ArrayLike]], packed: int = 0) -> float:
    """The fraction of all cells that are padding. Each batch is a tuple (source lengths, target lengths).

    Each side of a packed batch has `packed` cells; 0: the batches are padded.
    """
    cells = tokens = 0
    for lengths in batches:
        source, target = map(_cells, lengths)
        cells += 2 * packed or len(source) * int(source.max() + target.max())
        tokens += int(source.sum() + target.sum())
    return 1 - tokens / cells if cells else 0.0


def _cells(lengths: ArrayLike) -> Indices:
    return np.asarray(lengths, dtype=np.int64) + 1


def _by_length(source: Indices, target: Indices, random: "np.random.Generator") -> Indices:
    """Indices that sort pairs by the greater of their two lengths, then by source length minus target length.

    The second key ascends where the first key is even and descends where it is odd, or the reverse, at random.
    """
    longer = np.maximum(source, target)
    difference = source - target
    # A large batch holds all sentences of some lengths; changing the order of the lengths moves its boundaries.
    falling = random.integers(2)
    direction = random.choice((-1, 1))
    return np.lexsort(
        (np.where(longer % 2 == falling, -difference, difference), direction * longer)
    )


def _cut(order: Indices, longer: Indices, budget: int) -> list[Indices]:
    """Cut `order` into batches as large as the budget allows. `longer` is each pair's greater length, with EOS."""
    batches = []
    start = 0
    while start < len(order):
        # Number of sentences that fit if none is longer than the first.
        most = budget // longer[start]
        longest = np.maximum.accumulate(longer[start : start + most])
        size = int(np.count_nonzero(longest * np.arange(1, len(longest) + 1) <= budget))
        batches.append(order[start : start + size])
        start += size
    return batches


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group indices of `lengths` into padded batches of up to `budget` tokens. A longer text is a batch alone."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
