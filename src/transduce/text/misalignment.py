"""Stretches in which the lines of two texts have slipped against each other.

A missing or a doubled line moves all that follows. What shows it are the lengths of lines (long sentences have long
translations: Gale and Church, 1993) and words that are the same in both languages, names and numbers above all. Both
are log-odds: of line i of the source being translated by line i + offset of the target, against being unrelated to it.
The likeliest path through the offsets, each change of which costs something, tells the stretches.

n lines, o offsets (the last stands for "unrelated"), t words
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice, pairwise, repeat
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from transduce.text.lengths import lengths_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Hashed = NDArray[np.uint64]
Item = TypeVar("Item")

FARTHEST = 20  # lines that a shift is looked for
EDGE = 3  # lines at either end of a stretch that may belong to what is beside it
CHANGE = 16.0  # nats that a change of the offset costs: what some twenty lines of prose tell
FEWEST = 50  # lines of which anything can be said
SMOOTH = 6  # characters added to every length, so that short sentences may differ
LARGEST, SMALLEST = 2.0, -3.0  # nats that the lengths of one line may tell: a free translation is not an unrelated one
WORD = 2.5  # nats that a shared word tells, if it stands nowhere else near
MOST_WORDS = 5.0  # nats that all shared words of two lines may tell
SHORTEST = 3  # characters of a word that is compared; numbers may be shorter
BUCKETS = 1 << 18  # that words are counted in
FREQUENT = 0.01  # share of the lines; words in more of them tell nothing of a place


class Stretch(NamedTuple):
    """Lines, counted from 0, whose translation stands `offset` lines further down; None: it is nowhere near."""

    first: int
    last: int
    offset: int | None


class Words(NamedTuple):
    """Where words stand, and what they are: hashes of 40 bits."""

    lines: Ints
    hashes: Hashed


def find_stretches(sources: Sequence[str], targets: Sequence[str]) -> list[Stretch]:
    """The stretches of aligned lines whose offset is not 0, in order."""
    if len(sources) < FEWEST:
        return []
    odds = _length_odds(lengths_of(sources), lengths_of(targets)) + _word_odds(sources, targets)
    odds = np.hstack((odds, np.zeros((len(sources), 1))))
    if not _may_change(odds):
        return []
    offsets = _likeliest_path(odds)
    edges = [0, *(np.flatnonzero(np.diff(offsets)) + 1).tolist(), len(offsets)]
    runs = [(begin, end, int(offsets[begin]) - FARTHEST) for begin, end in pairwise(edges)]
    return [Stretch(b, e - 1, offset if offset <= FARTHEST else None) for b, e, offset in runs if offset]


def partners(stretches: Sequence[Stretch], lines: int) -> Ints:
    """For each source line the line of the target that is its own, -1 where that is uncertain or nowhere near.

    Uncertain are the lines around an end of a stretch, and a target that two lines may lay claim to.
    """
    found, claims = np.arange(lines), np.ones(lines, dtype=np.int64)
    for first, last, _ in stretches:
        claims[first : last + 1] = 0
        found[max(first - EDGE, 0) : last + 1 + EDGE] = -1
    for first, last, offset in stretches:
        if offset is not None:
            sure = np.arange(first + EDGE * (first > 0), last + 1 - EDGE * (last < lines - 1))
            found[sure] = np.where(sure + offset < lines, sure + offset, -1).clip(-1)
            begin, end = (max(line + offset, 0) for line in (first - EDGE, last + 1 + EDGE))
            claims[begin:end] += 1
    return np.where(claims[found] > 1, -1, found)


def at_offsets(items: Iterable[Item], offsets: Iterable[int]) -> Iterator[Item | None]:
    """For each offset the item so many places further on, up to FARTHEST; None beyond the ends."""
    edge = [None] * FARTHEST
    padded = chain(edge, items, repeat(None))
    near = deque(islice(padded, 2 * FARTHEST), maxlen=2 * FARTHEST + 1)
    for offset in offsets:
        near.append(next(padded))
        yield near[FARTHEST + offset]


def _shifted(values: Floats, offset: int) -> Floats:
    """Each line's value `offset` lines further down, nan beyond the ends."""
    moved = np.full(len(values), np.nan)
    if offset >= 0:
        moved[: len(values) - offset] = values[offset:]
    else:
        moved[-offset:] = values[:offset]
    return moved


def _length_odds(sources: Ints, targets: Ints) -> Floats:
    """(n, o): log-odds that lengths tell; 0 where a line is blank or missing.

    The logarithm of the ratio is normal, narrowly for translations and broadly for lines that have nothing to do with
    each other. How narrowly, the offset tells at which it is narrowest: there most lines are at home.
    """
    source, target = (np.log(np.where(side > 0, side + SMOOTH, np.nan)) for side in (sources, targets))
    ratios = np.stack([_shifted(target, offset) for offset in range(-FARTHEST, FARTHEST + 1)], axis=1)
    ratios -= source[:, None]
    middle = np.nanmedian(target) - np.nanmedian(source) if np.isfinite(ratios).any() else 0.0
    ratios -= middle
    sample = np.abs(ratios[:: 1 + len(ratios) // 4000])
    narrow = max(1.4826 * min(_median(column) for column in sample.T), 0.05)
    broad = max(float(np.hypot(_spread(source), _spread(target))), narrow)
    odds = np.log(broad / narrow) - ratios**2 * (0.5 / narrow**2 - 0.5 / broad**2)
    return np.nan_to_num(np.clip(odds, SMALLEST, LARGEST), nan=0.0)


def _median(values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else 1.0


def _spread(values: Floats) -> float:
    return 1.4826 * _median(np.abs(values - _median(values)))


def _word_odds(sources: Sequence[str], targets: Sequence[str]) -> Floats:
    """(n, o): log-odds that shared words tell; a word that several near lines have is shared out among them."""
    n = len(sources)
    sides = [_words(sources), _words(targets)]
    buckets = [np.bincount(words & np.uint64(BUCKETS - 1), minlength=BUCKETS) for _, words in sides]
    telling = np.logical_and(*((counts > 0) & (counts <= max(2, FREQUENT * n)) for counts in buckets))
    mine, keys = (np.unique(_join(*_where(side, telling))) for side in sides)  # by word, then by line
    lines = (mine & np.uint64(0xFFFFFF)).astype(np.int64)
    word = mine & ~np.uint64(0xFFFFFF)
    begins = np.searchsorted(keys, word | np.maximum(lines - FARTHEST, 0).astype(np.uint64), side="left")
    ends = np.searchsorted(keys, word | (lines + FARTHEST).astype(np.uint64), side="right")
    found = ends - begins
    pointers = np.repeat(begins - (np.cumsum(found) - found), found) + np.arange(found.sum())
    here = np.repeat(lines, found)
    offsets = (keys[pointers] & np.uint64(0xFFFFFF)).astype(np.int64) - here + FARTHEST
    width = 2 * FARTHEST + 1
    odds = np.bincount(here * width + offsets, np.repeat(WORD / np.maximum(found, 1), found), n * width)
    return np.minimum(odds, MOST_WORDS).reshape(n, width)


def _where(side: Words, telling: NDArray[np.bool_]) -> Words:
    chosen = telling[side.hashes & np.uint64(BUCKETS - 1)]
    return Words(side.lines[chosen], side.hashes[chosen])


def _join(lines: Ints, words: Hashed) -> Hashed:
    """Word and line as one number; of the words 40 bits."""
    return words << np.uint64(24) | lines.astype(np.uint64)


def _words(texts: Sequence[str]) -> Words:
    """The words of all texts that may be the same in another language.

    The hash of a word is a difference of sums over the whole text, so that no word is looked at by itself.
    """
    joined = "\n".join(text.replace("\n", " ") for text in texts).casefold()
    codes = np.frombuffer(f" {joined} ".encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _kinds()[np.minimum(codes, 0xFFFF)]
    inside = np.concatenate(([0], (kinds > 0).astype(np.int8)))
    edges = np.diff(inside)
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    digits = np.concatenate(([0], np.cumsum(kinds == 2)))
    kept = (ends - begins >= SHORTEST) | (digits[ends] > digits[begins])
    begins, ends = begins[kept], ends[kept]
    powers, inverses = _powers(len(codes) + 1)
    sums = np.concatenate(([np.uint64(0)], np.cumsum(codes.astype(np.uint64) * powers[:-1])))
    hashes = (sums[ends] - sums[begins]) * inverses[begins]
    breaks = np.cumsum(codes == 10)
    return Words(breaks[begins], (hashes * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24))


@cache
def _kinds() -> NDArray[np.int8]:
    """Of every character: 2 is a digit, 1 another part of a word, 0 stands between words."""
    characters = map(chr, range(0x10000))
    return np.array([2 if c.isdecimal() else int(c.isalnum()) for c in characters], dtype=np.int8)


def _powers(count: int) -> tuple[Hashed, Hashed]:
    """Powers of an odd number modulo 2^64, and their inverses."""
    base = 0x5851F42D4C957F2D
    inverse = pow(base, -1, 1 << 64)
    rows = [np.full(count, each, dtype=np.uint64) for each in (base, inverse)]
    for row in rows:
        row[0] = 1
    return np.cumprod(rows[0]), np.cumprod(rows[1])


def _may_change(odds: Floats) -> bool:
    """Whether some lines in a row are so much likelier at another offset than at 0 that a change may be worth it."""
    gains = np.cumsum(odds - odds[:, FARTHEST : FARTHEST + 1], axis=0)
    lowest = np.minimum(np.minimum.accumulate(gains, axis=0), 0.0)
    return bool((gains - lowest >= CHANGE).any())


def _likeliest_path(odds: Floats) -> Ints:
    """The offset's column for every line: the path whose sum is greatest, less CHANGE for each change (Viterbi).

    It begins wherever it likes, but for the offset of 0, which is free, at the price of a change.
    """
    n, width = odds.shape
    came = np.empty((n, width), dtype=bool)  # whether the path changed to come here
    best = np.empty(n, dtype=np.int64)  # from where, if it did
    value = np.full(width, -CHANGE)
    value[FARTHEST] = 0.0
    for line in range(n):
        best[line] = top = int(value.argmax())
        floor = value[top] - CHANGE
        np.less(value, floor, out=came[line])
        np.maximum(value, floor, out=value)
        value += odds[line]
    value[np.arange(width) != FARTHEST] -= CHANGE / 2  # a stretch at the very end has to prove itself, too
    path = np.empty(n, dtype=np.int64)
    here = int(value.argmax())
    for line in range(n - 1, -1, -1):
        path[line] = here
        if came[line, here]:
            here = int(best[line])
    return path
