"""Tests of transduce/text/rules.py."""

from corpora import clean
from text_files import number
from transduce.text.clean import Cleaning
from transduce.text.pairs import Origin
from transduce.text.rules import Rules


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
