"""A part of a corpus to validate on, of which training has seen no sentence.

Corpora repeat themselves: one sentence has many translations. Where pairs are split at random,
half of a validation set may be known by heart. Here sentences that share a pair are linked, and
the corpus is split between the connected components of this graph, never through one.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.hashes import Bits64, alike, as_numbers, hash_text
from transduce.text.pairs import Pair

TRAIN, HELD_OUT, DROPPED = 0, 1, 2  # the parts of a corpus; dropped: related to a pair that is held out
LARGEST_PART = 10  # at most a tenth of the pairs may leave training
SLICE = 1_000_000  # pairs or sentences looked at together: an operation needs memory for one slice only
Sentences = Callable[[], Iterable[Bits64]]  # gives hashes, in blocks (pairs, 2), whenever it is called


def sentences(pairs: Iterable[Pair]) -> Bits64:
    """The hashes of both sentences of every pair (pairs, 2); equal if they differ only in case or white space."""
    texts = (" ".join(text.casefold().split()) for pair in pairs for text in (pair.source, pair.target))
    return as_numbers(list(map(hash_text, texts))).reshape(-1, 2)


def hold_out(sentences: Sentences, count: int, seed: int) -> NDArray[np.int8]:
    """The part that every pair belongs to, so that no sentence of either side is both trained on and held out.

    sentences: the hashes of both of every pair. The held-out part takes one pair, chosen by `seed`, of each of the
    `count` smallest components; their other pairs are dropped. At most a tenth of the pairs leaves training in all, but
    one is held out whatever it costs. The result depends on the sentences, the count and the seed alone. It takes about
    19 bytes of memory per pair.
    Raises UserError if all pairs are linked, so that there is no such split.
    """
    pairs = sum(map(len, sentences()))
    if count < 1:
        return np.full(pairs, TRAIN, dtype=np.int8)
    components = _components(sentences, pairs)
    sizes = np.zeros(components.max(initial=0) + 1, dtype=np.int32)
    for some in _slices(len(components)):
        np.add.at(sizes, components[some], 1)
    if np.count_nonzero(sizes) < 2:
        raise UserError(
            f"No validation set can be split off: {_why(pairs)}. Give one with --valid, or more text to train on."
        )
    generator = np.random.default_rng(seed)
    chosen = np.sort(_choose(sizes, count, pairs // LARGEST_PART, generator))
    is_chosen = np.zeros(len(sizes), dtype=bool)
    is_chosen[chosen] = True
    leaving = np.concatenate([some.start + np.flatnonzero(is_chosen[components[some]]) for some in _slices(pairs)])
    leaving = leaving[np.argsort(components[leaving], kind="stable")]  # one component after another
    parts = np.full(pairs, TRAIN, dtype=np.int8)
    parts[leaving] = DROPPED
    drawn = (generator.random(len(chosen)) * sizes[chosen]).astype(np.int64)
    parts[leaving[np.cumsum(sizes[chosen]) - sizes[chosen] + drawn]] = HELD_OUT
    return parts


def _components(sentences: Sentences, pairs: int) -> NDArray[np.int32]:
    """For each pair, the component that sentences link it to, as the least number of a sentence in it.

    Every sentence points to one that it is linked to and that has a lesser number. Round after round, what a pair
    links points to the lesser of what both point to, and paths are cut short, until nothing changes.
    """
    (sources, targets), known = _numbered(sentences, pairs)
    least = np.arange(known, dtype=np.int32)
    changed = True
    while changed:
        changed = False
        for some in _slices(pairs):
            a, b = least[sources[some]], least[targets[some]]
            linked = np.minimum(a, b)
            changed |= not np.array_equal(a, b)
            np.minimum.at(least, a, linked)
            np.minimum.at(least, b, linked)
        moved = True
        while moved:
            moved = False
            for some in _slices(known):
                further = least[least[some]]
                moved |= not np.array_equal(further, least[some])
                least[some] = further
    for some in _slices(pairs):
        sources[some] = least[sources[some]]
    return sources


def _numbered(sentences: Sentences, pairs: int) -> tuple[list[NDArray[np.int32]], int]:
    """A number for every different sentence, from 0 on: (pairs,) of each side; and how many there are."""
    sides, known = [np.empty(pairs, dtype=np.int32) for _ in range(2)], 0  # of which the second is needed no longer
    for places, hashes in alike(sentences):
        different, numbers = np.unique(hashes, return_inverse=True)
        for side, its in enumerate(sides):
            here = places % 2 == side
            its[places[here] // 2] = numbers[here] + known
        known += len(different)
    return sides, known


def _slices(length: int) -> Iterator[slice]:
    """All of an array in parts."""
    return (slice(start, start + SLICE) for start in range(0, length, SLICE))


def _choose(sizes: NDArray[np.int32], count: int, budget: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The components to hold out: the smallest, otherwise by chance, while their pairs are within the budget."""
    chosen: list[NDArray[np.int64]] = []
    different = set[int]().union(*(np.unique(sizes[some]).tolist() for some in _slices(len(sizes))))
    for size in sorted(different - {0}):
        room = max(min(count, budget // size), 0 if chosen else 1)
        there = sum(np.count_nonzero(sizes[some] == size) for some in _slices(len(sizes)))
        drawn = np.sort(generator.choice(there, min(room, there), replace=False))
        chosen += _those(sizes, size, drawn)
        count -= len(drawn)
        budget -= size * len(drawn)
        if len(drawn) < there:
            break
    return np.concatenate(chosen)


def _those(sizes: NDArray[np.int32], size: int, drawn: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Of the components of a size, counted from 0, the ones that were drawn; drawn: in ascending order."""
    before = 0
    for some in _slices(len(sizes)):
        there = some.start + np.flatnonzero(sizes[some] == size)
        begin, end = np.searchsorted(drawn, (before, before + len(there)))
        yield there[drawn[begin:end] - before]
        before += len(there)


def _why(number: int) -> str:
    if number < 2:
        return f"there {'is one pair' if number else 'are no pairs'} only"
    return f"shared sentences link all {number:,} pairs with each other"
