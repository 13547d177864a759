"""Splits a corpus into training pairs and validation pairs that share no sentence.

Two pairs are linked if they share a sentence. No connected component of linked pairs has pairs in both sets.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.hashes import Bits64, alike, hash_texts
from transduce.text.pairs import Pair

LEAVING_DIVISOR = 10  # at most a tenth of the pairs may be held out or dropped
# Scores on fewer pairs would be chance, so all pairs of such a small corpus are trained on.
MIN_HELD_OUT = 10
SLICE_ITEMS = 1_000_000  # pairs or sentences per array operation, to limit its memory
# Each call yields the hashes of both sides, in blocks (pairs, 2).
Sentences = Callable[[], Iterable[Bits64]]


class Part(IntEnum):
    """How a pair is used, or why it is left out."""

    TRAIN = 0
    HELD_OUT = 1
    DROPPED = 2  # linked to a held-out pair by shared sentences
    REPEATED = 3  # left out before the hold-out: it repeats an earlier pair
    # Left out before the hold-out: source and target have different placeholders.
    PLACEHOLDERS_DIFFER = 4


def sentences(pairs: Iterable[Pair]) -> Bits64:
    """Hash sources and targets, ignoring case and extra white space. Returns an array of shape (pairs, 2)."""
    return hash_texts(
        normalised(text) for pair in pairs for text in (pair.source, pair.target)
    ).reshape(-1, 2)


def normalised(text: str) -> str:
    """The text without differences in case and white space."""
    return " ".join(text.casefold().split())


def hold_out(
    sentences: Sentences, count: int, seed: int, ends: Sequence[int] = ()
) -> NDArray[np.int8]:
    """Return TRAIN, HELD_OUT or DROPPED for every pair.

    Holds out a random pair of each of the `count` smallest connected components, and drops their other pairs. If these
    components have more than a tenth of all pairs, uses fewer components, but at least one. `ends` divides the pairs
    into corpora, which get equal shares of the held-out pairs; empty: one corpus. If a tenth of a single corpus is less
    than both `count` and MIN_HELD_OUT, holds no pairs out. Takes about 19 bytes of memory per pair. Raises UserError if
    there are fewer than two components.
    """
    pairs = sum(map(len, sentences()))
    if count < 1 or (not ends and pairs // LEAVING_DIVISOR < min(count, MIN_HELD_OUT)):
        return np.full(pairs, Part.TRAIN, dtype=np.int8)
    components = _components(sentences, pairs)
    sizes = np.zeros(components.max(initial=0) + 1, dtype=np.int32)
    for part in slices(len(components)):
        np.add.at(sizes, components[part], 1)
    if np.count_nonzero(sizes) < 2:
        raise UserError(
            f"No validation set can be split off: shared sentences link all {pairs:,} pairs with each other.",
            "Set data.holdout=0, or give validation files.",
            "data.valid",
        )
    generator = np.random.default_rng(seed)
    parts = np.full(pairs, Part.TRAIN, dtype=np.int8)
    corpora = [slice(start, end) for start, end in pairwise((0, *(ends or [pairs]))) if start < end]
    for corpus in corpora:
        own = sizes if len(corpora) == 1 else _own_sizes(components, sizes, parts, corpus)
        # Otherwise, a small corpus among several could have no pairs left to train on.
        if np.count_nonzero(own) > 1:
            own_pairs = corpus.stop - corpus.start
            budget = min(pairs // LEAVING_DIVISOR // len(corpora), own_pairs // LEAVING_DIVISOR)
            chosen = np.sort(_choose(own, -(-count // len(corpora)), budget, generator))
            _hold_out_components(parts, components, chosen, corpus, generator)
    return parts


def _own_sizes(
    components: NDArray[np.int32], sizes: NDArray[np.int32], parts: NDArray[np.int8], corpus: slice
) -> NDArray[np.int32]:
    """The sizes of the components that have training pairs of a corpus, and 0 for the other components."""
    is_own = np.zeros(len(sizes), dtype=bool)
    is_own[components[corpus][parts[corpus] == Part.TRAIN]] = True
    return np.where(is_own, sizes, 0)


def _hold_out_components(
    parts: NDArray[np.int8],
    components: NDArray[np.int32],
    chosen: NDArray[np.int64],
    corpus: slice,
    generator: np.random.Generator,
) -> None:
    """Hold out a random pair of the corpus of each chosen component, and drop the components' other pairs."""
    is_chosen = np.zeros(int(components.max()) + 1, dtype=bool)
    is_chosen[chosen] = True
    leaving = np.concatenate(
        [part.start + np.flatnonzero(is_chosen[components[part]]) for part in slices(len(parts))]
    )
    parts[leaving] = Part.DROPPED
    own = leaving[(leaving >= corpus.start) & (leaving < corpus.stop)]
    own = own[np.argsort(components[own], kind="stable")]  # sorted by component
    _, sizes = np.unique(components[own], return_counts=True)
    drawn = (generator.random(len(chosen)) * sizes).astype(np.int64)
    parts[own[np.cumsum(sizes) - sizes + drawn]] = Part.HELD_OUT


def _components(sentences: Sentences, pairs: int) -> NDArray[np.int32]:
    """The lowest id of a sentence in the connected component of each pair.

    Repeats union-find over all pairs until nothing changes.
    """
    (sources, targets), known = _numbered(sentences, pairs)
    least = np.arange(known, dtype=np.int32)
    changed = True
    while changed:
        changed = False
        for part in slices(pairs):
            a = least[sources[part]]
            b = least[targets[part]]
            linked = np.minimum(a, b)
            changed |= not np.array_equal(a, b)
            np.minimum.at(least, a, linked)
            np.minimum.at(least, b, linked)
        moved = True
        while moved:
            moved = False
            for part in slices(known):
                further = least[least[part]]
                moved |= not np.array_equal(further, least[part])
                least[part] = further
    for part in slices(pairs):
        sources[part] = least[sources[part]]
    return sources


def _numbered(sentences: Sentences, pairs: int) -> tuple[list[NDArray[np.int32]], int]:
    """Return the sentence id of each source and of each target, and the number of different ids."""
    sides = [np.empty(pairs, dtype=np.int32) for _ in range(2)]
    known = 0
    for places, hashes in alike(sentences):
        different, numbers = np.unique(hashes, return_inverse=True)
        for side, its in enumerate(sides):
            here = places % 2 == side
            its[places[here] // 2] = numbers[here] + known
        known += len(different)
    return sides, known


def slices(length: int) -> Iterator[slice]:
    """Slices of SLICE_ITEMS items that together cover an array of this length."""
    return (slice(start, start + SLICE_ITEMS) for start in range(0, length, SLICE_ITEMS))


def _choose(
    sizes: NDArray[np.int32], count: int, budget: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Choose the `count` smallest components, or fewer if they have more than `budget` pairs, but at least one."""
    chosen: list[NDArray[np.int64]] = []
    distinct = set[int]().union(*(np.unique(sizes[part]).tolist() for part in slices(len(sizes))))
    for size in sorted(distinct - {0}):
        wanted = max(min(count, budget // size), 0 if chosen else 1)
        available = sum(np.count_nonzero(sizes[part] == size) for part in slices(len(sizes)))
        drawn = np.sort(generator.choice(available, min(wanted, available), replace=False))
        chosen += _components_of_size(sizes, size, drawn)
        count -= len(drawn)
        budget -= size * len(drawn)
        if len(drawn) < available:
            break
    return np.concatenate(chosen)


def _components_of_size(
    sizes: NDArray[np.int32], size: int, drawn: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Of the components with `size` pairs, yield those at the sorted positions `drawn`."""
    before = 0
    for part in slices(len(sizes)):
        components = part.start + np.flatnonzero(sizes[part] == size)
        begin, end = np.searchsorted(drawn, (before, before + len(components)))
        yield components[drawn[begin:end] - before]
        before += len(components)
