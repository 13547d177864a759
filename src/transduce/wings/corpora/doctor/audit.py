"""Finds faults and misaligned lines in a corpus, and counts characters, in one pass.

Worker processes audit chunks of the corpus (`chunk.py`). This module merges their results and finds repeated pairs.
"""

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from multiprocessing import get_context
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.clean import CHUNK, Cleaning
from transduce.text.encoding_errors import readable
from transduce.text.hashes import SeenHashes
from transduce.text.identify import identifier
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import (
    BITS,
    DUPLICATE,
    LANGUAGE_RULES,
    MISALIGNED,
    NEAR_DUPLICATE,
    Checker,
    Rules,
)
from transduce.wings.corpora.doctor.chunk import ChunkAudit, ChunkAuditor, Ints
from transduce.wings.corpora.doctor.windows import common_characters
from transduce.wings.rules.corpus_faults import Prevalence

EXAMPLES_KEPT = 10  # per rule
CODE_POINTS = 0x110000
# A smaller remainder joins the last chunk: alone, it would be too short to reveal a shift.
MIN_CHUNK_PAIRS = 500
# Pairs at the border of two chunks: too few to show where a misaligned stretch begins or ends.
BORDER_PAIRS = 20
CHUNKS_AHEAD = 3  # chunks read ahead per worker
# A side has a language if more than this share of its first texts with letters are in it.
MIN_LANGUAGE_SHARE = 0.5
VERDICT = np.dtype([("rule", np.uint8), ("repaired", np.bool_), ("offset", np.int8)])


class Verdict(NamedTuple):
    """The decision to keep or remove a pair."""

    rule: int  # 0, or the position of the broken rule in MEANINGS, counted from 1
    repaired: bool  # kept after it was realigned or decoded as Windows-1252
    offset: int  # lines from the source down to its target (negative: up); 0 unless the pair was realigned


class Misaligned(NamedTuple):
    """A range of source lines whose translations are `offset` lines further down (None if they are not nearby)."""

    file: str
    first: int
    last: int
    offset: int | None

    def __str__(self) -> str:
        """A message that names the lines, the offset and the probable cause."""
        lines = f"{self.file}, lines {self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"{lines}: the translations are not on the same lines of the other side, nor near them."
        number = f"{abs(self.offset)} {'lines' if abs(self.offset) > 1 else 'line'}"
        way, long, short = (
            ("down", "target", "source") if self.offset > 0 else ("up", "source", "target")
        )
        return (
            f"{lines}: the translations are {number} further {way} (a shift by {self.offset:+}). Just before these "
            f"lines, the {long} has {number} too many or the {short} lacks {number}."
        )


class Finding(NamedTuple):
    """The pairs that break one rule."""

    rule: str
    number: int  # number of pairs
    lines: list[Origin]  # origins of the first 10,000 pairs
    examples: list[Pair]
    is_suspicion: bool  # kept by --fix, if the pair has no fault


@dataclass
class Audit:
    """The findings about a corpus."""

    rules: Rules
    # Rules whose breach is only a suspicion; the breach of another rule is a fault.
    suspicions: Collection[str] = ()
    # A pair is counted for every rule that it breaks.
    faults: Cleaning = field(default_factory=Cleaning)
    faulty: int = 0  # pairs with a fault
    suspicious: int = 0  # pairs that only break rules of `suspicions`
    repaired: int = 0  # faulty pairs without a fault after realignment and decoding as Windows-1252
    examples: dict[str, list[Pair]] = field(default_factory=dict)  # the first examples of each rule
    stretches: list[Misaligned] = field(default_factory=list)
    # Counts by side and code point.
    characters: Ints = field(default_factory=lambda: np.zeros((2, CODE_POINTS), dtype=np.int64))
    # (fault, side) -> its frequency, and the origin of an example.
    prevalences: dict[tuple[str, int], tuple[Prevalence, Origin]] = field(default_factory=dict)
    stopped: UserError | None = None  # why reading stopped before the end of the corpus
    chunk_verdicts: list[NDArray[Any]] = field(default_factory=list)  # arrays of VERDICT

    @property
    def pairs(self) -> int:
        """The number of pairs that were read."""
        return self.faults.read

    @property
    def verdicts(self) -> Iterator[Verdict]:
        """The verdict of every pair, in the order of the corpus."""
        return (Verdict(*row) for chunk in self.chunk_verdicts for row in chunk.tolist())

    def corpus_faults(self) -> list[tuple[Prevalence, Origin]]:
        """The faults of the whole corpus, with the origin of an example."""
        return [each for each in self.prevalences.values() if each[0].is_of_corpus]

    def findings(self) -> list[Finding]:
        """One finding for each broken rule: faults before suspicions, the most frequently broken rule first."""
        found = [
            Finding(
                rule,
                count,
                self.faults.lines[rule],
                self.examples[rule],
                rule in self.suspicions,
            )
            for rule, count in self.faults.counts.most_common()
        ]
        return sorted(found, key=attrgetter("is_suspicion"))


def audit(
    pairs: Iterable[Pair], rules: Rules, processes: int = 1, suspicions: Collection[str] = ()
) -> Audit:
    """Audit a corpus. A language that is missing in `rules` is identified from the first texts.

    A pair that only breaks rules of `suspicions` has no fault.

    If reading fails, the pairs read so far are audited, and `Audit.stopped` holds the reason. Raises UserError if no
    pair can be read, if the test set can't be read, or if a package is missing.
    """
    stopped: list[UserError] = []
    chunks = _chunks(pairs, stopped)
    first = next(chunks, None)
    if first is None:
        empty = UserError("The corpus is empty.", "Name a corpus with at least one pair.")
        raise stopped[0] if stopped else empty
    texts = [readable(pair.source) for pair in first], [readable(pair.target) for pair in first]
    rules = rules._replace(languages=_languages(rules, texts))
    result = Audit(rules, suspicions)
    seen = SeenHashes(), SeenHashes()
    if len(first) < CHUNK:
        processes = 1
    auditor = ChunkAuditor(
        Checker(rules, texts), (common_characters(texts[0]), common_characters(texts[1]))
    )
    audited = _audit_chunks(chain([first], chunks), auditor, processes)
    before = next(audited)
    for each in audited:
        _flag_border(before[1], each[1])
        _add(result, *before, seen)
        before = each
    _add(result, *before, seen)
    result.stopped = stopped[0] if stopped else None
    return result


def _chunks(pairs: Iterable[Pair], stopped: list[UserError]) -> Iterator[list[Pair]]:
    """Split the pairs into chunks. If reading fails, append the reason to `stopped`."""
    chunk: list[Pair] = []
    try:
        for pair in pairs:
            chunk.append(pair)
            if len(chunk) == CHUNK + MIN_CHUNK_PAIRS:
                yield chunk[:CHUNK]
                chunk = chunk[CHUNK:]
    except UserError as error:
        stopped.append(error)
    if chunk:
        yield chunk


def _languages(rules: Rules, texts: tuple[Sequence[str], Sequence[str]]) -> tuple[str, str]:
    """The languages in `rules`. A missing language is identified from `texts` ("" if this fails)."""
    if all(rules.languages) or not set(rules.others) & set(LANGUAGE_RULES):
        return rules.languages
    codes = []
    for code, side in zip(rules.languages, texts, strict=True):
        labels = identifier().likeliest([text for text in side if any(map(str.isalpha, text))])
        commonest = max(set(labels), key=labels.count, default="")
        is_clear = labels.count(commonest) > MIN_LANGUAGE_SHARE * len(labels)
        codes.append(code or (commonest if is_clear else ""))
    return codes[0], codes[1]


# The auditor of a worker process: a global because it can be large, and arguments are sent with every chunk.
_auditor: ChunkAuditor | None = None


def _start_worker(auditor: ChunkAuditor) -> None:
    global _auditor
    _auditor = auditor


def _audit_in_worker(sources: Sequence[str], targets: Sequence[str]) -> ChunkAudit:
    assert _auditor is not None
    return _auditor.audit(sources, targets)


def _audit_chunks(
    chunks: Iterable[list[Pair]], auditor: ChunkAuditor, processes: int
) -> Iterator[tuple[list[Pair], ChunkAudit]]:
    """Yield each chunk with its audit, in the order of the corpus."""
    if processes < 2:
        for chunk in chunks:
            yield (
                chunk,
                auditor.audit([pair.source for pair in chunk], [pair.target for pair in chunk]),
            )
        return
    # Forked workers share the checker's memory. On macOS, system libraries crash after a fork; Windows has no fork.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    waiting: deque[tuple[list[Pair], Future[ChunkAudit]]] = deque()
    with ProcessPoolExecutor(processes, context, _start_worker, (auditor,)) as pool:
        for chunk in chunks:
            texts = [pair.source for pair in chunk], [pair.target for pair in chunk]
            waiting.append((chunk, pool.submit(_audit_in_worker, *texts)))
            if len(waiting) > CHUNKS_AHEAD * processes:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def _flag_border(one: ChunkAudit, two: ChunkAudit) -> None:
    """Flag the pairs on the other side of the border, if a misaligned stretch reaches the border of two chunks."""
    ends = bool(one.shifts) and one.shifts[-1][1] >= len(one.broken) - BORDER_PAIRS
    begins = bool(two.shifts) and two.shifts[0][0] < BORDER_PAIRS
    if ends != begins:
        chunk, rows = (two, slice(BORDER_PAIRS)) if ends else (one, slice(-BORDER_PAIRS, None))
        chunk.broken[rows] |= BITS[MISALIGNED]
        chunk.remaining[rows] |= BITS[MISALIGNED]


def _add(
    result: Audit, chunk: list[Pair], chunk_audit: ChunkAudit, seen: tuple[SeenHashes, SeenHashes]
) -> None:
    """Add the audit of a chunk to that of the corpus."""
    faults = ~sum((BITS[rule] for rule in result.suspicions), start=np.uint32(0))
    _flag_repetitions(chunk_audit, seen, faults)
    broken = chunk_audit.broken
    for rule, bit in BITS.items():
        rows = np.flatnonzero(broken & bit)
        for row in rows:
            result.faults.count(rule, chunk[row].origin)
        examples = result.examples.setdefault(rule, [])
        for pair in (chunk[row] for row in rows[: EXAMPLES_KEPT - len(examples)]):
            examples.append(Pair(readable(pair.source), readable(pair.target), pair.origin))
    for side in range(2):
        result.characters[side, : len(chunk_audit.characters[side])] += chunk_audit.characters[side]
    _add_stretches(result.stretches, chunk, chunk_audit)
    for each in chunk_audit.prevalences:
        key = each.fault, each.side
        before, origin = result.prevalences.get(key, (each._replace(number=0, among=0), None))
        total = each._replace(number=before.number + each.number, among=before.among + each.among)
        example = origin if before.number and origin else chunk[each.first].origin
        result.prevalences[key] = total, example
    verdicts = _verdicts(chunk_audit, faults)
    result.chunk_verdicts.append(verdicts)
    result.faulty += int(np.count_nonzero(broken & faults))
    result.suspicious += int(np.count_nonzero((broken > 0) & (broken & faults == 0)))
    result.repaired += int(np.count_nonzero(verdicts["repaired"]))
    result.faults.read += len(chunk)


def _add_stretches(
    stretches: list[Misaligned], chunk: Sequence[Pair], chunk_audit: ChunkAudit
) -> None:
    """Add the misaligned stretches of a chunk. One that begins in the chunk before becomes longer."""
    for first, last, offset in chunk_audit.shifts:
        origins = [pair.origin for pair in chunk[first : last + 1]]
        for file, its in groupby(origins, key=attrgetter("file")):
            lines = [origin.line for origin in its]
            begin = lines[0]
            previous = stretches[-1] if stretches else None
            if previous and previous == (file, previous.first, begin - 1, offset):
                begin = stretches.pop().first
            stretches.append(Misaligned(file, begin, lines[-1], offset))


def _verdicts(chunk_audit: ChunkAudit, faults: np.uint32) -> NDArray[Any]:
    """The verdicts of a chunk. `faults` has the bits of the rules whose breach is a fault."""
    offsets = chunk_audit.partners - np.arange(len(chunk_audit.broken))
    # A realigned pair that is suspicious was probably not realigned correctly.
    broken = chunk_audit.broken & faults
    remaining = chunk_audit.remaining & np.where(offsets, ~np.uint32(0), faults)
    verdicts = np.zeros(len(broken), VERDICT)
    # Removed pairs are listed as they stand in the corpus, so their rule must be one that the original pair breaks.
    reasons = np.where(offsets, broken, remaining)
    for number, bit in reversed(list(enumerate(BITS.values(), 1))):
        verdicts["rule"][reasons & bit > 0] = number
    repaired = (broken > 0) & (remaining == 0)
    verdicts["rule"][repaired] = 0
    verdicts["repaired"] = repaired
    verdicts["offset"][repaired] = offsets[repaired]
    return verdicts


def _flag_repetitions(
    chunk_audit: ChunkAudit, seen: tuple[SeenHashes, SeenHashes], faults: np.uint32
) -> None:
    """Flag pairs that repeat an earlier pair. Pairs with a fault that can't be repaired are not compared."""
    broken = chunk_audit.broken
    remaining = chunk_audit.remaining
    # Repaired pairs are kept only if they break no rule.
    moved = chunk_audit.partners != np.arange(len(broken))
    good = np.where(moved, remaining, remaining & faults) == 0
    for rule, hashes, known in zip(
        (DUPLICATE, NEAR_DUPLICATE), chunk_audit.hashes, seen, strict=True
    ):
        if len(hashes):
            rows = np.flatnonzero(good)
            repeated = ~known.add(hashes[rows])
            broken[rows[repeated]] |= BITS[rule]
            remaining[rows[repeated]] |= BITS[rule]
            good[rows[repeated]] = False
