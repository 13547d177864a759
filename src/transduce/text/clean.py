"""Counts the pairs that each cleaning rule leaves out, and records the file and line of these pairs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from transduce.system.console import count
from transduce.text.pairs import Origin
from transduce.text.rules import MEANINGS

TOO_LONG, CUT_OFF = "too-long", "cut-off"
OTHER_MEANINGS = {
    TOO_LONG: "a text with more tokens than data.max_length",
    CUT_OFF: "a translation that was cut off at the length limit, or searched again because it repeated itself",
}
LINES_KEPT = 10_000  # origins recorded for each rule; further pairs are only counted
CHUNK = 10_000  # pairs checked together


@dataclass
class Cleaning:
    """The pairs that each rule left out. A pair counts only for the first rule that it breaks."""

    counts: Counter[str] = field(default_factory=Counter)  # left-out pairs, by rule
    # Origins of each rule's first LINES_KEPT pairs.
    lines: dict[str, list[Origin]] = field(default_factory=dict)
    read: int = 0  # all pairs that were read, including those left out

    def count(self, rule: str, origin: Origin) -> None:
        """Record one pair that `rule` left out."""
        self.add(rule, 1, [origin])

    def add(self, rule: str, number: int, origins: Sequence[Origin]) -> None:
        """Record `number` pairs that `rule` left out. At most LINES_KEPT origins are stored per rule."""
        self.counts[rule] += number
        lines = self.lines.setdefault(rule, [])
        lines += origins[: LINES_KEPT - len(lines)]

    def sentences(self) -> list[str]:
        """A sentence for each rule about the pairs that it left out. The rule with the most pairs comes first."""
        return [
            f"Left out {number:,} of {count(self.read, 'pair')} because of {(MEANINGS | OTHER_MEANINGS)[rule]}; "
            f"the first is {self.lines[rule][0].file}, line {self.lines[rule][0].line}."
            for rule, number in self.counts.most_common()
        ]
