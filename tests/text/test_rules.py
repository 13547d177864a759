"""Tests of transduce/text/rules.py."""

import pytest

from corpora import clean
from text_files import number
from transduce.system.errors import UserError
from transduce.text.clean import Cleaning
from transduce.text.pairs import Origin
from transduce.text.rules import (
    ALWAYS,
    BITS,
    COPIED,
    DUPLICATE,
    EMPTY,
    ENCODING,
    LINE_BREAK,
    MEANINGS,
    MOJIBAKE,
    NEAR_DUPLICATE,
    NUMBERS_DISAGREE,
    OTHERS,
    PLACEHOLDERS_DIFFER,
    RATIO,
    SUSPICIONS,
    UNRELATED,
    UNUSUAL_LENGTH,
    Rules,
    check_names,
    first_rule,
)


def test_rules_by_hand():
    texts = [
        ("a", "b"),
        (" ", "b"),
        ("a", "\u3000"),
        ("a", "b"),
        ("A", "b"),
        ("x\ny", "z"),
        ("a", "b" * 13),
        ("a", "b" * 14),
    ]
    report = Cleaning()
    kept = clean(number(texts), Rules(max_ratio=3, deduplicate=True), report)
    assert [pair.origin.line for pair in kept] == [1, 5, 7]
    found = {rule: [origin.line for origin in lines] for rule, lines in report.lines.items()}
    assert found == {"empty": [2, 3], "duplicate": [4], "line-break": [6], "ratio": [8]}
    assert len(clean(number(texts), Rules(max_ratio=0, deduplicate=False), Cleaning())) == 5


def test_only_equal_pairs_are_repetitions():
    pairs = number(
        [("ab", "c"), ("a", "bc"), ("c", "ab"), *((f"s{i}", "t") for i in range(100_000))]
    )
    assert clean(pairs, Rules(0, True), Cleaning()) == pairs


def test_report_in_sentences():
    report = Cleaning()
    clean(number([("a", "b")] * 1500 + [("", "")]), Rules(0, True), report)
    report.count("too-long", Origin("g", 9))
    assert report.counts.total() == 1501
    assert report.sentences() == [
        "Left out 1,499 of 1,501 pairs because of a repetition of an earlier pair; the first is f, line 2.",
        "Left out 1 of 1,501 pairs because of a blank side; the first is f, line 1501.",
        "Left out 1 of 1,501 pairs because of a text with more tokens than data.max_length; the first is g, line 9.",
    ]


def test_the_first_rule_of_several_counts():
    assert [first_rule(int(BITS[rule])) for rule in MEANINGS] == list(MEANINGS)
    assert len({int(bit) for bit in BITS.values()}) == len(MEANINGS) == 20
    assert first_rule(int(BITS[DUPLICATE] | BITS[COPIED] | BITS[MOJIBAKE])) == MOJIBAKE
    assert list(MEANINGS)[:4] == [EMPTY, LINE_BREAK, ENCODING, RATIO]


def test_rules_are_always_on_or_may_be_named():
    assert {*OTHERS} == {*MEANINGS} - {*ALWAYS} and len(OTHERS) + len(ALWAYS) == len(MEANINGS)
    assert {*ALWAYS} == {EMPTY, LINE_BREAK, ENCODING, RATIO, DUPLICATE}
    assert {*SUSPICIONS} == {
        COPIED,
        UNUSUAL_LENGTH,
        UNRELATED,
        NUMBERS_DISAGREE,
        PLACEHOLDERS_DIFFER,
        NEAR_DUPLICATE,
    }
    check_names([COPIED, MOJIBAKE])
    check_names(["x"], ["x"])
    for wrong in (EMPTY, "copy"):
        with pytest.raises(UserError, match=f"There is no rule {wrong} to choose"):
            check_names([COPIED, wrong])


def test_lengths_and_slack_by_hand():
    """Ten characters more than the ratio allows are good, whichever side is longer."""
    texts = [
        ("ab", "x" * 14),
        ("ab", "x" * 15),
        ("x" * 14, "ab"),
        ("x" * 15, "ab"),
        (" ab ", "x" * 15),
    ]
    kept = clean(number(texts), Rules(max_ratio=2, deduplicate=False), Cleaning())
    assert [pair.origin.line for pair in kept] == [1, 3]
