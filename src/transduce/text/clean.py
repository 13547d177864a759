"""What cleaning leaves out: the pairs that break a rule, counted, with their lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from transduce.text.pairs import Origin
from transduce.text.rules import MEANINGS

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
