"""The names of all cleaning rules, and the checks for blank sides, line breaks and length ratios.

`preparation` finds repeated pairs, and a wing checks the other rules.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.config.commands import option
from transduce.system.errors import Hint, UserError
from transduce.text.pair_batch import PairBatch

Flags = NDArray[np.uint32]  # a bit of BITS for each broken rule

EMPTY, LINE_BREAK, ENCODING, RATIO = "empty", "line-break", "encoding", "ratio"
MOJIBAKE, CHARACTERS, COPIED, SWAPPED = "mojibake", "characters", "copied", "swapped"
SOURCE_LANGUAGE, TARGET_LANGUAGE = "source-language", "target-language"
MISALIGNED, UNRELATED, NUMBERS_DISAGREE = "misaligned", "unrelated", "numbers"
PLACEHOLDERS_DIFFER, IN_TEST_SET = "placeholders", "test"
BROKEN_OFF, JOINED, UNUSUAL_LENGTH = "broken-off", "joined", "length"
DUPLICATE, NEAR_DUPLICATE = "duplicate", "near-duplicate"
MEANINGS = {  # in order of precedence: a pair counts for the first rule that it breaks
    EMPTY: "a blank side",
    LINE_BREAK: "a line break inside a text",
    ENCODING: "text that is not UTF-8",  # only the doctor reads such texts
    RATIO: "a side that is too long for the other side (see data.max_ratio)",
    MOJIBAKE: "text that was read in the wrong encoding (Ã¤ for ä)",
    CHARACTERS: "signs of damage: U+FFFD, control characters or private-use characters",
    COPIED: "a target equal to its source",
    SWAPPED: "source and target swapped, each in the other's language",
    SOURCE_LANGUAGE: "a source that is not in the source language",
    TARGET_LANGUAGE: "a target that is not in the target language",
    MISALIGNED: "misalignment: the translation is on another line or missing",
    BROKEN_OFF: "a side that is too short and ends in the middle of a sentence",
    JOINED: "extra sentences on one side",
    UNUSUAL_LENGTH: "a length ratio far from that of other pairs",
    UNRELATED: "a target that has nothing to do with its source",
    NUMBERS_DISAGREE: "numbers that only the source has, and numbers that only the target has",
    PLACEHOLDERS_DIFFER: "placeholders, tags or addresses that differ between the sides",
    IN_TEST_SET: "a sentence that is in the test set",
    DUPLICATE: "a repetition of an earlier pair",
    NEAR_DUPLICATE: "a repetition of an earlier pair if case, punctuation and digits are ignored",
}
BITS = {rule: np.uint32(1 << place) for place, rule in enumerate(MEANINGS)}
# Rules that are always on, or have an option of their own.
ALWAYS = (
    EMPTY,
    LINE_BREAK,
    ENCODING,
    RATIO,
    DUPLICATE,
)
# Rules that mostly report good pairs of a clean corpus (docs/guides/doctor.md): the doctor's --fix keeps these pairs.
SUSPICIONS = (
    COPIED,
    UNUSUAL_LENGTH,
    UNRELATED,
    NUMBERS_DISAGREE,
    PLACEHOLDERS_DIFFER,
    NEAR_DUPLICATE,
)
# The rules that data.rules may name.
OTHERS = tuple(rule for rule in MEANINGS if rule not in ALWAYS)
ALL = "all"  # the value of data.rules that stands for all its rules
LANGUAGE_RULES = (SWAPPED, SOURCE_LANGUAGE, TARGET_LANGUAGE)

# Characters added to the limit: short pairs such as "Ja." and "Yes, I do." are good at any ratio.
RATIO_SLACK = 10


class Rules(NamedTuple):
    """The cleaning rules to apply. Pairs with a blank side or a line break are always left out.

    If the shorter side has n characters, the longer side may have up to `max_ratio` * n + 10. A `max_ratio` of 0 means
    no limit. If `deduplicate` is true, repeated pairs are left out. `others` names further rules from OTHERS.
    `languages` are the codes for LANGUAGE_RULES, and `test` names the files for IN_TEST_SET.
    """

    max_ratio: float
    deduplicate: bool
    others: tuple[str, ...] = ()
    languages: tuple[str, str] = ("", "")
    test: tuple[str, ...] = ()


class MoreRules(Protocol):
    """Checks the rules that data.rules may name, apart from those about repetitions."""

    def check(
        self, batch: PairBatch, broken: Flags, shifts: Sequence[tuple[int, int, int | None]] | None
    ) -> None:
        """Add the rules that each pair breaks to `broken`."""


class Checker:
    """Checks pairs against all rules except the rules about repetitions."""

    def __init__(self, rules: Rules, pairs: Sequence[Sequence[str]] = ()) -> None:
        """`pairs` contains the first source texts and the first target texts of a corpus.

        Raises UserError for an unknown rule, a missing package or a test set that can't be read.
        """
        check_names(rules.others)
        self.rules = rules
        self.asked = frozenset(rules.others)
        self._more: MoreRules | None = None
        if self.asked - {NEAR_DUPLICATE}:
            self._more = option("data.rules")(rules, pairs)

    def check(
        self, batch: PairBatch, shifts: Sequence[tuple[int, int, int | None]] | None = None
    ) -> Flags:
        """The BITS of the rules that each pair breaks. If `shifts` is None, `find_shifts` computes it."""
        broken = np.zeros(len(batch), dtype=np.uint32)
        lengths = [column.lengths for column in batch.columns]
        shorter = np.minimum(*lengths)
        longer = np.maximum(*lengths)
        broken[shorter == 0] |= BITS[EMPTY]
        for column in batch.columns:
            broken[column.with_line_breaks] |= BITS[LINE_BREAK]
        if self.rules.max_ratio > 0:
            broken[longer > self.rules.max_ratio * shorter + RATIO_SLACK] |= BITS[RATIO]
        if self._more:
            self._more.check(batch, broken, shifts)
        return broken


def check_names(names: Iterable[str], known: Sequence[str] = OTHERS) -> None:
    """Raise UserError for a name that is not in `known`."""
    for name in names:
        if name not in known:
            raise UserError(f"There is no rule {name} to choose.", Hint.choose(name, known))


def first_rule(flags: int) -> str:
    """The first rule of MEANINGS whose bit is set in `flags`."""
    return tuple(MEANINGS)[(flags & -flags).bit_length() - 1]
