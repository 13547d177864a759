"""Rules of cleaning: their names, and the check of those that every corpus is checked by.

Repetitions, which concern several pairs, are found by preparation. Rules that look into the texts are checked by
wings/rules.
"""

import difflib
from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.pair_batch import PairBatch

Flags = NDArray[np.uint32]  # rules as bits

MORE_RULES = "transduce.wings.rules.more_rules:MoreRules"  # checks the rules that data.rules may name

EMPTY, LINE_BREAK, ENCODING, RATIO = "empty", "line-break", "encoding", "ratio"
MOJIBAKE, CHARACTERS, COPIED, SWAPPED = "mojibake", "characters", "copied", "swapped"
SOURCE_LANGUAGE, TARGET_LANGUAGE = "source-language", "target-language"
MISALIGNED, NUMBERS_DISAGREE, PLACEHOLDERS_DIFFER, IN_TEST_SET = "misaligned", "numbers", "placeholders", "test"
BROKEN_OFF, JOINED, UNUSUAL_LENGTH = "broken-off", "joined", "length"
DUPLICATE, NEAR_DUPLICATE = "duplicate", "near-duplicate"
MEANINGS = {  # in the order in which they apply: a pair is left out by the first one that it breaks
    EMPTY: "a blank side",
    LINE_BREAK: "a line break inside a text",
    ENCODING: "bytes that are not UTF-8",  # which only the doctor reads
    RATIO: "one side too long for the other, see data.max_ratio",
    MOJIBAKE: "text that was read in the wrong encoding (Ã¤ for ä)",
    CHARACTERS: "characters that are a sign of damage: U+FFFD, control characters, private ones",
    COPIED: "a target equal to its source",
    SWAPPED: "source and target in each other's language",
    SOURCE_LANGUAGE: "a source in another language",
    TARGET_LANGUAGE: "a target in another language",
    MISALIGNED: "a line in a range whose translations stand on other lines",
    BROKEN_OFF: "a side that is too short and breaks off before its sentence ends",
    JOINED: "extra sentences on one side",
    UNUSUAL_LENGTH: "a length ratio very unlike that of other pairs",
    NUMBERS_DISAGREE: "numbers that contradict each other",
    PLACEHOLDERS_DIFFER: "placeholders, tags or addresses that differ between the sides",
    IN_TEST_SET: "a sentence that is in the test set",
    DUPLICATE: "the repetition of an earlier pair",
    NEAR_DUPLICATE: "the repetition of an earlier pair but for case, punctuation and digits",
}
BITS = {rule: np.uint32(1 << place) for place, rule in enumerate(MEANINGS)}
ALWAYS = (EMPTY, LINE_BREAK, ENCODING, RATIO, DUPLICATE)  # always on, or switched by an option of their own
OTHERS = tuple(rule for rule in MEANINGS if rule not in ALWAYS)  # those that data.rules may name
LANGUAGE_RULES = (SWAPPED, SOURCE_LANGUAGE, TARGET_LANGUAGE)

RATIO_SLACK = 10  # characters: "Ja." and "Yes, I do." are a good pair at any ratio


class Rules(NamedTuple):
    """Which rules apply, besides blank sides and line breaks, which no model can learn from.

    A pair breaks `max_ratio` (0: any ratio is good) if its longer side has more than `max_ratio` times the characters
    of the shorter one, and 10 more, without surrounding blanks. `deduplicate` keeps the first of pairs with equal
    texts. `others` are further rules, of OTHERS; rules about languages need the codes of both, and the rule about tests
    the files of a test set.
    """

    max_ratio: float
    deduplicate: bool
    others: tuple[str, ...] = ()
    languages: tuple[str, str] = ("", "")
    test: tuple[str, ...] = ()


class Checker:
    """Checks pairs against all rules but those about repetitions."""

    def __init__(self, rules: Rules, pairs: Sequence[Sequence[str]] = ()) -> None:
        """pairs: the first sources and targets of a corpus, which show what lengths are usual in it.

        Raises UserError for a test set that can't be read, or a missing package.
        """
        check_names(rules.others)
        self.rules = rules
        self.asked = frozenset(rules.others)
        self._more = resolve_name(MORE_RULES)(rules, pairs) if self.asked - {NEAR_DUPLICATE} else None

    def check(self, batch: PairBatch, shifts: Sequence[tuple[int, int, int | None]] | None = None) -> Flags:
        """The rules that each pair breaks by itself, as bits of BITS.

        shifts: the misaligned lines (see wings/rules/misalignment), if the caller has found them already.
        """
        broken = np.zeros(len(batch), dtype=np.uint32)
        lengths = [column.lengths for column in batch.columns]
        shorter, longer = np.minimum(*lengths), np.maximum(*lengths)
        broken[shorter == 0] |= BITS[EMPTY]
        for column in batch.columns:
            broken[column.with_line_breaks] |= BITS[LINE_BREAK]
        if self.rules.max_ratio > 0:
            broken[longer > self.rules.max_ratio * shorter + RATIO_SLACK] |= BITS[RATIO]
        if self._more:
            self._more.check(batch, broken, shifts)
        return broken


def check_names(names: Iterable[str], known: Sequence[str] = OTHERS) -> None:
    """Raise UserError for a name that isn't one of the rules to choose from."""
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}."
            raise UserError(f"{name} is no rule to choose; {hint}")


def first_rule(flags: int) -> str:
    """The first of the rules that are given as bits."""
    return tuple(MEANINGS)[(flags & -flags).bit_length() - 1]
