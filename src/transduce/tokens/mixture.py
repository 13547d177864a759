"""Several token stores as one, each pair as often per epoch as its corpus weighs; nothing is copied."""

from collections.abc import Sequence

import numpy as np

from transduce.tokens.batching import Indices, micro_batches
from transduce.tokens.store import TokenStore


class Mixture:
    """Pairs of all stores, numbered through; `weights` says how often a pair is seen per epoch, on average."""

    def __init__(self, stores: Sequence[TokenStore], weights: Sequence[float]) -> None:
        self.stores, self.weights = list(stores), list(weights)
        self.starts = np.cumsum([0, *map(len, stores)])
        self.source_lengths = np.concatenate([store.source_lengths for store in stores])
        self.target_lengths = np.concatenate([store.target_lengths for store in stores])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def source(self, index: int) -> np.ndarray:
        """Ids of a source sentence."""
        store, place = self._find(index)
        return self.stores[store].source(place)

    def target(self, index: int) -> np.ndarray:
        """Ids of a target sentence."""
        store, place = self._find(index)
        return self.stores[store].target(place)

    def origin(self, index: int) -> tuple[int, int, int]:
        """Number of the store, of the file in it, and line."""
        store, place = self._find(index)
        return store, *self.stores[store].origin(place)

    def epoch(self, epoch: int, *, budget: int, accumulate: int, seed: int) -> list[list[Indices]]:
        """The updates of an epoch, each a list of micro-batches of at most `budget` cells on each side.

        A pure function of the stores and the arguments. A weight of 2.5 sees every pair twice and half of
        them, drawn anew each epoch, once more.
        """
        chosen = np.concatenate([self._draw(store, seed, epoch) for store in range(len(self.stores))])
        batches = micro_batches(
            self.source_lengths[chosen], self.target_lengths[chosen], budget=budget, seed=seed, epoch=epoch
        )
        batches = [chosen[batch] for batch in batches]
        return [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]

    def _draw(self, store: int, seed: int, epoch: int) -> Indices:
        every = np.arange(self.starts[store], self.starts[store + 1])
        copies, part = divmod(self.weights[store], 1)
        random = np.random.default_rng((seed, epoch, store))
        extra = random.permutation(every)[: round(part * len(every))]
        return np.concatenate([*[every] * int(copies), extra])

    def _find(self, index: int) -> tuple[int, int]:
        store = int(np.searchsorted(self.starts, index, side="right")) - 1
        return store, int(index - self.starts[store])
