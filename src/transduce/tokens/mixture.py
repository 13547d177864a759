"""Joins several weighted token stores into one corpus, and plans its batches.

An epoch is divided into blocks. A block is divided into batches only when training reaches it. This limits memory use
and the time before the first update. An epoch of up to BLOCK_PAIRS pairs is one block. A larger epoch has several
blocks of equal size. Each of these blocks consists of randomly drawn runs of neighbouring pairs.
"""

from collections.abc import Sequence

import numpy as np

from transduce.tokens.batching import Indices, micro_batches
from transduce.tokens.store import STRIDE, Column, TokenStore
from transduce.tokens.subwords import SubwordSampler
from transduce.tokens.vocabulary import Rows

BLOCK_PAIRS = 1 << 21  # pairs in the largest block; planning it takes about 250 MB and a second
RUN_PAIRS = 256  # neighbouring pairs that belong to the same block
SLICE_PAIRS = 1 << 20  # pairs per array operation, to limit its memory
SAMPLED_PAIRS = 1 << 18  # pairs whose subwords are drawn together


class Mixture:
    """The pairs of several token stores, numbered consecutively from 0."""

    def __init__(self, stores: Sequence[TokenStore], weights: Sequence[float]) -> None:
        self.stores, self.weights = list(stores), list(weights)
        self.starts = np.cumsum([0, *map(len, stores)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def pairs_per_epoch(self) -> int:
        """The number of pairs in an epoch, including repetitions."""
        shares = [divmod(weight, 1) for weight in self.weights]
        return sum(
            int(copies) * len(store) + round(part * len(store))
            for store, (copies, part) in zip(self.stores, shares, strict=True)
        )

    @property
    def blocks(self) -> int:
        """The number of blocks in an epoch."""
        return max(1, -(-self.pairs_per_epoch // BLOCK_PAIRS))

    def sources(self, pairs: Indices) -> list[np.ndarray]:
        """The source sentences of `pairs`, as token ids."""
        return self._gather([store.source for store in self.stores], pairs)

    def targets(self, pairs: Indices) -> list[np.ndarray]:
        """The target sentences of `pairs`, as token ids."""
        return self._gather([store.target for store in self.stores], pairs)

    def origin(self, index: int) -> tuple[int, int, int]:
        """Return (store number, file number, line number) for a pair."""
        store = int(np.searchsorted(self.starts, index, side="right")) - 1
        return store, *self.stores[store].origin(int(index - self.starts[store]))

    def lengths(self, pairs: Indices) -> tuple[Indices, Indices]:
        """The source lengths and the target lengths of `pairs` in tokens without EOS, each of shape (pairs,)."""
        source, target = np.empty((2, len(pairs)), dtype=np.int64)
        for store, start, end in zip(self.stores, self.starts, self.starts[1:], strict=False):
            here = (pairs >= start) & (pairs < end)
            source[here] = store.source.lengths[pairs[here] - start]
            target[here] = store.target.lengths[pairs[here] - start]
        return source, target

    def longest(self) -> tuple[int, int]:
        """The index of the pair with the longest sentence, and the length of this sentence in tokens without EOS."""
        pair, tokens = 0, -1
        for store, first in zip(self.stores, self.starts.tolist(), strict=False):
            for start in range(0, len(store), SLICE_PAIRS):
                some = slice(start, start + SLICE_PAIRS)
                longer = np.maximum(store.source.lengths[some], store.target.lengths[some])
                if longer.max() > tokens:
                    pair, tokens = first + start + int(longer.argmax()), int(longer.max())
        return pair, tokens

    def plan(self, epoch: int, block: int, *, budget: int, accumulate: int, seed: int) -> list[list[Indices]]:
        """The updates of one block, each a list of up to `accumulate` micro-batches of pair indices.

        Each side of a micro-batch has at most `budget` cells. If the weight of a store is 2.5, an epoch contains all
        pairs of the store twice and a random half of them a third time.
        """
        chosen = self._draw(seed, epoch, block)
        batches = micro_batches(*self.lengths(chosen), budget=budget, seed=seed, epoch=epoch, block=block)
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
            firsts, sizes = firsts[drawn], sizes[drawn]
        return np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())

    def _draw_runs(self, store: int, random: np.random.Generator) -> tuple[Indices, Indices]:
        """The first pair index and the size of each run of neighbouring pairs in a store."""
        run = RUN_PAIRS if self.blocks > 1 else 1
        firsts = np.arange(self.starts[store], self.starts[store + 1], run)
        sizes = np.minimum(run, self.starts[store + 1] - firsts)
        copies, part = divmod(self.weights[store], 1)
        order = random.permutation(len(firsts))
        wanted = round(part * sizes.sum())
        extra = np.diff(np.cumsum(sizes[order]).clip(max=wanted), prepend=0)  # the last run may be shortened
        order, extra = order[extra > 0], extra[extra > 0]
        return np.concatenate([*[firsts] * int(copies), firsts[order]]), np.concatenate([*[sizes] * int(copies), extra])

    def _gather(self, columns: Sequence[Column], pairs: Indices) -> list[np.ndarray]:
        """Read the sentences of `pairs` as token ids. `columns` holds one side of each store."""
        stores = np.searchsorted(self.starts, pairs, side="right") - 1
        rows = {
            store: iter(columns[store].rows(pairs[stores == store] - self.starts[store]))
            for store in np.unique(stores).tolist()
        }
        return [next(rows[store]) for store in stores.tolist()]


class SampledMixture(Mixture):
    """A mixture whose subwords are drawn anew when a block is planned; then the pairs of this block can be read."""

    def __init__(self, data: Mixture, source: SubwordSampler | None, target: SubwordSampler | None) -> None:
        """Without a sampler, a side keeps its segmentation."""
        super().__init__(data.stores, data.weights)
        self._samplers = source, target
        self._limit = self.longest()[1]  # a longer segmentation is not used, so that every batch fits

    def sources(self, pairs: Indices) -> list[np.ndarray]:
        return self._columns[0].rows(np.searchsorted(self._pairs, pairs))

    def targets(self, pairs: Indices) -> list[np.ndarray]:
        return self._columns[1].rows(np.searchsorted(self._pairs, pairs))

    def lengths(self, pairs: Indices) -> tuple[Indices, Indices]:
        places = np.searchsorted(self._pairs, pairs)
        return self._columns[0].lengths[places], self._columns[1].lengths[places]

    def _draw(self, seed: int, epoch: int, block: int) -> Indices:
        chosen = super()._draw(seed, epoch, block)
        random = np.random.default_rng((seed, epoch, block, 2))  # a random stream used nowhere else
        self._pairs = np.unique(chosen)
        self._columns = [
            _column([self._sample(read(some), sampler, random) for some in _slices(self._pairs)])
            for read, sampler in zip((super().sources, super().targets), self._samplers, strict=True)
        ]
        return chosen

    def _sample(self, rows: list[np.ndarray], sampler: SubwordSampler | None, random: np.random.Generator) -> Rows:
        kept = Rows(np.concatenate(rows), np.array([len(row) for row in rows]))
        if not sampler:
            return kept
        drawn = sampler.sample(kept, random)
        both = Rows(np.concatenate((drawn.ids, kept.ids)), np.concatenate((drawn.lengths, kept.lengths)))
        return both.take(np.arange(len(rows)) + len(rows) * (drawn.lengths > self._limit))


def _slices(pairs: Indices) -> list[Indices]:
    return [pairs[start : start + SAMPLED_PAIRS] for start in range(0, len(pairs), SAMPLED_PAIRS)]


def _column(parts: Sequence[Rows]) -> Column:
    lengths = np.concatenate([part.lengths for part in parts])
    return Column(np.concatenate([part.ids for part in parts]), lengths, (np.cumsum(lengths) - lengths)[::STRIDE])
