"""Tests of transduce/wings/rules/more_rules.py."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.system.errors import UserError
from transduce.text.pair_batch import PairBatch
from transduce.text.rules import (
    BITS,
    BROKEN_OFF,
    CHARACTERS,
    COPIED,
    EMPTY,
    IN_TEST_SET,
    LANGUAGE_RULES,
    LINE_BREAK,
    MEANINGS,
    MISALIGNED,
    MOJIBAKE,
    NUMBERS_DISAGREE,
    OTHERS,
    PLACEHOLDERS_DIFFER,
    RATIO,
    SOURCE_LANGUAGE,
    SWAPPED,
    TARGET_LANGUAGE,
    UNRELATED,
    UNUSUAL_LENGTH,
    Checker,
    Rules,
)
from transduce.wings.rules import more_rules
from transduce.wings.rules.lengths import Scale
from transduce.wings.rules.more_rules import LENGTH_RULES, MISREAD, MoreRules

WORDS = [
    *"„“…’€–",
    "Ähre",
    "Übel",
    "Öl",
    "über",
    "Spaß",
    "café",
    "à",
    "señor",
    "Œuvre",
    "naïve",
    " »",
    " ",
]


@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_mojibake_is_found_and_nothing_else(text):
    # Two signs after an accented letter may be a misread one.
    assume(not re.search("[à-ï][„“…’€–]{2}", text))
    assert not MISREAD.search(text)
    for wrong in ("cp1252", "latin-1"):
        misread = text.encode().decode(wrong, "replace")
        assert bool(MISREAD.search(misread)) or "\ufffd" in misread or text.isascii()


UNITS = ["1200 Å³", "10 Å²", "50 Å–60 Å", "1.5 Å±0.1 Å", "Ø±2 mm", "AMANHÃ—disse", "AMANHÃ — disse"]


@pytest.mark.parametrize(
    "text", ["LA MAÑ…", "ATÉ AMANHÃ…", "Der Umlaut „Ä“ ist neu.", "«Å» er et ord.", *UNITS]
)
def test_marks_after_a_capital_letter_are_not_mojibake(text):
    assert not MISREAD.search(text)
    assert MISREAD.search(text.encode().decode("cp1252", "replace") + " Ã…ngström")


def broken(
    rules: Sequence[str], pairs: Sequence[tuple[str, str]], samples: bool = False, **given: object
) -> list[set[str]]:
    """The rules that each of several pairs breaks, by one check."""
    sides = [source for source, _ in pairs], [target for _, target in pairs]
    checker = Checker(Rules(0, False, tuple(rules), **given), sides if samples else ())
    flags = checker.check(PairBatch(*sides))
    return [{rule for rule in MEANINGS if each & BITS[rule]} for each in flags.tolist()]


TEXTS = [
    ("Ãœber", "over", {MOJIBAKE}),
    ("over", "Ãœber", {MOJIBAKE}),
    ("a\ufffd", "b", {CHARACTERS}),
    ("a", "b\ue000", {CHARACTERS}),
    ("a\x02", "Ã¤", {CHARACTERS, MOJIBAKE}),
    ("a\U00020000", "b\U0001f600", set()),
    ("A dog", "a DOG!", {COPIED}),
    ("A dog", "A dog 2", {COPIED}),
    ("A dog", "A cat", set()),
    ("12", "12", set()),
    ("https://a.b/c", "https://a.b/c", set()),
    ("{name}", "{name}", set()),
    ("page 3 of 4", "Seite 4 von 3", set()),
    ("page 3 of 4", "Seite 3 von 5", {NUMBERS_DISAGREE}),
    ("page 3", "Seite", set()),
    ("page", "Seite 3", set()),
    ("see {a} and 1 x", "siehe {b} und 2 x", {PLACEHOLDERS_DIFFER, NUMBERS_DISAGREE}),
    ("see {a}", "siehe", {PLACEHOLDERS_DIFFER}),
    ("see", "siehe <b>", {PLACEHOLDERS_DIFFER}),
    ("see", "siehe {a}", {PLACEHOLDERS_DIFFER}),
    ("", "siehe {a} Ã¤", {EMPTY, MOJIBAKE}),
    (" ", "", {EMPTY}),
]
ALONE = (MOJIBAKE, CHARACTERS, COPIED, NUMBERS_DISAGREE, PLACEHOLDERS_DIFFER)


def test_rules_about_single_pairs_by_hand():
    pairs = [(source, target) for source, target, _ in TEXTS]
    assert broken(ALONE, pairs) == [rules for *_, rules in TEXTS]
    for rule in ALONE:  # each rule finds the same without the others
        expected = [rules & {rule, EMPTY} for *_, rules in TEXTS]
        assert broken([rule], pairs) == expected


@pytest.mark.parametrize("ratio", [0, 2])
def test_rules_that_are_always_on_are_counted_beside_the_others(ratio):
    pairs = ("a", "b" * 12), ("a", "b" * 13), ("b" * 13, "a"), ("a\nb", "a\nb"), ("x", "\n")
    rules = Rules(ratio, False, (COPIED,))
    flags = Checker(rules).check(PairBatch(*map(list, zip(*pairs, strict=True)))).tolist()
    long = {RATIO} if ratio else set()
    expected = [set(), long, long, {COPIED, LINE_BREAK}, {EMPTY, LINE_BREAK}]
    assert [{rule for rule in MEANINGS if each & BITS[rule]} for each in flags] == expected


def test_a_length_is_unusual_beyond_four_standard_deviations():
    """With 3 added to each length, 8 and 24 differ by 4 times the root of their mean."""
    checker = MoreRules(Rules(0, False, LENGTH_RULES), [])
    checker._scale = Scale(1.0, ratio=(0.0, 1.0), difference=(0.0, 1.0))
    pairs = [("a" * 5, "b" * 21), ("a" * 5, "b" * 22), ("a" * 21, "b" * 5), ("a" * 22, "b" * 5)]
    found = np.zeros(4, dtype=np.uint32)
    checker.check(PairBatch(*map(list, zip(*pairs, strict=True))), found, [])
    assert (found == BITS[UNUSUAL_LENGTH]).tolist() == [False, True, False, True]
    assert not found[::2].any()


def test_a_text_that_breaks_off_is_too_short_by_two_standard_deviations():
    """Of one with twice as many characters: with 3 added, 25 and 36 differ by 1.99, and 25 and 37 by 2.15."""
    checker = MoreRules(Rules(0, False, LENGTH_RULES), [])
    checker._scale = Scale(2.0, ratio=(0.0, 1.0), difference=(0.0, 1.0), breaking=1e-9)
    rows = [
        ("a" * 11, "b" * 32 + ".", set()),
        ("a" * 11, "b" * 33 + ".", {BROKEN_OFF}),
        ("a" * 10 + ".", "b" * 34, set()),
        ("a" * 16 + ".", "b" * 22, {BROKEN_OFF}),
        ("a" * 16 + ".", "b" * 23, set()),
        ("a" * 17, "b" * 21 + ".", set()),
    ]
    found = np.zeros(len(rows), dtype=np.uint32)
    checker.check(PairBatch([row[0] for row in rows], [row[1] for row in rows]), found, [])
    assert [{rule for rule in LENGTH_RULES if each & BITS[rule]} for each in found] == [
        row[2] for row in rows
    ]


def test_without_pairs_to_learn_from_no_length_is_unusual_and_no_pair_unrelated():
    pairs = [("a" * 90, "b"), ("x", "y")]
    assert broken([*LENGTH_RULES, UNRELATED], pairs) == [set(), set()]


@pytest.mark.parametrize("rules", [[UNRELATED], [UNRELATED, COPIED], [COPIED]])
def test_unrelated_pairs_are_searched_only_if_they_are_asked_for(rules, monkeypatch):
    learnt = []

    class Finder:
        def __init__(self, *sides):
            learnt.append(sides)

        def find(self, sources, targets):
            assert len(sources) == len(targets) == 3, "a blank side is not unrelated"
            return np.array([text.startswith("u") for text in sources])

    monkeypatch.setattr(more_rules, "Unrelated", Finder)
    pairs = [("a", "b"), ("u", "v"), ("u", ""), ("u x", "y")]
    expected = {UNRELATED} & set(rules)
    assert broken(rules, pairs, True) == [set(), expected, {EMPTY}, expected]
    assert learnt == [([source for source, _ in pairs], [target for _, target in pairs])] * len(
        expected
    )


def test_shifts_that_are_known_are_not_searched():
    batch = PairBatch(*[[f"a {line}" for line in range(20)]] * 2)
    for rules, expected in (([MISALIGNED], set(range(5, 20))), ([COPIED], set())):
        flags = Checker(Rules(0, False, tuple(rules))).check(batch, [(8, 19, 1)])
        assert {*np.flatnonzero(flags & BITS[MISALIGNED]).tolist()} == expected


GERMAN = "Der alte Mann geht jeden Morgen mit seinem Hund durch den Wald spazieren."
ENGLISH = "The old man goes for a walk in the forest with his dog every morning."
FRENCH = "Le vieil homme se promène chaque matin dans la forêt avec son chien."


def test_languages_by_hand():
    pairs = [
        (ENGLISH, GERMAN),
        (GERMAN, ENGLISH),
        (ENGLISH, FRENCH),
        (FRENCH, GERMAN),
        (FRENCH, ENGLISH),  # both wrong, and not swapped
        (GERMAN, GERMAN),  # a copy
        ("12:30 %s", GERMAN),
        ("Peter Schmidt", "Peter Schmidt, Köln"),  # names look like many languages
        ("", ENGLISH),
        (ENGLISH, f"{ENGLISH} \ufffd"),
        (ENGLISH, f"{ENGLISH} Ã¤"),
        ("。。。、、、", GERMAN),
        ("See {datei_wurde_nicht_gefunden} now", GERMAN),
    ]
    expected = [
        set(),
        {SWAPPED},
        {TARGET_LANGUAGE},
        {SOURCE_LANGUAGE},
        {SOURCE_LANGUAGE, TARGET_LANGUAGE},
        set(),
        set(),
        set(),
        {EMPTY},
        *[set()] * 4,
    ]
    assert broken(LANGUAGE_RULES, pairs, languages=("en", "de")) == expected
    for rule in LANGUAGE_RULES:
        assert broken([rule], pairs, languages=("en", "de")) == [
            rules & {rule, EMPTY} for rules in expected
        ]
    assert not any(rules - {EMPTY} for rules in broken(LANGUAGE_RULES, pairs, languages=("", "")))
    one = broken([TARGET_LANGUAGE], pairs, languages=("", "de"))
    assert [place for place, rules in enumerate(one) if TARGET_LANGUAGE in rules] == [1, 2, 4]
    assert not any(SWAPPED in r for r in broken([SWAPPED], pairs, languages=("de", "de-AT")))


def test_two_words_of_up_to_19_characters_may_be_a_name():
    """The first three are likelier English than German, by 12 to 15 nats; then by 28, 8.6 and 10.9 nats."""
    short = "wonderful beautiful", "highlights wonderful", "walk and talk"
    clear = "something wonderful", "we saw him", "big red dog"
    pairs = [(ENGLISH, text) for text in (*short, *clear)]
    found = broken([TARGET_LANGUAGE], pairs, languages=("en", "de"))
    assert [bool(rules) for rules in found] == [False, True, True, True, False, True]


def test_an_unknown_language_is_named_if_a_rule_needs_it():
    for rules, languages in (([SOURCE_LANGUAGE], ("xx", "de")), ([SWAPPED], ("en", "xx"))):
        with pytest.raises(UserError, match="py3langid can't identify the language 'xx'"):
            broken(rules, [(ENGLISH, GERMAN)], languages=languages)
    assert broken([TARGET_LANGUAGE], [(ENGLISH, FRENCH)], languages=("xx", "de")) == [
        {TARGET_LANGUAGE}
    ]
    assert broken([COPIED], [(ENGLISH, FRENCH)], languages=("xx", "yy")) == [set()]


def test_sentences_of_the_test_set_are_found_on_either_side(tmp_path):
    (tmp_path / "test.en").write_text("A dog runs.\nOne.\n")
    (tmp_path / "test.de").write_text("Ein Hund läuft.\nEins.\n")
    test = tuple(str(tmp_path / f"test.{code}") for code in ("en", "de"))
    pairs = [
        ("a DOG runs", "x"),
        ("x", "Eins!"),
        ("ein hund läuft", "a dog runs"),
        ("A dog", "Ein Hund"),
        ("", "One"),
    ]
    found = broken([IN_TEST_SET], pairs, test=test)
    assert found == [{IN_TEST_SET}, {IN_TEST_SET}, {IN_TEST_SET}, set(), {EMPTY}]
    (tmp_path / "test.fr").write_text("Un chien.\nUn.\n")
    three = (*test, str(tmp_path / "test.fr"))
    assert broken([IN_TEST_SET], [("x", "un chien")], test=three) == [{IN_TEST_SET}]
    (tmp_path / "test.jsonl").write_text('{"en": "A cat.", "de": "Eine Katze."}\n')
    own = {"test": (str(tmp_path / "test.jsonl"),), "languages": ("en", "de")}
    assert broken([IN_TEST_SET], [("x", "eine katze")], **own) == [{IN_TEST_SET}]
    with pytest.raises(UserError, match="needs a test set"):
        broken([IN_TEST_SET], pairs)


def test_a_misaligned_pair_breaks_no_rule_about_pairs(sentences):
    """Lines 200 to 299 have the targets of the lines behind them; one target lacks a number, another is cut."""
    sources, targets = map(list, zip(*sentences[:600], strict=True))
    targets[200:300] = [*targets[201:300], "another"]
    sources[50] += " 5"
    targets[50] += " 6"
    sources[250] += " 7"
    targets[250] += " 8"
    targets[400] = targets[400][:20]
    pairs = list(zip(sources, targets, strict=True))
    every = broken(
        [rule for rule in OTHERS if rule not in (*LANGUAGE_RULES, IN_TEST_SET)], pairs, True
    )
    moved = [row for row, rules in enumerate(every) if MISALIGNED in rules]
    assert {*range(210, 290)} <= {*moved} <= {*range(190, 310)}
    assert all(every[row] == {MISALIGNED} for row in moved)
    assert NUMBERS_DISAGREE in every[50] and {*LENGTH_RULES} & every[400]
    without = broken([NUMBERS_DISAGREE], pairs, True)
    assert [row for row, rules in enumerate(without) if rules] == [50, 250]
    only = broken([MISALIGNED], pairs, True)
    assert [row for row, rules in enumerate(only) if rules] == moved
