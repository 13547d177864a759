"""What can be wrong with a pair: rules that look at pairs by themselves, many at a time.

Repetitions, which concern several pairs, are found by `clean` and by `examine`; everything else is found here, for
both. What a rule means to a person stands in MEANINGS.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.hashes import Bits64
from transduce.text.identify import identifier
from transduce.text.lengths import MILD, OUTLIER, Scale, deviations, faults_at_ends, lengths_of, scale_of
from transduce.text.numbers import numbers_disagree
from transduce.text.pair_batch import PairBatch, TextColumn
from transduce.text.pairs import read_pairs
from transduce.text.placeholders import intact, is_text, mask

Flags = NDArray[np.uint32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EMPTY, LINE_BREAK, ENCODING, RATIO = "empty", "line-break", "encoding", "ratio"
MOJIBAKE, CHARACTERS, COPIED, SWAPPED = "mojibake", "characters", "copied", "swapped"
SOURCE_LANGUAGE, TARGET_LANGUAGE = "source-language", "target-language"
MISALIGNED, NUMBERS, PLACEHOLDERS, TEST = "misaligned", "numbers", "placeholders", "test"
BROKEN_OFF, JOINED, LENGTH = "broken-off", "joined", "length"
DUPLICATE, NEAR_DUPLICATE = "duplicate", "near-duplicate"
MEANINGS = {  # in the order in which they are asked: a pair is left out by the first one that it breaks
    EMPTY: "a blank side",
    LINE_BREAK: "a line break inside a text",
    ENCODING: "bytes that are not UTF-8",  # which only the doctor reads
    RATIO: "one side too long for the other, see data.max_ratio",
    MOJIBAKE: "text that was read in the wrong encoding (Ã¤ for ä)",
    CHARACTERS: "characters that stand for damage: U+FFFD, control characters, private ones",
    COPIED: "a target that is its source",
    SWAPPED: "the two languages on each other's side",
    SOURCE_LANGUAGE: "a source in another language",
    TARGET_LANGUAGE: "a target in another language",
    MISALIGNED: "a line in a stretch that has slipped against the other side",
    BROKEN_OFF: "a side that is too short and breaks off before its sentence ends",
    JOINED: "a side that is too long and has sentences that the other lacks",
    LENGTH: "a length that is very unlike those of other translations",
    NUMBERS: "numbers on one side that contradict those on the other",
    PLACEHOLDERS: "placeholders, tags or addresses that are not the same on both sides",
    TEST: "a sentence that is in the test set",
    DUPLICATE: "the repetition of an earlier pair",
    NEAR_DUPLICATE: "the repetition of an earlier pair but for case, punctuation and digits",
}
BITS = {rule: np.uint32(1 << place) for place, rule in enumerate(MEANINGS)}
ALWAYS = (EMPTY, LINE_BREAK, ENCODING, RATIO, DUPLICATE)  # looked for always, or as options of their own say
OTHERS = tuple(rule for rule in MEANINGS if rule not in ALWAYS)  # those that data.rules may name
LANGUAGE_RULES = (SWAPPED, SOURCE_LANGUAGE, TARGET_LANGUAGE)
LENGTH_RULES = (BROKEN_OFF, JOINED, LENGTH)
NOT_TO_BE_TOLD = BITS[EMPTY] | BITS[MOJIBAKE] | BITS[CHARACTERS] | BITS[COPIED]  # which language such a text is in

RATIO_SLACK = 10  # characters: "Ja." and "Yes, I do." are a good pair at any ratio
BEHIND = 6.0  # nats that the right language is behind another one when it is not the right one

# What UTF-8 looks like that was read as Windows-1252 or Latin-1: a first byte, then as many others as it announces.
_REST = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
MISREAD = re.compile(
    f"[ÂÃÄÅÎÏÐÑ]{_REST}|â{_REST}{{2}}|(?:[à-ï]{_REST}{{2}}){{2}}|ð[\x9fŸ]{_REST}{{2}}|ï»¿|ï¿½"
    "|√[§∂ºüÑñúÖ†©®ß¥∫¶≤¨™´]|‚Ä[òôúùìî¶]"  # as Mac OS Roman
)
DAMAGE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff]")
MAY_BE_PLACEHOLDER = re.compile(r"[%{}<`*|@\]]|://|www\.|&[#\w]")
DIGIT = re.compile(r"\d")


class Rules(NamedTuple):
    """What is left out besides blank sides and line breaks, which no model can learn from.

    A pair breaks `max_ratio` (0: any ratio is good) if its longer side has more than `max_ratio`
    times the characters of the shorter one, and 10 more, without surrounding blanks.
    `deduplicate` keeps the first of pairs that are equal to the character. `others` are further rules, of OTHERS;
    those about languages need the codes of both, the one about tests the files of a test set.
    """

    max_ratio: float
    deduplicate: bool
    others: tuple[str, ...] = ()
    languages: tuple[str, str] = ("", "")
    test: tuple[str, ...] = ()

    @property
    def about_repetitions(self) -> tuple[str, ...]:
        """The rules that compare pairs with earlier ones, in the order in which they apply."""
        exact = (DUPLICATE,) if self.deduplicate else ()
        return exact + ((NEAR_DUPLICATE,) if NEAR_DUPLICATE in self.others else ())


class Checker:
    """The rules, made ready: `check` says which of them pairs break."""

    def __init__(self, rules: Rules, pairs: Sequence[Sequence[str]] = ()) -> None:
        """pairs: the first (sources, targets) of a corpus, which tell what lengths are usual in it.

        Raises UserError for a test set that can't be read, or a missing package.
        """
        check_names(rules.others)
        self.rules = rules
        self.asked = frozenset(rules.others)
        self.scale = scale_of(*pairs) if pairs and self.asked.intersection(LENGTH_RULES) else None
        self.test = _test_sentences(rules.test, rules.languages) if TEST in self.asked else None
        self.labels = _labels(rules)

    def check(self, sides: PairBatch) -> Flags:
        """The rules, as bits of BITS, that each pair breaks by itself."""
        broken = np.zeros(len(sides), dtype=np.uint32)
        lengths = [lengths_of(side.texts) for side in sides.columns]
        shorter, longer = np.minimum(*lengths), np.maximum(*lengths)
        broken |= BITS[EMPTY] * (shorter == 0)
        for side in sides.columns:
            broken[side.with_line_breaks] |= BITS[LINE_BREAK]
        if self.rules.max_ratio > 0:
            broken |= BITS[RATIO] * (longer > self.rules.max_ratio * shorter + RATIO_SLACK)
        if self.asked:
            self._check_others(sides, lengths, broken)
        return broken

    def _check_others(self, sides: PairBatch, lengths: Sequence[Ints], broken: Flags) -> None:
        whole = np.flatnonzero(broken & BITS[EMPTY] == 0)
        for rule, pattern in ((MOJIBAKE, MISREAD), (CHARACTERS, DAMAGE)):
            if rule in self.asked:
                for side in sides.columns:
                    broken[side.rows_with(pattern)] |= BITS[rule]
        if COPIED in self.asked:
            sources, targets = (side.letters for side in sides.columns)
            copies = [
                row for row in whole.tolist() if sources[row] == targets[row] and _is_translatable(sides.source, row)
            ]
            broken[copies] |= BITS[COPIED]
        self._check_languages(sides, np.flatnonzero(broken & NOT_TO_BE_TOLD == 0), broken)
        if MISALIGNED in self.asked:
            broken[sides.partners != np.arange(len(sides))] |= BITS[MISALIGNED]
        beside = np.flatnonzero(broken & (BITS[EMPTY] | BITS[MISALIGNED]) == 0)  # what may be compared
        if self.scale:
            self._check_lengths(self.scale, sides, lengths, beside, broken)
        if NUMBERS in self.asked:
            rows = np.intersect1d(sides.source.rows_with(DIGIT), sides.target.rows_with(DIGIT))
            broken[_where(sides, np.intersect1d(rows, beside), numbers_disagree)] |= BITS[NUMBERS]
        if PLACEHOLDERS in self.asked:
            rows = np.union1d(*[side.rows_with(MAY_BE_PLACEHOLDER) for side in sides.columns])
            broken[_where(sides, np.intersect1d(rows, beside), _placeholders_differ)] |= BITS[PLACEHOLDERS]
        if self.test is not None:
            for side, known in zip(sides.columns, self.test, strict=True):
                broken[whole[np.isin(side.hashes[whole], known)]] |= BITS[TEST]

    def _check_lengths(
        self, scale: Scale, sides: PairBatch, lengths: Sequence[Ints], rows: Ints, broken: Flags
    ) -> None:
        unlike = deviations(lengths[0][rows], lengths[1][rows], scale)
        some = np.abs(unlike) > MILD
        for row, deviation in zip(rows[some].tolist(), unlike[some].tolist(), strict=True):
            shorter, longer = (side.texts[row] for side in (sides.columns if deviation > 0 else sides.columns[::-1]))
            found = *faults_at_ends(shorter, longer, abs(deviation), scale), abs(deviation) > OUTLIER
            for rule, is_broken in zip(LENGTH_RULES, found, strict=True):
                if is_broken and rule in self.asked:
                    broken[row] |= BITS[rule]

    def _check_languages(self, sides: PairBatch, rows: Ints, broken: Flags) -> None:
        """Both sides are looked at even where one is to be judged: two wrong ones may be swapped."""
        if not any(self.labels) or self.labels[0] == self.labels[1]:
            return
        behind = []
        for side, label in zip(sides.columns, self.labels, strict=True):
            texts = [side.texts[row] for row in rows]
            behind.append(identifier().behind(texts, label) if label else np.zeros(len(rows)))
        wrong = [each > BEHIND for each in behind]
        swapped = wrong[0] & wrong[1]
        for place in np.flatnonzero(swapped):
            found = identifier().likeliest([side.texts[rows[place]] for side in sides.columns])
            swapped[place] = found == [self.labels[1], self.labels[0]]
        for rule, which in zip(LANGUAGE_RULES, (swapped, wrong[0] & ~swapped, wrong[1] & ~swapped), strict=True):
            if rule in self.asked:
                broken[rows[which]] |= BITS[rule]


def check_names(names: Iterable[str], known: Sequence[str] = OTHERS) -> None:
    """Raise UserError for a rule that there is not, or that is no matter of choice."""
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}."
            raise UserError(f"{name} is no rule to choose; {hint}")


def first_rule(flags: int) -> str:
    """The first of the rules, given as bits, of which there is one."""
    return tuple(MEANINGS)[(flags & -flags).bit_length() - 1]


def _is_translatable(side: TextColumn, row: int) -> bool:
    """Whether there are letters beside what is an address or a placeholder, which may be copied."""
    return side.letters[row] != "" and is_text(mask(side.texts[row]))


def _where(sides: PairBatch, rows: Ints, disagree: Callable[[str, str], bool]) -> Ints:
    """Those of the rows whose texts disagree."""
    sources, targets = sides.source.texts, sides.target.texts
    return np.array([row for row in rows if disagree(sources[row], targets[row])], dtype=np.int64)


def _placeholders_differ(source: str, target: str) -> bool:
    return not intact(source, target, markup=False)


def _labels(rules: Rules) -> tuple[str, str]:
    """What the identifier calls the languages; "" for one that isn't asked for, or given."""
    labels = ["", ""]
    for side, (code, rule) in enumerate(zip(rules.languages, LANGUAGE_RULES[1:], strict=True)):
        if code and {SWAPPED, rule} & set(rules.others):
            labels[side] = identifier().label(code)
            if not labels[side]:
                raise UserError(
                    f"Whether a text is in the language '{code}' can't be told, as py3langid doesn't know it: give the "
                    f"codes of the languages with --from and --to, or leave out the rules {SWAPPED} and {rule}."
                )
    return labels[0], labels[1]


def _test_sentences(files: Sequence[str], languages: tuple[str, str]) -> tuple[Bits64, Bits64]:
    """The hashes of the sentences of both sides."""
    if not files:
        raise UserError("The rule test needs a test set: give its files with --test, or as data.test.")
    pairs = list(read_pairs(files, languages))
    return TextColumn([pair.source for pair in pairs]).hashes, TextColumn([pair.target for pair in pairs]).hashes
