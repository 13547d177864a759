"""Checks the texts of many pairs against cleaning rules."""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholders import intact, mask
from transduce.system.errors import UserError
from transduce.text.hashes import Bits64
from transduce.text.identify import CODES, identifier
from transduce.text.languages import Direction, languages_of
from transduce.text.multilingual import BilingualCorpus, bilingual_corpora, is_multilingual
from transduce.text.pair_batch import PairBatch, TextColumn
from transduce.text.pairs import read_pairs
from transduce.text.rules import (
    BITS,
    BROKEN_OFF,
    CHARACTERS,
    COPIED,
    EMPTY,
    IN_TEST_SET,
    JOINED,
    LANGUAGE_RULES,
    MISALIGNED,
    MOJIBAKE,
    NUMBERS_DISAGREE,
    OTHERS,
    PLACEHOLDERS_DIFFER,
    SWAPPED,
    UNRELATED,
    UNUSUAL_LENGTH,
    Flags,
    Rules,
)
from transduce.wings.rules.lengths import MILD, OUTLIER, Scale, deviations, faults_at_ends, scale_of
from transduce.wings.rules.misalignment import alignment, find_shifts
from transduce.wings.rules.numbers import numbers_disagree
from transduce.wings.rules.unrelated import Unrelated

Ints = NDArray[np.int64]

LENGTH_RULES = (BROKEN_OFF, JOINED, UNUSUAL_LENGTH)
LANGUAGE_UNDECIDABLE = BITS[EMPTY] | BITS[MOJIBAKE] | BITS[CHARACTERS] | BITS[COPIED]
# A text is in a wrong language if another language is likelier by at least this log-probability.
WRONG_LANGUAGE_NATS = 10.0
# Maximum words and characters of a text that may be a name; names look like many languages.
SHORT_NAME = (
    2,
    19,
)
WRONG_NAME_NATS = 20.0  # the same as WRONG_LANGUAGE_NATS, for such a text

# UTF-8 decoded as Windows-1252 or Latin-1: a lead byte, then as many continuation bytes as it announces.
_REST = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_ENDS = "…’“”›»–—"  # these also follow a letter at the end of a word, as in MAÑ…
_LETTER = r"[^\W\d_]"
_UNIT = "Å[²³±–—·]"  # good in 5 Å³ and 10 Å–20 Å: misread only beside a letter
MISREAD = re.compile(
    rf"Â{_REST}|[ÃÄÅÎÏÐÑ]{_REST}(?<!{_UNIT}|Ã—)(?:(?<![{_ENDS}])|(?=\w))|{_UNIT}(?:(?<={_LETTER}..)|(?={_LETTER}))"
    rf"|Ã—(?<!{_LETTER}..)"  # a misread ×, but a dash in AMANHÃ—disse
    rf"|[Ô-Û]{_REST}[Ô-Û]{_REST}|â{_REST}{{2}}|[à-ï]{_REST}{{2}}[à-ï]{_REST}{{2}}|ð[\x9fŸ]{_REST}{{2}}|ï»¿|ï¿½"
    "|√[§∂ºüÑñúÖ†©®ß¥∫¶≤¨™´]|‚Ä[òôúùìî¶]"  # UTF-8 decoded as Mac OS Roman
)
# Above U+1FFFD.
_ASSIGNED = "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(2, 15))
DAMAGED_CHARACTER = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff\U0001fffe-\U0010ffff](?<![{_ASSIGNED}])"
)
MAY_BE_PLACEHOLDER = re.compile(r"[%{}<`*|@\]$]|://|www\.|&[#\w]")
DIGIT, LETTER = re.compile(r"\d"), re.compile(_LETTER)


def _placeholders_differ(source: str, target: str) -> bool:
    return not intact(source, target)


# Parts that a translation must keep: the rule, the characters that a text with such parts has, whether both sides need
# them (intersect1d) or one side (union1d), and the function that finds a difference.
KEPT_RULES: tuple[
    tuple[str, re.Pattern[str], Callable[..., Ints], Callable[[str, str], bool]], ...
] = (
    (NUMBERS_DISAGREE, DIGIT, np.intersect1d, numbers_disagree),
    (PLACEHOLDERS_DIFFER, MAY_BE_PLACEHOLDER, np.union1d, _placeholders_differ),
)


class MoreRules:
    """Checks all rules of `data.rules` except those about repetitions."""

    def __init__(self, rules: Rules, pairs: Sequence[Sequence[str]]) -> None:
        """Usual lengths and word translations are learnt from `pairs`, the first sources and targets of a corpus.

        Raises UserError if the test set, a package or a language is not available.
        """
        self._asked = frozenset(rules.others)
        self._scale = scale_of(*pairs) if pairs and self._asked.intersection(LENGTH_RULES) else None
        self._unrelated = Unrelated(*pairs) if pairs and UNRELATED in self._asked else None
        self._test = (
            _test_sentences(rules.test, rules.languages) if IN_TEST_SET in self._asked else None
        )
        self._labels = _labels(rules)

    def check(
        self, batch: PairBatch, broken: Flags, shifts: Sequence[tuple[int, int, int | None]] | None
    ) -> None:
        """Add the rules that each pair breaks to `broken`. If `shifts` is None, misaligned lines are detected."""
        found = broken.copy()  # includes rules that nobody asked for, if other rules depend on them
        whole = np.flatnonzero(found & BITS[EMPTY] == 0)
        self._check_characters(batch, whole, found)
        self._check_languages(batch, np.flatnonzero(found & LANGUAGE_UNDECIDABLE == 0), found)
        if MISALIGNED in self._asked:
            shifts = (
                find_shifts(*(side.texts for side in batch.columns)) if shifts is None else shifts
            )
            found[alignment(shifts, len(batch)) != np.arange(len(batch))] |= BITS[MISALIGNED]
        aligned = np.flatnonzero(found & (BITS[EMPTY] | BITS[MISALIGNED]) == 0)
        if self._scale:
            self._check_lengths(self._scale, batch, aligned, found)
        if self._unrelated:
            texts = ([column.texts[row] for row in aligned.tolist()] for column in batch.columns)
            found[aligned[self._unrelated.find(*texts)]] |= BITS[UNRELATED]
        for rule, pattern, sides, disagree in KEPT_RULES:
            if rule in self._asked:
                rows = sides(*(column.rows_with(pattern) for column in batch.columns))
                for row in np.intersect1d(rows, aligned):
                    if disagree(batch.source.texts[row], batch.target.texts[row]):
                        found[row] |= BITS[rule]
        if self._test is not None:
            for column in batch.columns:
                found[whole[np.isin(column.hashes[whole], self._test)]] |= BITS[IN_TEST_SET]
        broken |= found & sum((BITS[rule] for rule in self._asked), start=np.uint32(0))

    def _check_characters(self, batch: PairBatch, rows: Ints, found: Flags) -> None:
        """Check the rules about characters: those asked for, or all of them if languages are checked."""
        needed = OTHERS if any(self._labels) else self._asked
        for rule, pattern in ((MOJIBAKE, MISREAD), (CHARACTERS, DAMAGED_CHARACTER)):
            if rule in needed:
                for column in batch.columns:
                    found[column.rows_with(pattern)] |= BITS[rule]
        if COPIED in needed:
            sources, targets = (column.letters for column in batch.columns)
            # Texts that are empty, or only URLs and placeholders, may be equal.
            for row in rows.tolist():
                if sources[row] == targets[row] != "" and is_text(mask(batch.source.texts[row])):
                    found[row] |= BITS[COPIED]

    def _check_lengths(self, scale: Scale, batch: PairBatch, rows: Ints, found: Flags) -> None:
        unlike = deviations(batch.source.lengths[rows], batch.target.lengths[rows], scale)
        suspect = np.abs(unlike) > MILD
        for row, deviation in zip(rows[suspect].tolist(), unlike[suspect].tolist(), strict=True):
            columns = batch.columns if deviation > 0 else batch.columns[::-1]
            shorter, longer = (column.texts[row] for column in columns)
            at_ends = faults_at_ends(shorter, longer, deviation, scale)
            faults = (*at_ends, abs(deviation) > OUTLIER)
            for rule, is_broken in zip(LENGTH_RULES, faults, strict=True):
                if is_broken:
                    found[row] |= BITS[rule]

    def _check_languages(self, batch: PairBatch, rows: Ints, found: Flags) -> None:
        """Find texts in a wrong language, and pairs whose sides are swapped."""
        if not any(self._labels) or self._labels[0] == self._labels[1]:
            return
        wrong = []
        for column, label in zip(batch.columns, self._labels, strict=True):
            texts = [_words(column.texts[row]) for row in rows]
            has_words = np.array(
                [LETTER.search(text) is not None for text in texts], dtype=np.bool_
            )
            gaps = identifier().gaps(texts, label) * has_words if label else np.zeros(len(rows))
            is_name = [
                len(text) <= SHORT_NAME[1] and len(text.split()) <= SHORT_NAME[0] for text in texts
            ]
            wrong.append(gaps > np.where(is_name, WRONG_NAME_NATS, WRONG_LANGUAGE_NATS))
        swapped = wrong[0] & wrong[1]
        for place in np.flatnonzero(swapped):
            labels = identifier().likeliest(
                [_words(column.texts[rows[place]]) for column in batch.columns]
            )
            swapped[place] = labels == [self._labels[1], self._labels[0]]
        kinds = swapped, wrong[0] & ~swapped, wrong[1] & ~swapped
        for rule, is_broken in zip(LANGUAGE_RULES, kinds, strict=True):
            found[rows[is_broken]] |= BITS[rule]


def _words(text: str) -> str:
    """A text without its placeholders and codes."""
    return CODES.sub("", mask(text).rest if MAY_BE_PLACEHOLDER.search(text) else text)


def _labels(rules: Rules) -> tuple[str, str]:
    """py3langid's label for each side, or "" for a side that is not checked. Raises UserError for unknown languages."""
    labels = ["", ""]
    for side, (code, rule) in enumerate(zip(rules.languages, LANGUAGE_RULES[1:], strict=True)):
        # Each language rule needs both labels: a swapped pair breaks none of the other rules.
        if code and set(LANGUAGE_RULES) & set(rules.others):
            labels[side] = identifier().label(code)
            if not labels[side] and {SWAPPED, rule} & set(rules.others):
                raise UserError(
                    f"py3langid can't identify the language '{code}'.",
                    f"Correct the language code, or leave out the rules '{SWAPPED}' and '{rule}'.",
                )
    return labels[0], labels[1]


def _test_sentences(files: Sequence[str], languages: tuple[str, str]) -> Bits64:
    """Hash the sentences of the test set.

    A test sentence may be on either side of a pair, since a corpus may be multilingual.
    """
    if not files:
        raise UserError("The rule 'test' needs a test set.", "Name its files as data.test.")
    own = BilingualCorpus(tuple(files), Direction(*(languages_of(files) or languages)))
    corpora = bilingual_corpora(files) if is_multilingual(files) else [own]
    texts = list[str]()
    for each in corpora:
        for pair in read_pairs(each.files, each.languages):
            texts += [pair.source, pair.target]
    return TextColumn(texts).hashes
