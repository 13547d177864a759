"""Which pairs are no use to train on: what breaks a rule is left out and counted, with the lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import not_
from typing import Protocol

from transduce.text.hashes import Hashes
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import DUPLICATE, MEANINGS, NEAR_DUPLICATE, Checker, Rules, first_rule
from transduce.text.sides import Sides

TOO_LONG, CUT_OFF = "too-long", "cut-off"
OTHER_MEANINGS = {
    TOO_LONG: "more tokens than data.max_length",
    CUT_OFF: "a translation that was cut off at the length limit",
}
LINES_KEPT = 10_000  # per rule; the counts are exact beyond it
CHUNK = 10_000  # pairs looked at together


@dataclass
class Cleaning:
    """What was left out: how many pairs by each rule, and where the first 10,000 of each stand."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[Origin]] = field(default_factory=dict)
    read: int = 0  # pairs that `clean` has looked at; read - total are left, until others count more

    @property
    def total(self) -> int:
        """Pairs left out, by all rules: each is counted once, by the first rule it breaks."""
        return self.counts.total()

    def count(self, rule: str, origin: Origin) -> None:
        """Note that a pair is left out."""
        self.counts[rule] += 1
        lines = self.lines.setdefault(rule, [])
        if len(lines) < LINES_KEPT:
            lines.append(origin)

    def sentences(self) -> list[str]:
        """One line for every rule that left something out, the most frequent first."""
        return [
            f"Left out {number:,} of {self.read:,} pairs for {(MEANINGS | OTHER_MEANINGS)[rule]}; "
            f"the first is {self.lines[rule][0].file}, line {self.lines[rule][0].line}."
            for rule, number in self.counts.most_common()
        ]


class Seen(Protocol):
    """Hashes that were there before."""

    def add(self, hashes: Sequence[bytes]) -> list[bool]:
        """Whether each was not there."""
        ...


def clean(
    pairs: Iterable[Pair],
    rules: Rules,
    report: Cleaning,
    *,
    seen: Seen | None = None,
    nearly_seen: Seen | None = None,
    checker: Checker | None = None,
) -> Iterator[Pair]:
    """The pairs that break no rule, unchanged and in order; the others are counted in `report`.

    Repetitions are found within one call, by hashes of 64 bits: at most 13 bytes of memory per pair. seen, nearly_seen,
    checker: for a part of a corpus, what knows of the rest of it.
    """
    stream = iter(pairs)
    seen, nearly_seen = seen or Hashes(), nearly_seen or Hashes()
    while chunk := list(islice(stream, CHUNK)):
        report.read += len(chunk)
        sides = Sides([pair.source for pair in chunk], [pair.target for pair in chunk])
        checker = checker or Checker(rules, [side.texts for side in sides.both])
        broken = [first_rule(int(flags)) if flags else None for flags in checker.check(sides)]
        good = [place for place, rule in enumerate(broken) if rule is None]
        if rules.deduplicate:
            is_new = seen.add(sides.exact_hashes(good))
            for place in compress(good, map(not_, is_new)):
                broken[place] = DUPLICATE
            good = list(compress(good, is_new))
        if NEAR_DUPLICATE in rules.others:
            for place in compress(good, map(not_, nearly_seen.add(sides.near_hashes(good)))):
                broken[place] = NEAR_DUPLICATE
        for pair, rule in zip(chunk, broken, strict=True):
            if rule:
                report.count(rule, pair.origin)
            else:
                yield pair
