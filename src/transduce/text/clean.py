"""Cleaning: leaves out the pairs that break a rule, and counts them with their lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from transduce.text.hashes import SeenHashes
from transduce.text.pair_batch import PairBatch
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import DUPLICATE, MEANINGS, NEAR_DUPLICATE, Checker, Rules, first_rule

TOO_LONG, CUT_OFF = "too-long", "cut-off"
OTHER_MEANINGS = {
    TOO_LONG: "more tokens than data.max_length",
    CUT_OFF: "a translation that was cut off at the length limit",
}
LINES_KEPT = 10_000  # per rule; the counts are exact beyond it
CHUNK = 10_000  # pairs that are checked together


@dataclass
class Cleaning:
    """What was left out: the number of pairs by rule, and the origins of the first 10,000 of each rule.

    A pair counts once, for the first rule that it breaks.
    """

    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[Origin]] = field(default_factory=dict)
    read: int = 0  # pairs

    @property
    def total(self) -> int:
        """Pairs left out, by all rules."""
        return self.counts.total()

    def count(self, rule: str, origin: Origin) -> None:
        """Count one pair that is left out."""
        self.add(rule, 1, [origin])

    def add(self, rule: str, number: int, origins: Sequence[Origin]) -> None:
        """Count several pairs that are left out; origins: of the first of them."""
        self.counts[rule] += number
        lines = self.lines.setdefault(rule, [])
        lines += origins[: LINES_KEPT - len(lines)]

    def sentences(self) -> list[str]:
        """One line for every rule that left something out, the most frequent first."""
        return [
            f"Left out {number:,} of {self.read:,} pairs for {(MEANINGS | OTHER_MEANINGS)[rule]}; "
            f"the first is {self.lines[rule][0].file}, line {self.lines[rule][0].line}."
            for rule, number in self.counts.most_common()
        ]


class CheckedChunk(NamedTuple):
    """Consecutive pairs, each with the first rule that it breaks by itself, if any."""

    pairs: list[Pair]
    batch: PairBatch
    broken: list[str | None]

    def leave_out_repeated(self, rule: str, seen: SeenHashes) -> None:
        """Apply a rule about repetitions to the pairs that break no rule yet."""
        rows = self.rows_kept()
        hashes = self.batch.exact_hashes(rows) if rule == DUPLICATE else self.batch.near_hashes(rows)
        for row, is_new in zip(rows, seen.add(hashes).tolist(), strict=True):
            if not is_new:
                self.broken[row] = rule

    def rows_kept(self) -> list[int]:
        """The pairs that break no rule."""
        return [row for row, rule in enumerate(self.broken) if rule is None]


def check_pairs(pairs: Iterable[Pair], rules: Rules, checker: Checker | None = None) -> Iterator[CheckedChunk]:
    """Check the pairs against all rules but those about repetitions.

    checker: for a part of a corpus, made from the beginning of the whole corpus.
    """
    stream = iter(pairs)
    while chunk := list(islice(stream, CHUNK)):
        batch = PairBatch([pair.source for pair in chunk], [pair.target for pair in chunk])
        checker = checker or Checker(rules, [column.texts for column in batch.columns])
        flags = checker.check(batch).tolist()
        yield CheckedChunk(chunk, batch, [first_rule(bits) if bits else None for bits in flags])


def clean(pairs: Iterable[Pair], rules: Rules, report: Cleaning) -> Iterator[Pair]:
    """The pairs that break no rule, unchanged and in order; the others are counted in `report`.

    Repetitions are found within one call, by hashes of 64 bits: at most 13 bytes of memory per pair.
    """
    seen = {DUPLICATE: SeenHashes(), NEAR_DUPLICATE: SeenHashes()}
    for chunk in check_pairs(pairs, rules):
        report.read += len(chunk.pairs)
        for rule in rules.about_repetitions:
            chunk.leave_out_repeated(rule, seen[rule])
        for pair, broken in zip(chunk.pairs, chunk.broken, strict=True):
            if broken:
                report.count(broken, pair.origin)
            else:
                yield pair
