"""A part of a corpus to validate on, of which training has seen no sentence.

Corpora repeat themselves: one sentence has many translations. Where pairs are split at random,
half of a validation set may be known by heart. Here sentences that share a pair are linked, and
the corpus is split between the connected components of this graph, never through one.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from transduce.corpus.hashes import Bits64, as_numbers, hash_text
from transduce.corpus.pairs import Pair
from transduce.errors import UserError

TRAIN, HELD_OUT, DROPPED = 0, 1, 2  # the parts of a corpus; dropped: related to a pair that is held out
LARGEST_PART = 10  # at most a tenth of the pairs may leave training
PARTITIONS = 16  # of the sentences, numbered one after another in a sixteenth of the memory


def sentences(pairs: Iterable[Pair]) -> Bits64:
    """The hashes of both sentences of every pair (pairs, 2); equal if they differ only in case or white space."""
    texts = (" ".join(text.casefold().split()) for pair in pairs for text in (pair.source, pair.target))
    return as_numbers(list(map(hash_text, texts))).reshape(-1, 2)


def hold_out(sentences: Bits64, count: int, seed: int) -> NDArray[np.int8]:
    """The part that every pair belongs to, so that no sentence of either side is both trained on and held out.

    sentences: hashes (pairs, 2). The held-out part takes one pair, chosen by `seed`, of each of the `count` smallest
    components; their other pairs are dropped. At most a tenth of the pairs leaves training in all, but one is held
    out whatever it costs. The result depends on the sentences, the count and the seed alone. It takes about 20 bytes
    of memory per pair.
    Raises UserError if all pairs are linked, so that there is no such split.
    """
    parts = np.full(len(sentences), TRAIN, dtype=np.int8)
    if count < 1:
        return parts
    components = _components(sentences)
    sizes = np.zeros(components.max(initial=0) + 1, dtype=np.int32)
    for some in _slices(len(components)):
        np.add.at(sizes, components[some], 1)
    if np.count_nonzero(sizes) < 2:
        raise UserError(
            f"No validation set can be split off: {_why(len(parts))}. Give one with --valid, or more text to train on."
        )
    generator = np.random.default_rng(seed)
    chosen = np.sort(_choose(sizes, count, len(parts) // LARGEST_PART, generator))
    is_chosen = np.zeros(len(sizes), dtype=bool)
    is_chosen[chosen] = True
    leaving = np.flatnonzero(is_chosen[components])
    leaving = leaving[np.argsort(components[leaving], kind="stable")]  # one component after another
    parts[leaving] = DROPPED
    drawn = (generator.random(len(chosen)) * sizes[chosen]).astype(np.int64)
    parts[leaving[np.cumsum(sizes[chosen]) - sizes[chosen] + drawn]] = HELD_OUT
    return parts


def _components(sentences: Bits64) -> NDArray[np.int32]:
    """For each pair, the component that sentences link it to, as the least number of a sentence in it.

    Every sentence points to one that it is linked to and that has a lesser number. Round after round, what a pair
    links points to the lesser of what both point to, and paths are cut short, until nothing changes.
    """
    (sources, targets), known = _numbered(sentences)
    least = np.arange(known, dtype=np.int32)
    changed = True
    while changed:
        changed = False
        for some in _slices(len(sources)):
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
    for some in _slices(len(sources)):
        sources[some] = least[sources[some]]
    return sources


def _numbered(sentences: Bits64) -> tuple[NDArray[np.int32], int]:
    """A number for every different sentence, from 0 on (2, pairs), and how many there are."""
    numbers = np.empty((2, len(sentences)), dtype=np.int32)
    last_bytes = np.ascontiguousarray(sentences).view(np.uint8)[:, ::8]  # as evenly spread as all of a hash
    known = 0
    for remainder in range(PARTITIONS):
        pairs, sides = np.nonzero(last_bytes % PARTITIONS == remainder)
        different, places = np.unique(sentences[pairs, sides], return_inverse=True)
        numbers[sides, pairs] = places + known
        known += len(different)
    return numbers, known


def _slices(length: int) -> Iterator[slice]:
    """All of an array in parts: an operation needs memory for one only."""
    return (slice(start, start + 1_000_000) for start in range(0, length, 1_000_000))


def _choose(sizes: NDArray[np.int32], count: int, budget: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The components to hold out: the smallest, otherwise by chance, while their pairs are within the budget."""
    chosen: list[NDArray[np.int64]] = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        room = max(min(count, budget // size), 0 if chosen else 1)
        components = np.flatnonzero(sizes == size)
        chosen.append(generator.choice(components, min(room, len(components)), replace=False))
        count -= len(chosen[-1])
        budget -= size * len(chosen[-1])
        if len(chosen[-1]) < len(components):
            break
    return np.concatenate(chosen)


def _why(number: int) -> str:
    if number < 2:
        return f"there {'is one pair' if number else 'are no pairs'} only"
    return f"shared sentences link all {number:,} pairs with each other"
