"""A corpus looked at once, from its beginning to its end: what is wrong with it, where, and what it is like.

Pairs pass in chunks through processes that look at them by themselves; what concerns several chunks (repetitions,
sums) is kept here. Memory: 16 bytes of hashes a pair, and what is counted.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from multiprocessing import get_context
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.clean import CHUNK, Cleaning
from transduce.text.encoding_errors import as_windows, common_characters, is_plainly_windows, readable
from transduce.text.hashes import Bits64, SeenHashes
from transduce.text.pair_batch import PairBatch, lengths_of
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import (
    BITS,
    DUPLICATE,
    ENCODING,
    LANGUAGE_RULES,
    MEANINGS,
    MISALIGNED,
    NEAR_DUPLICATE,
    Checker,
    Flags,
    Rules,
)
from transduce.wings.rules.identify import identifier
from transduce.wings.rules.misalignment import Shift, alignment, find_shifts

Ints = NDArray[np.int64]

EXAMPLES = 10  # kept of each rule
LONGEST = 5000  # characters; longer texts are counted as if they had as many
CHARACTERS = 0x110000
REST = 500  # pairs that are too few for a chunk of their own, in which stretches would not show
WAITING = 3  # chunks for each process, read ahead
MENDED = 128  # verdict of a pair that can be kept, with the target of its own line; of so many further down: + them
SURE = 0.5  # share of the first texts that a language must have to be that of its side


class Misaligned(NamedTuple):
    """Lines of a file whose translation stands `offset` lines further down on the other side; None: nowhere near."""

    file: str
    first: int
    last: int
    offset: int | None

    def __str__(self) -> str:
        """In words, with what it means."""
        lines = f"{self.file}, lines {self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"{lines}: what stands beside them are not their translations, nor is anything near."
        number = f"{abs(self.offset)} line{'s' * (abs(self.offset) > 1)}"
        way, long, short = ("down", "target", "source") if self.offset > 0 else ("up", "source", "target")
        return (
            f"{lines}: the translations stand {number} further {way}, a shift by {self.offset:+}. Just before them the "
            f"{long} has {number} too many, or the {short} lacks {number}."
        )


@dataclass
class Examination:
    """What was seen."""

    rules: Rules
    found: Cleaning = field(default_factory=Cleaning)  # a pair counts for every rule that it breaks
    faulty: int = 0  # pairs that break any
    mended: int = 0  # of these, pairs that break none when lines are realigned, and bytes read as Windows-1252
    examples: dict[str, list[Pair]] = field(default_factory=dict)  # the first of each rule
    stretches: list[Misaligned] = field(default_factory=list)
    characters: Ints = field(default_factory=lambda: np.zeros((2, CHARACTERS), dtype=np.int64))  # by side and code
    lengths: Ints = field(default_factory=lambda: np.zeros((2, LONGEST + 1), dtype=np.int64))  # pairs, by side, length
    words: Ints = field(default_factory=lambda: np.zeros((2, LONGEST + 1), dtype=np.int64))  # the same
    stopped: str = ""  # why reading ended before the corpus did
    verdicts: bytearray = field(default_factory=bytearray)  # of each pair: 0, the place of a rule, from 1, or MENDED

    @property
    def pairs(self) -> int:
        """That were read."""
        return self.found.read


class _Looked(NamedTuple):
    """What a process tells of a chunk."""

    broken: Flags  # as the pairs stand
    left: Flags  # when they are mended as well as they can be, with the targets of the `partners`
    partners: Ints
    hashes: tuple[Bits64, Bits64]  # exact, and near
    characters: list[Ints]  # counts by code, of each side
    lengths: list[Ints]  # characters of each text, of each side
    words: list[Ints]
    stretches: list[Shift]


def examine(pairs: Iterable[Pair], rules: Rules, processes: int = 1) -> Examination:
    """Look at a corpus; languages that the rules don't name are found out from its first pairs.

    Where the reader refuses to go on, what it gave until there is examined, and `stopped` says why.
    Raises UserError if it gave nothing, and for what a Checker refuses.
    """
    stopped: list[str] = []
    chunks = _chunks(pairs, stopped)
    first = next(chunks, None)
    if first is None:
        raise UserError(stopped[0] if stopped else "The corpus is empty: there is nothing to examine.")
    texts = [readable(pair.source) for pair in first], [readable(pair.target) for pair in first]
    rules = rules._replace(languages=_languages(rules, texts))
    result = Examination(rules)
    seen = SeenHashes(), SeenHashes()
    if len(first) < CHUNK:
        processes = 1
    common = common_characters(texts[0]), common_characters(texts[1])
    for chunk, looked in _look_at_all(chain([first], chunks), _Eye(Checker(rules, texts), common), processes):
        _add(result, chunk, looked, seen)
    result.stopped = stopped[0] if stopped else ""
    return result


def _chunks(pairs: Iterable[Pair], stopped: list[str]) -> Iterator[list[Pair]]:
    """The pairs that can be read, and why there are no more; a rest too short for stretches belongs to the last."""
    chunk: list[Pair] = []
    try:
        for pair in pairs:
            chunk.append(pair)
            if len(chunk) == CHUNK + REST:
                yield chunk[:CHUNK]
                chunk = chunk[CHUNK:]
    except UserError as error:
        stopped.append(str(error))
    if chunk:
        yield chunk


def _languages(rules: Rules, texts: tuple[Sequence[str], Sequence[str]]) -> tuple[str, str]:
    """The codes that are given, or of what most of the texts are in; "" where it can't be told."""
    if all(rules.languages) or not set(rules.others) & set(LANGUAGE_RULES):
        return rules.languages
    found = []
    for code, side in zip(rules.languages, texts, strict=True):
        labels = identifier().likeliest(side)
        most = max(set(labels), key=labels.count)
        found.append(code or (most if labels.count(most) > SURE * len(labels) else ""))
    return found[0], found[1]


class _Eye(NamedTuple):
    """What looks at chunks."""

    checker: Checker
    common: tuple[frozenset[str], frozenset[str]]  # characters of each side


_eye: _Eye | None = None  # of a process that was started to look at chunks


def _start(eye: _Eye) -> None:
    global _eye
    _eye = eye


def _look_here(sources: Sequence[str], targets: Sequence[str]) -> _Looked:
    assert _eye is not None
    return _look(_eye, sources, targets)


def _look_at_all(chunks: Iterable[list[Pair]], eye: _Eye, processes: int) -> Iterator[tuple[list[Pair], _Looked]]:
    """The chunks, in order, with what is seen; a few of them wait, so that no process does."""
    if processes < 2:
        for chunk in chunks:
            yield chunk, _look(eye, [pair.source for pair in chunk], [pair.target for pair in chunk])
        return
    # Forked processes share what the checker has read; elsewhere than on Linux libraries don't survive a fork.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    waiting: deque[tuple[list[Pair], Future[_Looked]]] = deque()
    with ProcessPoolExecutor(processes, context, _start, (eye,)) as pool:
        for chunk in chunks:
            texts = [pair.source for pair in chunk], [pair.target for pair in chunk]
            waiting.append((chunk, pool.submit(_look_here, *texts)))
            if len(waiting) > WAITING * processes:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def _look(eye: _Eye, sources: Sequence[str], targets: Sequence[str]) -> _Looked:
    checker, sides = eye.checker, PairBatch(sources, targets)
    undecoded, lost = np.union1d(*(side.undecoded for side in sides.columns)), np.empty(0, dtype=np.int64)
    if len(undecoded):
        sides, lost = _decoded(sides, undecoded, eye.common)
    shifts = find_shifts(sides.source.texts, sides.target.texts) if MISALIGNED in checker.asked else []
    broken = checker.check(sides, shifts)
    broken[lost] &= BITS[MISALIGNED]  # for what isn't there can't be compared
    left = broken.copy()
    broken[undecoded] |= BITS[ENCODING]
    left[lost] |= BITS[ENCODING]
    partners, best = np.arange(len(sides)), sides
    if shifts:
        partners, best = _realigned(checker, sides, shifts, left, lost)
    rows = range(len(sides))
    return _Looked(
        broken,
        left,
        partners,
        (
            best.exact_hashes(rows if checker.rules.deduplicate else ()),
            best.near_hashes(rows if NEAR_DUPLICATE in checker.asked else ()),
        ),
        [_character_counts(side.joined) for side in sides.columns],
        [np.minimum(lengths_of(side.texts), LONGEST) for side in sides.columns],
        [_clipped_words(side.texts) for side in sides.columns],
        shifts,
    )


def _decoded(sides: PairBatch, rows: Ints, common: Sequence[frozenset[str]]) -> tuple[PairBatch, Ints]:
    """The texts without lone surrogates, and the rows of which that could only be done by giving up characters."""
    texts, lost = tuple(list(side.texts) for side in sides.columns), list[int]()
    for row in rows.tolist():
        is_plain = all(is_plainly_windows(side[row], known) for side, known in zip(texts, common, strict=True))
        for side in texts:
            side[row] = as_windows(side[row]) if is_plain else readable(side[row])
        if not is_plain:
            lost.append(row)
    return PairBatch(*texts), np.array(lost, dtype=np.int64)


def _realigned(
    checker: Checker, sides: PairBatch, shifts: Sequence[Shift], left: Flags, lost: Ints
) -> tuple[Ints, PairBatch]:
    """The pairs with the targets that are theirs, as far as those are known; what is wrong with them goes to `left`."""
    partners = alignment(shifts, len(sides))
    partners[lost] = -1
    partners[np.isin(partners, lost)] = -1
    rows = np.flatnonzero((partners >= 0) & (partners != np.arange(len(sides))))
    texts = sides.target.texts
    moved = PairBatch(
        [sides.source.texts[row] for row in rows.tolist()], [texts[row] for row in partners[rows].tolist()]
    )
    left[rows] = checker.check(moved, [])
    partners = np.where(partners < 0, np.arange(len(sides)), partners)
    return partners, PairBatch(sides.source.texts, [texts[row] for row in partners.tolist()])


def _clipped_words(texts: Iterable[str]) -> Ints:
    return np.array([min(text.count(" ") + 1 if text else 0, LONGEST) for text in texts], dtype=np.int64)


def _character_counts(text: str) -> Ints:
    """By code."""
    return np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"))


def _add(result: Examination, chunk: list[Pair], looked: _Looked, seen: tuple[SeenHashes, SeenHashes]) -> None:
    """Count what is seen of the next chunk."""
    broken, left = looked.broken, looked.left
    _find_repetitions(broken, left, looked, seen)
    for rule, bit in BITS.items():
        rows = np.flatnonzero(broken & bit)
        for row in rows:
            result.found.count(rule, chunk[row].origin)
        examples = result.examples.setdefault(rule, [])
        for source, target, origin in (chunk[row] for row in rows[: EXAMPLES - len(examples)]):
            examples.append(Pair(readable(source), readable(target), origin))
    for side in range(2):
        result.characters[side, : len(looked.characters[side])] += looked.characters[side]
        for counts, values in ((result.lengths, looked.lengths), (result.words, looked.words)):
            counts[side] += np.bincount(values[side], minlength=LONGEST + 1)
    for first, last, offset in looked.stretches:
        for file, some in groupby((pair.origin for pair in chunk[first : last + 1]), key=attrgetter("file")):
            lines = [origin.line for origin in some]
            _add_stretch(result.stretches, Misaligned(file, lines[0], lines[-1], offset))
    offsets = looked.partners - np.arange(len(chunk))
    reasons = np.where(offsets, broken, left)  # for which a pair, that will be shown as it stands, leaves
    lowest = reasons & (~reasons + np.uint32(1))
    verdicts = np.log2(np.maximum(lowest, 1)).astype(np.int64) + (reasons > 0)
    mended = (broken > 0) & (left == 0)
    verdicts[mended] = MENDED + offsets[mended]
    result.verdicts += verdicts.astype(np.uint8).tobytes()
    result.faulty += int(np.count_nonzero(broken))
    result.mended += int(np.count_nonzero(mended))
    result.found.read += len(chunk)


def _find_repetitions(broken: Flags, left: Flags, looked: _Looked, seen: tuple[SeenHashes, SeenHashes]) -> None:
    """As `clean` does: among pairs without another fault, or a good one might leave for repeating a bad one."""
    good = left == 0
    for rule, hashes, known in zip((DUPLICATE, NEAR_DUPLICATE), looked.hashes, seen, strict=True):
        if len(hashes):
            rows = np.flatnonzero(good)
            repeated = ~known.add(hashes[rows])
            broken[rows[repeated]] |= BITS[rule]
            left[rows[repeated]] |= BITS[rule]
            good[rows[repeated]] = False


def _add_stretch(stretches: list[Misaligned], new: Misaligned) -> None:
    """One that goes on where the last chunk ended is the same one."""
    if stretches and stretches[-1] == (new.file, stretches[-1].first, new.first - 1, new.offset):
        new = new._replace(first=stretches.pop().first)
    stretches.append(new)


class Finding(NamedTuple):
    """What a rule has found."""

    rule: str
    meaning: str
    number: int  # of pairs
    lines: list[Origin]  # the first 10,000
    examples: list[Pair]


def findings(examination: Examination) -> list[Finding]:
    """Of every rule that was broken, the most frequent first."""
    found = examination.found
    return [
        Finding(rule, MEANINGS[rule], count, found.lines[rule], examination.examples[rule])
        for rule, count in found.counts.most_common()
    ]


def quantiles(counts: Ints, shares: Sequence[float]) -> list[int]:
    """The lengths that these shares of the texts don't exceed; counts: texts by length."""
    return [int(np.searchsorted(np.cumsum(counts), share * counts.sum())) for share in shares]
