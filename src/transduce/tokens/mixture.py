"""Joins several weighted token stores into one corpus, and plans its batches.

An epoch is divided into blocks. A block is divided into batches only when training reaches it. This limits memory use
and the time before the first update. An epoch of up to BLOCK_PAIRS pairs is one block. A larger epoch has several
blocks of equal size. Each of these blocks consists of randomly drawn runs of neighbouring pairs.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from transduce.tokens.batching import Indices, micro_batches, packed_batches
from transduce.tokens.store import STRIDE, Column, StoreView, TokenStore
from transduce.tokens.vocabulary import Rows

BLOCK_PAIRS = 1 << 21  # pairs in the largest block; planning it takes about 250 MB and a second
RUN_PAIRS = 256  # neighbouring pairs that belong to the same block
SLICE_PAIRS = 1 << 20  # pairs per array operation, to limit its memory
SAMPLED_PAIRS = 1 << 18  # pairs whose subwords are drawn together

# Draws changed sources and targets of several pairs from their sources and targets.
Change = Callable[[Sequence[Rows], np.random.Generator], list[Rows]]


class Mixture:
    """The pairs of several token stores, numbered consecutively from 0.

    A store may occur twice, once in each direction.
    """

    def __init__(
        self,
        stores: Sequence[TokenStore | StoreView],
        weights: Sequence[float],
        values_per_position: int = 1,
    ) -> None:
        """`values_per_position`: the number of source tokens that the model reads as one vector."""
        self.values_per_position = values_per_position
        self.stores = [
            store if isinstance(store, StoreView) else StoreView(store) for store in stores
        ]
        self.weights = list(weights)
        self.starts = np.cumsum([0, *(store.pairs for store in self.stores)])
        # All stores have equally many tags.
        self._tags = np.array([view.tags for view in self.stores], dtype=np.int64)
        self._num_tags = self._tags.shape[-1]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def pairs_per_epoch(self) -> int:
        """The number of pairs in an epoch, including repetitions."""
        shares = [divmod(weight, 1) for weight in self.weights]
        return sum(
            int(copies) * store.pairs + round(part * store.pairs)
            for store, (copies, part) in zip(self.stores, shares, strict=True)
        )

    @property
    def blocks(self) -> int:
        """The number of blocks in an epoch."""
        return max(1, -(-self.pairs_per_epoch // BLOCK_PAIRS))

    def sources(self, pairs: Indices) -> list[np.ndarray]:
        """The source sentences of `pairs`, as token ids, with their tags."""
        rows = self._sources(pairs)
        if not self._num_tags:
            return rows
        return [
            np.concatenate((tags, row))
            for row, tags in zip(rows, self._tags[self._stores_of(pairs)], strict=True)
        ]

    def targets(self, pairs: Indices) -> list[np.ndarray]:
        """The target sentences of `pairs`, as token ids."""
        return self._gather([store.target for store in self.stores], pairs)

    def _sources(self, pairs: Indices) -> list[np.ndarray]:
        """The source sentences without tags."""
        return self._gather([store.source for store in self.stores], pairs)

    def _stores_of(self, pairs: Indices) -> Indices:
        """The number of each pair's store."""
        return np.searchsorted(self.starts, pairs, side="right") - 1

    def origin(self, index: int) -> tuple[int, int, int]:
        """Return (store number, file number, line number) for a pair."""
        store = int(np.searchsorted(self.starts, index, side="right")) - 1
        return store, *self.stores[store].store.origin(int(index - self.starts[store]))

    def lengths(self, pairs: Indices) -> tuple[Indices, Indices]:
        """The source lengths and the target lengths of `pairs` in tokens without EOS, each of shape (pairs,).

        Of sources that are not text, the vectors are counted.
        """
        source, target = np.empty((2, len(pairs)), dtype=np.int64)
        for store, start, end in zip(self.stores, self.starts, self.starts[1:], strict=False):
            here = (pairs >= start) & (pairs < end)
            tokens = store.source.lengths[pairs[here] - start]
            source[here] = tokens // self.values_per_position + self._num_tags
            target[here] = store.target.lengths[pairs[here] - start]
        return source, target

    def longest(self) -> tuple[int, int]:
        """The index of the pair with the longest sentence, and the length of this sentence in tokens without EOS."""
        pair = 0
        tokens = -1
        for store, first in zip(self.stores, self.starts.tolist(), strict=False):
            for start in range(0, store.pairs, SLICE_PAIRS):
                some = slice(start, start + SLICE_PAIRS)
                positions = store.source.lengths[some] // self.values_per_position
                longer = np.maximum(positions + self._num_tags, store.target.lengths[some])
                if longer.max() > tokens:
                    pair = first + start + int(longer.argmax())
                    tokens = int(longer.max())
        return pair, tokens

    def plan(
        self, epoch: int, block: int, *, budget: int, accumulate: int, seed: int, width: int = 0
    ) -> list[list[Indices]]:
        """The updates of one block, each a list of up to `accumulate` micro-batches of pair indices.

        Each side of a micro-batch has at most `budget` cells, in packed rows of `width` cells if it is not 0. If the
        weight of a store is 2.5, an epoch contains all its pairs twice and a random half of them a third time.
        """
        if not self.pairs_per_epoch:
            return []
        chosen = self._draw(seed, epoch, block)
        make = partial(packed_batches, width=width) if width else micro_batches
        batches = make(*self.lengths(chosen), budget=budget, seed=seed, epoch=epoch, block=block)
        if not batches:
            return []
        ends = np.cumsum([len(batch) for batch in batches])
        # Views of one array: thousands of arrays would fragment memory.
        batches = np.split(chosen[np.concatenate(batches)], ends[:-1])
        return [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]

    def _draw(self, seed: int, epoch: int, block: int) -> Indices:
        """Draw the pair indices of a block, as random runs of neighbouring pairs."""
        random = np.random.default_rng((seed, epoch, 0, 1))  # a random stream used nowhere else
        runs = [self._draw_runs(store, random) for store in range(len(self.stores))]
        firsts, sizes = (np.concatenate(column) for column in zip(*runs, strict=True))
        if self.blocks > 1:
            begin, end = (len(firsts) * number // self.blocks for number in (block, block + 1))
            drawn = np.sort(random.permutation(len(firsts))[begin:end])
            firsts = firsts[drawn]
            sizes = sizes[drawn]
        return np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())

    def _draw_runs(self, store: int, random: np.random.Generator) -> tuple[Indices, Indices]:
        """The first pair index and the size of each run of neighbouring pairs in a store."""
        run = RUN_PAIRS if self.blocks > 1 else 1
        firsts = np.arange(self.starts[store], self.starts[store + 1], run)
        sizes = np.minimum(run, self.starts[store + 1] - firsts)
        copies, part = divmod(self.weights[store], 1)
        order = random.permutation(len(firsts))
        wanted = round(part * sizes.sum())
        # The last run may be shortened.
        extra = np.diff(np.cumsum(sizes[order]).clip(max=wanted), prepend=0)
        order = order[extra > 0]
        extra = extra[extra > 0]
        return np.concatenate([*[firsts] * int(copies), firsts[order]]), np.concatenate(
            [*[sizes] * int(copies), extra]
        )

    def _gather(self, columns: Sequence[Column], pairs: Indices) -> list[np.ndarray]:
        """Read the sentences of `pairs` as token ids. `columns` holds one side of each store."""
        stores = self._stores_of(pairs)
        rows = {
            store: iter(columns[store].rows(pairs[stores == store] - self.starts[store]))
            for store in np.unique(stores).tolist()
        }
        return [next(rows[store]) for store in stores.tolist()]


class SampledMixture(Mixture):
    """A mixture that changes texts and draws subwords anew when it plans a block.

    Only the planned block can then be read.
    """

    def __init__(self, data: Mixture, change: Change) -> None:
        super().__init__(data.stores, data.weights, data.values_per_position)
        self._change = change
        # A longer sentence is not used, so that every batch fits.
        self._limit = self.longest()[1] - self._num_tags

    def _sources(self, pairs: Indices) -> list[np.ndarray]:
        return self._columns[0].rows(np.searchsorted(self._pairs, pairs))

    def targets(self, pairs: Indices) -> list[np.ndarray]:
        return self._columns[1].rows(np.searchsorted(self._pairs, pairs))

    def lengths(self, pairs: Indices) -> tuple[Indices, Indices]:
        places = np.searchsorted(self._pairs, pairs)
        return self._columns[0].lengths[places] + self._num_tags, self._columns[1].lengths[places]

    def _draw(self, seed: int, epoch: int, block: int) -> Indices:
        chosen = super()._draw(seed, epoch, block)
        random = np.random.default_rng((seed, epoch, block, 2))  # a random stream used nowhere else
        self._pairs = np.unique(chosen)
        slices = np.split(self._pairs, range(SAMPLED_PAIRS, len(self._pairs), SAMPLED_PAIRS))
        self._columns = [
            _column(side)
            for side in zip(*(self._changed(some, random) for some in slices), strict=True)
        ]
        return chosen

    def _changed(self, pairs: Indices, random: np.random.Generator) -> list[Rows]:
        """Draw both sides of `pairs`. A pair with a side that would become too long stays as it is."""
        kept = [_join(super()._sources(pairs)), _join(super().targets(pairs))]
        drawn = self._change(kept, random)
        fits = np.all([rows.lengths <= self._limit for rows in drawn], axis=0)
        return [choose(fits, new, old) for new, old in zip(drawn, kept, strict=True)]


def _join(sentences: Sequence[np.ndarray]) -> Rows:
    return Rows(np.concatenate(sentences), np.array([len(sentence) for sentence in sentences]))


def choose(first: NDArray[np.bool_], one: Rows, other: Rows) -> Rows:
    """For each sentence, its row in `one` if `first` (sentences,) is true, else its row in `other`."""
    both = Rows(np.concatenate((one.ids, other.ids)), np.concatenate((one.lengths, other.lengths)))
    return both.take(np.arange(len(first)) + len(first) * ~first)


def _column(parts: Sequence[Rows]) -> Column:
    lengths = np.concatenate([part.lengths for part in parts])
    return Column(
        np.concatenate([part.ids for part in parts]),
        lengths,
        (np.cumsum(lengths) - lengths)[::STRIDE],
    )
