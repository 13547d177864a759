"""Which pairs are no use to train on: rules that count what they leave out, with the lines."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from transduce.corpus.hashes import Hashes, hash_text
from transduce.corpus.pairs import Origin, Pair

EMPTY, LINE_BREAK, RATIO, DUPLICATE = "empty", "line-break", "ratio", "duplicate"
TOO_LONG, CUT_OFF = "too-long", "cut-off"
MEANINGS = {
    EMPTY: "a blank side",
    LINE_BREAK: "a line break inside a text",
    RATIO: "one side too long for the other, see data.max_ratio",
    DUPLICATE: "the repetition of an earlier pair",
    TOO_LONG: "more tokens than data.max_length",
    CUT_OFF: "a translation that was cut off at the length limit",
}
RATIO_SLACK = 10  # characters: "Ja." and "Yes, I do." are a good pair at any ratio
LINES_KEPT = 10_000  # per rule; the counts are exact beyond it
CHUNK = 10_000  # pairs looked at together


class Rules(NamedTuple):
    """What is left out besides blank sides and line breaks, which no model can learn from.

    A pair breaks `max_ratio` (0: any ratio is good) if its longer side has more than `max_ratio`
    times the characters of the shorter one, and 10 more, without surrounding blanks.
    `deduplicate` keeps the first of pairs that are equal to the character.
    """

    max_ratio: float
    deduplicate: bool


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
            f"Left out {number:,} of {self.read:,} pairs for {MEANINGS.get(rule, rule)}; "
            f"the first is {self.lines[rule][0].file}, line {self.lines[rule][0].line}."
            for rule, number in self.counts.most_common()
        ]


def clean(pairs: Iterable[Pair], rules: Rules, report: Cleaning) -> Iterator[Pair]:
    """The pairs that break no rule, unchanged and in order; the others are counted in `report`.

    Repetitions are found within one call, by hashes of 64 bits: at most 20 bytes of memory per pair.
    """
    seen, stream = Hashes(), iter(pairs)
    while chunk := list(islice(stream, CHUNK)):
        report.read += len(chunk)
        broken = [_broken_rule(pair, rules.max_ratio) for pair in chunk]
        if rules.deduplicate:
            good = [place for place, rule in enumerate(broken) if rule is None]
            hashes = [hash_text(f"{chunk[place].source}\n{chunk[place].target}") for place in good]
            for place, is_new in zip(good, seen.add(hashes), strict=True):
                if not is_new:
                    broken[place] = DUPLICATE
        for pair, rule in zip(chunk, broken, strict=True):
            if rule:
                report.count(rule, pair.origin)
            else:
                yield pair


def _broken_rule(pair: Pair, max_ratio: float) -> str | None:
    """The first rule that the pair breaks by itself."""
    source, target = len(pair.source.strip()), len(pair.target.strip())
    if not source or not target:
        return EMPTY
    if "\n" in pair.source or "\n" in pair.target:
        return LINE_BREAK
    if max_ratio > 0 and max(source, target) > max_ratio * min(source, target) + RATIO_SLACK:
        return RATIO
    return None
