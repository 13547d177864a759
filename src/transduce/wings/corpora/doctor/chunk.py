"""Checks and repairs the pairs of one chunk of a corpus, and counts characters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.text.encoding_errors import readable
from transduce.text.hashes import Bits64
from transduce.text.pair_batch import PairBatch
from transduce.text.rules import BITS, ENCODING, MISALIGNED, NEAR_DUPLICATE, Checker, Flags
from transduce.wings.corpora.doctor.windows import as_windows, is_plainly_windows, undecoded
from transduce.wings.rules.corpus_faults import Prevalence, prevalences
from transduce.wings.rules.misalignment import Shift, alignment, find_shifts

Ints = NDArray[np.int64]


class ChunkAudit(NamedTuple):
    """The findings about one chunk."""

    broken: Flags  # rules that each pair breaks as it stands
    remaining: (
        Flags  # rules that each pair still breaks when repaired, with its target from `partners`
    )
    partners: Ints  # the row of the target that belongs to each source
    # Hashes of the whole texts, and of the texts without case, punctuation and digits.
    hashes: tuple[Bits64, Bits64]
    characters: list[Ints]  # count of each code point in the sources and in the targets
    shifts: list[Shift]  # the misaligned stretches
    prevalences: list[Prevalence]  # frequencies of the faults of whole corpora


class ChunkAuditor(NamedTuple):
    """Audits chunks with the rules of `checker`."""

    checker: Checker
    # Each side's common characters, which reveal text in Windows-1252.
    common: tuple[frozenset[str], frozenset[str]]

    def audit(self, sources: Sequence[str], targets: Sequence[str]) -> ChunkAudit:
        """Check the pairs, and try to repair misaligned pairs and text that is not UTF-8."""
        checker = self.checker
        sides = PairBatch(sources, targets)
        faulty = np.union1d(*map(undecoded, sides.columns))
        lost = np.empty(0, dtype=np.int64)
        if len(faulty):
            sides, lost = _decoded(sides, faulty, self.common)
        shifts = (
            find_shifts(sides.source.texts, sides.target.texts)
            if MISALIGNED in checker.asked
            else []
        )
        broken = checker.check(sides, shifts)
        broken[lost] &= BITS[MISALIGNED]  # other rules can't be checked without the lost characters
        remaining = broken.copy()
        broken[faulty] |= BITS[ENCODING]
        remaining[lost] |= BITS[ENCODING]
        partners = np.arange(len(sides))
        best = sides
        if shifts:
            partners, best = _realigned(checker, sides, shifts, remaining, lost)
        rows = range(len(sides))
        return ChunkAudit(
            broken,
            remaining,
            partners,
            (
                best.exact_hashes(rows if checker.rules.deduplicate else ()),
                best.near_hashes(rows if NEAR_DUPLICATE in checker.asked else ()),
            ),
            [_character_counts(side.joined) for side in sides.columns],
            shifts,
            prevalences(sides.columns),
        )


def _decoded(
    sides: PairBatch, rows: Ints, common: Sequence[frozenset[str]]
) -> tuple[PairBatch, Ints]:
    """Decode the pairs in `rows` as Windows-1252. Returns all pairs, and the rows that are not Windows-1252."""
    texts = tuple(list(side.texts) for side in sides.columns)
    lost = list[int]()
    for row in rows.tolist():
        is_plain = all(
            is_plainly_windows(side[row], known) for side, known in zip(texts, common, strict=True)
        )
        for side in texts:
            side[row] = as_windows(side[row]) if is_plain else readable(side[row])
        if not is_plain:
            lost.append(row)
    return PairBatch(*texts), np.array(lost, dtype=np.int64)


def _realigned(
    checker: Checker, sides: PairBatch, shifts: Sequence[Shift], remaining: Flags, lost: Ints
) -> tuple[Ints, PairBatch]:
    """Realign misaligned pairs, and update `remaining`. Returns the row of each source's target, and the pairs."""
    partners = alignment(shifts, len(sides))
    partners[lost] = -1
    partners[np.isin(partners, lost)] = -1
    rows = np.flatnonzero((partners >= 0) & (partners != np.arange(len(sides))))
    texts = sides.target.texts
    sources = sides.source.texts
    moved = PairBatch(
        [sources[row] for row in rows.tolist()], [texts[row] for row in partners[rows].tolist()]
    )
    remaining[rows] = checker.check(moved, [])
    partners = np.where(partners < 0, np.arange(len(sides)), partners)
    return partners, PairBatch(sources, [texts[row] for row in partners.tolist()])


def _character_counts(text: str) -> Ints:
    return np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"))
