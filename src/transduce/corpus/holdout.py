"""A part of a corpus to validate on, of which training has seen no sentence.

Corpora repeat themselves: one sentence has many translations. Where pairs are split at random,
half of a validation set may be known by heart. Here sentences that share a pair are linked, and
the corpus is split between the connected components of this graph, never through one.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from transduce.corpus.pairs import Pair
from transduce.errors import UserError

LARGEST_PART = 10  # at most a tenth of the pairs may leave training


class Split(NamedTuple):
    """A corpus in three parts; each keeps the order of the corpus."""

    train: list[Pair]
    held_out: list[Pair]
    dropped: list[Pair]  # related to a pair that is held out: of no use on either side


def hold_out(pairs: Sequence[Pair], count: int, seed: int) -> Split:
    """Split off up to `count` pairs so that no sentence of either side occurs in both parts.

    Sentences that differ only in case or white space are the same one. The held-out part takes one
    pair, chosen by `seed`, of each of the smallest components; their other pairs are dropped. At
    most a tenth of the pairs leaves training in all, but one is held out whatever it costs. The
    result depends on the pairs, the count and the seed alone.
    Raises UserError if all pairs are linked, so that there is no such split.
    """
    if count < 1:
        return Split(list(pairs), [], [])
    components = _components(pairs)
    sizes = Counter(components)
    if len(sizes) < 2:
        raise UserError(
            f"No validation set can be split off: {_why(len(pairs))}. Give one with --valid, or more text to train on."
        )
    generator = random.Random(seed)
    chosen = _choose(sizes, count, len(pairs) // LARGEST_PART, generator)
    skip = {component: int(generator.random() * sizes[component]) for component in chosen}
    split = Split([], [], [])
    for component, pair in zip(components, pairs, strict=True):
        if component not in skip:
            split.train.append(pair)
            continue
        part = split.held_out if skip[component] == 0 else split.dropped
        part.append(pair)
        skip[component] -= 1
    return split


def _components(pairs: Sequence[Pair]) -> list[int]:
    """For each pair, the index of the first pair that sentences link it to: union-find over the pairs."""
    parents = list(range(len(pairs)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = index = parents[parents[index]]
        return index

    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        for text in (pair.source, pair.target):
            known = first.setdefault(_sentence(text), index)
            if known != index:
                a, b = root(known), root(index)
                parents[max(a, b)] = min(a, b)
    return [root(index) for index in range(len(pairs))]


def _sentence(text: str) -> str:
    return " ".join(text.casefold().split())


def _choose(sizes: Counter[int], count: int, budget: int, generator: random.Random) -> list[int]:
    """The components to hold out: the smallest, otherwise by chance, while their pairs are within the budget."""
    ranked = sorted(sizes, key=lambda component: (sizes[component], generator.random()))
    chosen, cost = ranked[:1], sizes[ranked[0]]
    for component in ranked[1:count]:
        cost += sizes[component]
        if cost > budget:
            break
        chosen.append(component)
    return chosen


def _why(number: int) -> str:
    if number < 2:
        return f"there {'is one pair' if number else 'are no pairs'} only"
    return f"shared sentences link all {number:,} pairs with each other"
