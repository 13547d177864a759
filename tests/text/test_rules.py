"""Tests of transduce/text/rules.py."""

import pytest

from corpora import clean
from text_files import number
from transduce.system.errors import UserError
from transduce.text import rules as text_rules
from transduce.text.clean import Cleaning
from transduce.text.pair_batch import PairBatch
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
    Checker,
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


def test_a_pair_has_a_bit_for_each_rule_that_it_breaks():
    sources = ["a", "", "a\nb", " ", "x", "a", "same text"]
    targets = ["b", "b", "c", "d\n" + "e" * 20, "y" * 14, "y" * 13, "same text"]
    expected = [[], [EMPTY], [LINE_BREAK], [EMPTY, LINE_BREAK, RATIO], [RATIO], [], []]
    batch = PairBatch(sources, targets)
    for max_ratio in (3, 0):
        for one, other in ((sources, targets), (targets, sources)):
            flags = Checker(Rules(max_ratio, deduplicate=True)).check(PairBatch(one, other))
            assert flags.tolist() == [
                sum(int(BITS[rule]) for rule in broken if max_ratio or rule != RATIO)
                for broken in expected
            ]
    equal = Checker(Rules(0.5, deduplicate=True)).check(PairBatch(["xx"] * 2, ["y" * 11, "y" * 12]))
    assert equal.tolist() == [0, BITS[RATIO]]
    copied = Checker(Rules(3, deduplicate=True, others=(COPIED,))).check(batch)
    assert copied.tolist()[-1] == BITS[COPIED] and copied.tolist()[4] == BITS[RATIO]


def test_a_wing_checks_other_rules_than_repetitions(monkeypatch):
    called = []

    class More:
        def __init__(self, *given):
            called.append(given)

        def check(self, *given):
            called.append(given)

    monkeypatch.setattr(text_rules, "option", {"data.rules": More}.__getitem__)
    batch = PairBatch(["a"], ["b"])
    for others in ((), (NEAR_DUPLICATE,)):
        Checker(Rules(3, deduplicate=True, others=others)).check(batch)
    assert called == []
    rules = Rules(3, deduplicate=True, others=(NEAR_DUPLICATE, COPIED))
    checker = Checker(rules, [["s"], ["t"]])
    flags = checker.check(batch, [(1, 2, None)])
    assert checker.rules == rules and checker.asked == {*rules.others}
    assert called == [(rules, [["s"], ["t"]]), (batch, flags, [(1, 2, None)])]
    checker.check(batch)
    assert called[-1][2] is None
    with pytest.raises(UserError, match=r"no rule copy to choose\. Did you mean copied\?"):
        Checker(Rules(3, deduplicate=True, others=("copy",)))
