"""What can be wrong with a pair: rules that look at pairs by themselves, many at a time.

Repetitions, which concern several pairs, are found by `clean` and by `examine`; everything else is found here, for
both. What a rule means to a person stands in MEANINGS.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.corpus.hashes import Bits64, as_numbers, hash_text
from transduce.corpus.identify import identifier
from transduce.corpus.numbers import numbers_disagree
from transduce.corpus.pairs import read_pairs
from transduce.corpus.placeholders import intact, is_text, mask
from transduce.corpus.shifts import Stretch, find_stretches

Flags = NDArray[np.uint32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EMPTY, LINE_BREAK, RATIO = "empty", "line-break", "ratio"
MOJIBAKE, CHARACTERS, COPIED, SWAPPED = "mojibake", "characters", "copied", "swapped"
SOURCE_LANGUAGE, TARGET_LANGUAGE = "source-language", "target-language"
MISALIGNED, LENGTH, NUMBERS, PLACEHOLDERS, TEST = "misaligned", "length", "numbers", "placeholders", "test"
DUPLICATE, NEAR_DUPLICATE = "duplicate", "near-duplicate"
MEANINGS = {  # in the order in which they are asked: a pair is left out by the first one that it breaks
    EMPTY: "a blank side",
    LINE_BREAK: "a line break inside a text",
    RATIO: "one side too long for the other, see data.max_ratio",
    MOJIBAKE: "text that was read in the wrong encoding (Ã¤ for ä)",
    CHARACTERS: "characters that stand for damage: U+FFFD, control characters, private ones",
    COPIED: "a target that is its source",
    SWAPPED: "the two languages on each other's side",
    SOURCE_LANGUAGE: "a source in another language",
    TARGET_LANGUAGE: "a target in another language",
    MISALIGNED: "a stretch of lines that has slipped against the other side",
    LENGTH: "a length that is very unlike those of other translations",
    NUMBERS: "numbers on one side that contradict those on the other",
    PLACEHOLDERS: "placeholders, tags or addresses that are not the same on both sides",
    TEST: "a sentence that is in the test set",
    DUPLICATE: "the repetition of an earlier pair",
    NEAR_DUPLICATE: "the repetition of an earlier pair but for case, punctuation and digits",
}
BITS = {rule: np.uint32(1 << place) for place, rule in enumerate(MEANINGS)}
OTHERS = (*list(MEANINGS)[3:14], NEAR_DUPLICATE)  # those that data.rules may name
LANGUAGE_RULES = (SWAPPED, SOURCE_LANGUAGE, TARGET_LANGUAGE)
NOT_TO_BE_TOLD = BITS[EMPTY] | BITS[MOJIBAKE] | BITS[CHARACTERS] | BITS[COPIED]  # which language such a text is in

RATIO_SLACK = 10  # characters: "Ja." and "Yes, I do." are a good pair at any ratio
SMOOTH = 6  # characters added to lengths before they are compared
OUTLIER = 4.3  # standard deviations, on either of two scales, at which a length is very unlike the others
NARROWEST = 0.05  # standard deviation: some texts are translated word for word
FEWEST = 200  # pairs that tell how lengths are distributed
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


class Scale(NamedTuple):
    """How lengths of translations are distributed: the middle and the width of two measures of how unlike they are."""

    growth: float  # characters of the target for one of the source
    ratio: tuple[float, float]  # of the logarithm of the ratio: it finds what is too short
    difference: tuple[float, float]  # of the difference by the root of the length: it finds what is too long


class Checker:
    """The rules, made ready: `check` says which of them pairs break."""

    def __init__(self, rules: Rules, pairs: Sequence[Sequence[str]] = ()) -> None:
        """pairs: the first (sources, targets) of a corpus, which tell what lengths are usual in it.

        Raises UserError for a test set that can't be read, or a missing package.
        """
        self.rules = rules
        self.asked = frozenset(rules.others)
        self.scale = _scale(*map(_lengths, pairs)) if pairs and LENGTH in self.asked else None
        self.test = _test_sentences(rules.test, rules.languages) if TEST in self.asked and rules.test else None
        self.labels = ("", "")
        if self.asked & set(LANGUAGE_RULES):
            source, target = map(identifier().label, rules.languages)
            self.labels = source, target

    def check(self, sides: "Sides") -> Flags:
        """The rules, as bits of BITS, that each pair breaks by itself."""
        broken = np.zeros(len(sides), dtype=np.uint32)
        lengths = [_lengths(side.texts) for side in sides.both]
        shorter, longer = np.minimum(*lengths), np.maximum(*lengths)
        broken |= BITS[EMPTY] * (shorter == 0)
        for side in sides.both:
            broken[side.with_line_breaks] |= BITS[LINE_BREAK]
        if self.rules.max_ratio > 0:
            broken |= BITS[RATIO] * (longer > self.rules.max_ratio * shorter + RATIO_SLACK)
        if self.asked:
            self._check_others(sides, lengths, broken)
        return broken

    def _check_others(self, sides: "Sides", lengths: Sequence[Ints], broken: Flags) -> None:
        whole = np.flatnonzero(broken & BITS[EMPTY] == 0)
        for rule, pattern in ((MOJIBAKE, MISREAD), (CHARACTERS, DAMAGE)):
            if rule in self.asked:
                for side in sides.both:
                    broken[side.rows_with(pattern)] |= BITS[rule]
        if COPIED in self.asked:
            sources, targets = (side.letters for side in sides.both)
            copies = [
                row for row in whole.tolist() if sources[row] == targets[row] and _is_translatable(sides.source, row)
            ]
            broken[copies] |= BITS[COPIED]
        self._check_languages(sides, np.flatnonzero(broken & NOT_TO_BE_TOLD == 0), broken)
        if MISALIGNED in self.asked:
            for first, last, _ in sides.stretches:
                broken[first : last + 1] |= BITS[MISALIGNED]
        if LENGTH in self.asked and self.scale:
            broken[whole[_is_outlier(lengths[0][whole], lengths[1][whole], self.scale)]] |= BITS[LENGTH]
        if NUMBERS in self.asked:
            rows = np.intersect1d(sides.source.rows_with(DIGIT), sides.target.rows_with(DIGIT))
            broken[_where(sides, rows, numbers_disagree)] |= BITS[NUMBERS]
        if PLACEHOLDERS in self.asked:
            rows = np.union1d(*[side.rows_with(MAY_BE_PLACEHOLDER) for side in sides.both])
            broken[_where(sides, np.intersect1d(rows, whole), _placeholders_differ)] |= BITS[PLACEHOLDERS]
        if self.test is not None:
            for side, known in zip(sides.both, self.test, strict=True):
                broken[whole[np.isin(side.hashes[whole], known)]] |= BITS[TEST]

    def _check_languages(self, sides: "Sides", rows: Ints, broken: Flags) -> None:
        """Both sides are looked at even where one is to be judged: two wrong ones may be swapped."""
        if not any(self.labels) or self.labels[0] == self.labels[1]:
            return
        behind = []
        for side, label in zip(sides.both, self.labels, strict=True):
            texts = [side.texts[row] for row in rows]
            behind.append(identifier().behind(texts, label) if label else np.zeros(len(rows)))
        wrong = [each > BEHIND for each in behind]
        swapped = wrong[0] & wrong[1]
        for place in np.flatnonzero(swapped):
            found = identifier().likeliest([side.texts[rows[place]] for side in sides.both])
            swapped[place] = found == [self.labels[1], self.labels[0]]
        for rule, which in zip(LANGUAGE_RULES, (swapped, wrong[0] & ~swapped, wrong[1] & ~swapped), strict=True):
            if rule in self.asked:
                broken[rows[which]] |= BITS[rule]


def first_rule(flags: int) -> str:
    """The first of the rules, given as bits, of which there is one."""
    return tuple(MEANINGS)[(flags & -flags).bit_length() - 1]


class Side:
    """One side of some pairs, as one long text, so that a pattern is looked for once and not in every line."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @cached_property
    def joined(self) -> str:
        """The texts, a line feed after each."""
        return "\n".join([*self.texts, ""])

    @cached_property
    def begins(self) -> Ints:
        """Where each text begins in `joined`."""
        lengths = np.fromiter(map(len, self.texts), dtype=np.int64, count=len(self.texts)) + 1
        return np.cumsum(lengths) - lengths

    @cached_property
    def with_line_breaks(self) -> Ints:
        """The texts that are more than a line."""
        if self.joined.count("\n") == len(self.texts):
            return np.empty(0, dtype=np.int64)
        return np.array([row for row, text in enumerate(self.texts) if "\n" in text])

    def rows_with(self, pattern: re.Pattern[str]) -> Ints:
        """The texts in which a pattern, that crosses no line feed, is found."""
        found = np.fromiter((match.start() for match in pattern.finditer(self.joined)), dtype=np.int64)
        return np.unique(np.searchsorted(self.begins, found, side="right") - 1)

    @cached_property
    def letters(self) -> list[str]:
        """The texts without case, punctuation, blanks and digits: what repeats, nearly."""
        return self._reduced("PSZCN")

    @cached_property
    def hashes(self) -> Bits64:
        """Of the texts without case, punctuation and blanks; texts that have nothing else keep it."""
        plain = self._reduced("PSZC")
        return as_numbers([hash_text(short or text) for short, text in zip(plain, self.texts, strict=True)])

    def _reduced(self, categories: str) -> list[str]:
        texts = self.joined.casefold()
        if len(self.with_line_breaks):
            texts = "\n".join([*(text.replace("\n", " ") for text in self.texts), ""]).casefold()
        return _characters(categories).sub("", texts).split("\n")[:-1]


@cache
def _characters(categories: str) -> re.Pattern[str]:
    """Characters of these Unicode categories, but for the line feed; of planes beyond the first, which has nearly all,
    none."""
    wanted = [code != 10 and unicodedata.category(chr(code))[0] in categories for code in range(0x10000)]
    ranges = []
    for is_wanted, codes in groupby(range(0x10000), key=wanted.__getitem__):
        if is_wanted:
            first, *rest = codes
            ranges.append(f"\\u{first:04x}-\\u{rest[-1] if rest else first:04x}")
    return re.compile(f"[{''.join(ranges)}]+")


def _lengths(texts: Sequence[str]) -> Ints:
    """Characters, without surrounding blanks."""
    return np.fromiter(map(len, map(str.strip, texts)), dtype=np.int64, count=len(texts))


def _is_translatable(side: Side, row: int) -> bool:
    """Whether there are letters beside what is an address or a placeholder, which may be copied."""
    return side.letters[row] != "" and is_text(mask(side.texts[row]))


class Sides:
    """Some pairs, in the order in which they stand."""

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        self.source, self.target = Side(sources), Side(targets)
        self.both = self.source, self.target

    def __len__(self) -> int:
        return len(self.source.texts)

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Where they have slipped."""
        return find_stretches(self.source.texts, self.target.texts)

    def exact_hashes(self, rows: Iterable[int]) -> list[bytes]:
        """Of pairs, to the character."""
        sources, targets = self.source.texts, self.target.texts
        return [hash_text(f"{sources[row]}\n{targets[row]}") for row in rows]

    def near_hashes(self, rows: Iterable[int]) -> list[bytes]:
        """Of the letters of pairs; of pairs that have none on a side, to the character."""
        (sources, targets), texts = (side.letters for side in self.both), [side.texts for side in self.both]
        return [
            hash_text(f"{sources[row]}\n{targets[row]}")
            if sources[row] and targets[row]
            else hash_text(f"{texts[0][row]}\n{texts[1][row]}")
            for row in rows
        ]


def _where(sides: Sides, rows: Ints, disagree: Callable[[str, str], bool]) -> Ints:
    """Those of the rows whose texts disagree."""
    sources, targets = sides.source.texts, sides.target.texts
    return np.array([row for row in rows if disagree(sources[row], targets[row])], dtype=np.int64)


def _placeholders_differ(source: str, target: str) -> bool:
    return not intact(source, target, markup=False)


def _measures(sources: Ints, targets: Ints, growth: float) -> tuple[Floats, Floats]:
    """The logarithm of the ratio, and the difference by the root of the length (Gale and Church, 1993)."""
    a, b = sources * growth + SMOOTH, targets + SMOOTH
    return np.log(b / a), (b - a) / np.sqrt((a + b) / 2)


def _scale(sources: Ints, targets: Ints) -> Scale | None:
    """None where there are too few pairs; medians, so that what is wrong with a few doesn't matter."""
    whole = np.minimum(sources, targets) > 0
    if np.count_nonzero(whole) < FEWEST:
        return None
    growth = float(np.exp(np.median(np.log(targets[whole] / sources[whole]))))
    ratio, difference = (_middle_and_width(each) for each in _measures(sources[whole], targets[whole], growth))
    return Scale(growth, ratio, difference)


def _middle_and_width(measure: Floats) -> tuple[float, float]:
    """From medians, once of all and once without the outliers: a tenth of them would widen what is usual by a sixth."""
    middle = width = 0.0
    for _ in range(2):
        middle = float(np.median(measure))
        width = max(1.4826 * float(np.median(np.abs(measure - middle))), NARROWEST)
        measure = measure[np.abs(measure - middle) < OUTLIER * width]
    return middle, width


def _is_outlier(sources: Ints, targets: Ints, scale: Scale) -> NDArray[np.bool_]:
    found = np.zeros(len(sources), dtype=bool)
    for measure, (middle, width) in zip(_measures(sources, targets, scale.growth), scale[1:], strict=True):
        found |= np.abs(measure - middle) > OUTLIER * width
    return found


def _test_sentences(files: Sequence[str], languages: tuple[str, str]) -> tuple[Bits64, Bits64]:
    """The hashes of the sentences of both sides."""
    pairs = list(read_pairs(files, languages))
    return Side([pair.source for pair in pairs]).hashes, Side([pair.target for pair in pairs]).hashes
