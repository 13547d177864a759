"""Finds ranges of lines that are not aligned with their translations.

A missing or repeated line on one side shifts all later lines. Line lengths and shared words give the log-odds that
target line i + offset translates source line i. The Viterbi algorithm finds the likeliest offset of each line. Each
change of the offset has a cost. A range that fits best at offset 0 is aligned nevertheless.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, islice, pairwise, repeat
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from transduce.text.pair_batch import TextColumn

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]
Item = TypeVar("Item")

MAX_SHIFT_LINES = 20
EDGE_LINES = 3  # lines at either end of a shift, where the alignment is uncertain
# Cost of a change of the offset: about the evidence of twenty lines of prose.
SHIFT_COST_NATS = 16.0
MIN_LINES = 50  # fewer lines are too little evidence
# Added to every length, to tolerate differences between short sentences.
LOG_SMOOTHING_CHARACTERS = 6
# Bounds on the evidence of a line's length, as translations vary.
MAX_LENGTH_NATS, MIN_LENGTH_NATS = (
    2.0,
    -3.0,
)
SHARED_WORD_NATS = 2.5  # evidence of a shared word that no other nearby line has
MAX_WORD_NATS = 5.0  # bound on the evidence of all words that two lines share
MIN_WORD_CHARACTERS = 3  # shorter words are ignored, unless they contain a digit
WORD_BUCKETS = 1 << 18  # hash buckets for the counts of words
# Low bits of a key that combines a word and its line.
LINE_BITS, LINE_MASK = (
    np.uint64(24),
    np.uint64(0xFFFFFF),
)
MAX_WORD_FREQUENCY = 0.01  # share of the lines; more frequent words are no evidence
# Standard deviations, a share and nats: see `_is_evident`.
MIN_FIT, MIN_BETTER, MIN_WORD_GAIN = (
    2.5,
    0.2,
    5.0,
)


class Shift(NamedTuple):
    """A range of source lines, from 0. If `offset` is not None, target line i + `offset` translates source line i."""

    first: int
    last: int
    offset: int | None


def find_shifts(sources: Sequence[str], targets: Sequence[str]) -> list[Shift]:
    """Find the ranges of misaligned lines, in order."""
    if len(sources) < MIN_LINES:
        return []
    odds, ratios = _length_odds(TextColumn(sources).lengths, TextColumn(targets).lengths)
    words = _word_odds(sources, targets)
    # The last column: unrelated lines.
    odds = np.hstack((odds + words, np.zeros((len(sources), 1))))
    if not _may_change(odds):
        return []
    offsets = _likeliest_path(odds)
    edges = [0, *(np.flatnonzero(np.diff(offsets)) + 1).tolist(), len(offsets)]
    runs = [(begin, end, int(offsets[begin]) - MAX_SHIFT_LINES) for begin, end in pairwise(edges)]
    shifts = list[Shift]()
    for moved, group in groupby(runs, lambda run: run[2] != 0):
        found = [
            Shift(b, e - 1, offset if offset <= MAX_SHIFT_LINES else None) for b, e, offset in group
        ]
        if moved and any(
            _is_evident(each.offset, ratios[each[0] : each[1] + 1], words[each[0] :])
            for each in found
        ):
            shifts += found
    return shifts


def _is_evident(offset: int | None, ratios: Floats, words: Floats) -> bool:
    """Whether a range of lines does not fit best at offset 0, and clearly better at `offset` than by chance."""
    finite = (column[np.isfinite(column)] for column in ratios.T)
    # Lengths are compared with the range's own median ratio: a list of names has another median ratio than a corpus of
    # sentences.
    misfits = np.array(
        [np.abs(each - np.median(each)).mean() if len(each) else np.nan for each in finite]
    )
    here = MAX_SHIFT_LINES + (offset or 0)
    if (words[:, here] - words[:, MAX_SHIFT_LINES])[: len(ratios)].sum() >= MIN_WORD_GAIN:
        return True
    if offset is None or np.nanmin(misfits) == misfits[MAX_SHIFT_LINES]:
        return bool(np.nanmin(misfits) < misfits[MAX_SHIFT_LINES])
    usual = np.nanmean(np.delete(misfits, here))
    spread = np.nanstd(np.delete(misfits, here))
    return bool(usual - misfits[here] >= max(MIN_FIT * spread, MIN_BETTER * usual))


def alignment(shifts: Sequence[tuple[int, int, int | None]], lines: int) -> Ints:
    """The target line of each source line, or -1 where the alignment is uncertain."""
    targets = np.arange(lines)
    claims = np.ones(lines, dtype=np.int64)
    for first, last, _ in shifts:
        claims[first : last + 1] = 0
        targets[max(first - EDGE_LINES, 0) : last + 1 + EDGE_LINES] = -1
    for first, last, offset in shifts:
        if offset is not None:
            sure = np.arange(
                first + EDGE_LINES * (first > 0), last + 1 - EDGE_LINES * (last < lines - 1)
            )
            targets[sure] = np.where(sure + offset < lines, sure + offset, -1).clip(-1)
            begin, end = (
                max(line + offset, 0) for line in (first - EDGE_LINES, last + 1 + EDGE_LINES)
            )
            claims[begin:end] += 1
    return np.where(claims[targets] > 1, -1, targets)


def at_offsets(items: Iterable[Item], offsets: Iterable[int]) -> Iterator[Item | None]:
    """Yield item i + offset for the i-th offset, or None if there is no such item. |offset| <= MAX_SHIFT_LINES."""
    edge = [None] * MAX_SHIFT_LINES
    padded = chain(edge, items, repeat(None))
    near = deque(islice(padded, 2 * MAX_SHIFT_LINES), maxlen=2 * MAX_SHIFT_LINES + 1)
    for offset in offsets:
        near.append(next(padded))
        yield near[MAX_SHIFT_LINES + offset]


def _length_odds(sources: Ints, targets: Ints) -> tuple[Floats, Floats]:
    """Log-odds (n lines, o offsets) from the lengths of lines, with 0 for blank or missing lines, and log ratios.

    The log length ratio has a narrow normal distribution for translations and a broad one for unrelated lines.
    """
    source, target = (
        np.log(np.where(side > 0, side + LOG_SMOOTHING_CHARACTERS, np.nan))
        for side in (sources, targets)
    )
    padded = np.pad(target, MAX_SHIFT_LINES, constant_values=np.nan)
    ratios = sliding_window_view(padded, 2 * MAX_SHIFT_LINES + 1) - source[:, None]
    middle = np.nanmedian(target) - np.nanmedian(source) if np.isfinite(ratios).any() else 0.0
    ratios -= middle
    sample = np.abs(ratios[:: 1 + len(ratios) // 4000])
    narrow = max(1.4826 * min(_median(column) for column in sample.T), 0.05)
    broad = max(float(np.hypot(_spread(source), _spread(target))), narrow)
    odds = np.log(broad / narrow) - ratios**2 * (0.5 / narrow**2 - 0.5 / broad**2)
    return np.nan_to_num(np.clip(odds, MIN_LENGTH_NATS, MAX_LENGTH_NATS), nan=0.0), ratios


def _median(values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else 1.0


def _spread(values: Floats) -> float:
    return 1.4826 * _median(np.abs(values - _median(values)))


def _word_odds(sources: Sequence[str], targets: Sequence[str]) -> Floats:
    """Log-odds (n lines, o offsets) from shared words."""
    n = len(sources)
    sides = [_words(sources), _words(targets)]
    buckets = [(keys >> LINE_BITS) & np.uint64(WORD_BUCKETS - 1) for keys in sides]
    counts = [np.bincount(side, minlength=WORD_BUCKETS) for side in buckets]
    telling = np.logical_and(
        *((count > 0) & (count <= max(2, MAX_WORD_FREQUENCY * n)) for count in counts)
    )
    source_keys, keys = (
        np.unique(side[telling[bucket]]) for side, bucket in zip(sides, buckets, strict=True)
    )
    lines = (source_keys & LINE_MASK).astype(np.int64)
    word = source_keys & ~LINE_MASK
    begins = np.searchsorted(
        keys, word | np.maximum(lines - MAX_SHIFT_LINES, 0).astype(np.uint64), side="left"
    )
    ends = np.searchsorted(keys, word | (lines + MAX_SHIFT_LINES).astype(np.uint64), side="right")
    matches = ends - begins  # number of nearby target lines that contain each word
    pointers = np.repeat(begins - (np.cumsum(matches) - matches), matches) + np.arange(
        matches.sum()
    )
    here = np.repeat(lines, matches)
    offsets = (keys[pointers] & LINE_MASK).astype(np.int64) - here + MAX_SHIFT_LINES
    width = 2 * MAX_SHIFT_LINES + 1
    odds = np.bincount(
        here * width + offsets,
        np.repeat(SHARED_WORD_NATS / np.maximum(matches, 1), matches),
        n * width,
    )
    return np.minimum(odds, MAX_WORD_NATS).reshape(n, width)


def _words(texts: Sequence[str]) -> Hashes:
    """Combine each word's hash (40 bits) and line number (24 bits) into a key. Ignores short words without digits."""
    joined = "\n".join(text.replace("\n", " ") for text in texts).casefold()
    codes = np.frombuffer(f" {joined} ".encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _kinds()[np.minimum(codes, 0xFFFF)]
    inside = np.concatenate(([0], (kinds > 0).astype(np.int8)))
    edges = np.diff(inside)
    begins = np.flatnonzero(edges == 1)
    ends = np.flatnonzero(edges == -1)
    digits = np.concatenate(([0], np.cumsum(kinds == 2)))
    kept = (ends - begins >= MIN_WORD_CHARACTERS) | (digits[ends] > digits[begins])
    begins = begins[kept]
    ends = ends[kept]
    powers, inverses = _powers(len(codes) + 1)
    sums = np.concatenate(([np.uint64(0)], np.cumsum(codes.astype(np.uint64) * powers[:-1])))
    # Cumulative sums avoid a loop over words.
    hashes = (sums[ends] - sums[begins]) * inverses[begins]
    lines = np.cumsum(codes == 10)[begins].astype(np.uint64)
    return (hashes * np.uint64(0x9E3779B97F4A7C15)) & ~LINE_MASK | lines


@cache
def _kinds() -> NDArray[np.int8]:
    """A table from character codes to 2 (decimal digit), 1 (letter or other numeral) or 0 (other character)."""
    characters = map(chr, range(0x10000))
    return np.array([2 if c.isdecimal() else int(c.isalnum()) for c in characters], dtype=np.int8)


def _powers(count: int) -> tuple[Hashes, Hashes]:
    """The first `count` powers, modulo 2^64, of an odd number and of its inverse."""
    base = 0x5851F42D4C957F2D
    inverse = pow(base, -1, 1 << 64)
    rows = [np.full(count, each, dtype=np.uint64) for each in (base, inverse)]
    for row in rows:
        row[0] = 1
    return np.cumprod(rows[0]), np.cumprod(rows[1])


def _may_change(odds: Floats) -> bool:
    """Whether the evidence for a nonzero offset reaches SHIFT_COST_NATS in some range of lines."""
    gains = np.cumsum(odds - odds[:, MAX_SHIFT_LINES : MAX_SHIFT_LINES + 1], axis=0)
    lowest = np.minimum(np.minimum.accumulate(gains, axis=0), 0.0)
    return bool((gains - lowest >= SHIFT_COST_NATS).any())


def _likeliest_path(odds: Floats) -> Ints:
    """Find the likeliest offset of each line by the Viterbi algorithm. Returns a column index of `odds` per line."""
    n, width = odds.shape
    came = np.empty((n, width), dtype=bool)  # whether the best path changes its offset at this line
    best = np.empty(n, dtype=np.int64)  # the column before such a change
    # An offset at the first line costs as much as a change.
    value = np.full(width, -SHIFT_COST_NATS)
    value[MAX_SHIFT_LINES] = 0.0
    for line in range(n):
        best[line] = top = int(value.argmax())
        floor = value[top] - SHIFT_COST_NATS
        np.less(value, floor, out=came[line])
        np.maximum(value, floor, out=value)
        value += odds[line]
    # An offset at the last line needs evidence, too.
    value[np.arange(width) != MAX_SHIFT_LINES] -= SHIFT_COST_NATS / 2
    path = np.empty(n, dtype=np.int64)
    here = int(value.argmax())
    for line in range(n - 1, -1, -1):
        path[line] = here
        if came[line, here]:
            here = int(best[line])
    return path
