"""A corpus looked at once, from its beginning to its end: what is wrong with it, where, and what it is like.

Pairs pass in chunks through processes that look at them by themselves; what concerns several chunks (repetitions,
sums) is kept here. Memory: 16 bytes of hashes a pair, and what is counted.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.corpus.clean import CHUNK, Cleaning
from transduce.corpus.hashes import Hashes
from transduce.corpus.identify import identifier
from transduce.corpus.pairs import Origin, Pair
from transduce.corpus.rules import (
    BITS,
    DUPLICATE,
    LANGUAGE_RULES,
    MEANINGS,
    MISALIGNED,
    NEAR_DUPLICATE,
    Checker,
    Flags,
    Rules,
)
from transduce.corpus.shifts import Stretch
from transduce.corpus.sides import Sides
from transduce.errors import UserError

Ints = NDArray[np.int64]

EXAMPLES = 10  # kept of each rule
LONGEST = 5000  # characters; longer texts are counted as if they had as many
CHARACTERS = 0x110000
WAITING = 3  # chunks for each process, read ahead
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
    examples: dict[str, list[Pair]] = field(default_factory=dict)  # the first of each rule
    stretches: list[Misaligned] = field(default_factory=list)
    characters: Ints = field(default_factory=lambda: np.zeros((2, CHARACTERS), dtype=np.int64))  # by side and code
    lengths: Ints = field(default_factory=lambda: np.zeros((2, LONGEST + 1), dtype=np.int64))  # pairs, by side, length
    words: Ints = field(default_factory=lambda: np.zeros((2, LONGEST + 1), dtype=np.int64))  # the same
    stopped: str = ""  # why reading ended before the corpus did
    verdicts: bytearray = field(default_factory=bytearray)  # of each pair: the place of the first rule, from 1, or 0

    @property
    def pairs(self) -> int:
        """That were read."""
        return self.found.read


class _Looked(NamedTuple):
    """What a process tells of a chunk."""

    broken: Flags
    hashes: tuple[list[bytes], list[bytes]]  # exact, and near
    characters: list[Ints]  # counts by code, of each side
    lengths: list[Ints]  # characters of each text, of each side
    words: list[Ints]
    stretches: list[Stretch]


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
    texts = [pair.source for pair in first], [pair.target for pair in first]
    rules = rules._replace(languages=_languages(rules, texts))
    result = Examination(rules)
    seen = Hashes(), Hashes()
    if len(first) < CHUNK:
        processes = 1
    for chunk, looked in _look_at_all(chain([first], chunks), Checker(rules, texts), processes):
        _add(result, chunk, looked, seen)
    result.stopped = stopped[0] if stopped else ""
    return result


def _chunks(pairs: Iterable[Pair], stopped: list[str]) -> Iterator[list[Pair]]:
    """The pairs that can be read, and why there are no more."""
    chunk: list[Pair] = []
    try:
        for pair in pairs:
            chunk.append(pair)
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
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


_checker: Checker | None = None  # of a process that was started to look at chunks


def _start(checker: Checker) -> None:
    global _checker
    _checker = checker


def _look_here(sources: Sequence[str], targets: Sequence[str]) -> _Looked:
    assert _checker is not None
    return _look(_checker, sources, targets)


def _look_at_all(
    chunks: Iterable[list[Pair]], checker: Checker, processes: int
) -> Iterator[tuple[list[Pair], _Looked]]:
    """The chunks, in order, with what is seen; a few of them wait, so that no process does."""
    if processes < 2:
        for chunk in chunks:
            yield chunk, _look(checker, [pair.source for pair in chunk], [pair.target for pair in chunk])
        return
    # Forked processes share what the checker has read; elsewhere than on Linux libraries don't survive a fork.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    waiting: deque[tuple[list[Pair], Future[_Looked]]] = deque()
    with ProcessPoolExecutor(processes, context, _start, (checker,)) as pool:
        for chunk in chunks:
            texts = [pair.source for pair in chunk], [pair.target for pair in chunk]
            waiting.append((chunk, pool.submit(_look_here, *texts)))
            if len(waiting) > WAITING * processes:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def _look(checker: Checker, sources: Sequence[str], targets: Sequence[str]) -> _Looked:
    sides = Sides(sources, targets)
    broken = checker.check(sides)
    rows = range(len(sides))
    return _Looked(
        broken,
        (
            sides.exact_hashes(rows) if checker.rules.deduplicate else [],
            sides.near_hashes(rows) if NEAR_DUPLICATE in checker.asked else [],
        ),
        [_character_counts(side.joined) for side in sides.both],
        [_clipped(map(len, map(str.strip, side.texts))) for side in sides.both],
        [_clipped(text.count(" ") + 1 if text else 0 for text in side.texts) for side in sides.both],
        sides.stretches if MISALIGNED in checker.asked else [],
    )


def _clipped(lengths: Iterable[int]) -> Ints:
    return np.minimum(np.fromiter(lengths, dtype=np.int64), LONGEST)


def _character_counts(text: str) -> Ints:
    """By code."""
    return np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"))


def _add(result: Examination, chunk: list[Pair], looked: _Looked, seen: tuple[Hashes, Hashes]) -> None:
    """Count what is seen of the next chunk."""
    broken = looked.broken
    _find_repetitions(broken, looked, seen)
    for rule, bit in BITS.items():
        rows = np.flatnonzero(broken & bit)
        for row in rows:
            result.found.count(rule, chunk[row].origin)
        examples = result.examples.setdefault(rule, [])
        examples += [chunk[row] for row in rows[: EXAMPLES - len(examples)]]
    for side in range(2):
        result.characters[side, : len(looked.characters[side])] += looked.characters[side]
        for counts, values in ((result.lengths, looked.lengths), (result.words, looked.words)):
            counts[side] += np.bincount(values[side], minlength=LONGEST + 1)
    for first, last, offset in looked.stretches:
        _add_stretch(
            result.stretches,
            Misaligned(chunk[first].origin.file, chunk[first].origin.line, chunk[last].origin.line, offset),
        )
    lowest = broken & (~broken + np.uint32(1))
    result.verdicts += (np.log2(np.maximum(lowest, 1)).astype(np.uint8) + (broken > 0)).astype(np.uint8).tobytes()
    result.faulty += int(np.count_nonzero(broken))
    result.found.read += len(chunk)


def _find_repetitions(broken: Flags, looked: _Looked, seen: tuple[Hashes, Hashes]) -> None:
    """As `clean` does: among pairs without another fault, or a good one might leave for repeating a bad one."""
    good = broken == 0
    for rule, hashes, known in zip((DUPLICATE, NEAR_DUPLICATE), looked.hashes, seen, strict=True):
        if hashes:
            rows = np.flatnonzero(good)
            repeated = ~np.array(known.add([hashes[row] for row in rows]), dtype=bool)
            broken[rows[repeated]] |= BITS[rule]
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
