"""Tests of transduce/text/clean.py."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import clean
from text_files import number
from transduce.text.clean import CHUNK, CUT_OFF, LINES_KEPT, TOO_LONG, Cleaning
from transduce.text.pairs import Origin
from transduce.text.rules import MEANINGS, Rules

few_texts = st.one_of(
    st.sampled_from(["", " ", "\u3000", "a", "b ", "c\nd", "a" * 30]), st.text(max_size=40)
)


@given(st.lists(st.tuples(few_texts, few_texts)), st.sampled_from([0.0, 1.0, 3.0]), st.booleans())
def test_kept_and_counted_pairs_add_up(texts, max_ratio, deduplicate):
    pairs, report, rules = number(texts), Cleaning(), Rules(max_ratio, deduplicate)
    kept = clean(pairs, rules, report)
    left_out = sorted(itertools.chain(*report.lines.values()))
    assert report.read == len(pairs) == len(kept) + report.counts.total()
    assert {rule: len(lines) for rule, lines in report.lines.items()} == dict(report.counts)
    assert [pair.origin for pair in kept] == [
        pair.origin for pair in pairs if pair.origin not in left_out
    ]
    again = Cleaning()
    assert clean(kept, rules, again) == kept
    assert again.counts.total() == 0 and again.sentences() == []


@pytest.mark.parametrize("distance", [1, CHUNK - 1, CHUNK, 5 * CHUNK + 1])
def test_a_repetition_is_found_at_any_distance(distance):
    pairs = number([(f"s{i}", "t") for i in range(distance)] * 2)
    report = Cleaning()
    assert clean(pairs, Rules(0, True), report) == pairs[:distance]
    assert report.counts == {"duplicate": distance}


def test_counts_are_exact_where_lines_are_not_kept():
    report = Cleaning()
    for line in range(LINES_KEPT + 5):
        report.count("empty", Origin("f", line))
    assert report.counts["empty"] == LINES_KEPT + 5
    assert len(report.lines["empty"]) == LINES_KEPT


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


def test_every_rule_has_a_meaning_and_a_first_line():
    report = Cleaning(read=3)
    for line, rule in enumerate((*MEANINGS, TOO_LONG, CUT_OFF), start=1):
        report.count(rule, Origin("f", line))
        assert report.sentences()[-1].startswith("Left out 1 of 3 pairs because of "), rule
        assert report.sentences()[-1].endswith(f"; the first is f, line {line}."), rule


def test_the_rule_that_left_out_most_pairs_comes_first():
    report = Cleaning(read=9)
    for line, rule in enumerate(("ratio", "empty", "copied", "empty", "copied", "copied"), start=1):
        report.count(rule, Origin("f", line))
    assert [sentence.split()[2] for sentence in report.sentences()] == ["3", "2", "1"]


@pytest.mark.parametrize("added", [(LINES_KEPT - 2, 9), (3, LINES_KEPT), (LINES_KEPT, 1)])
def test_the_first_origins_of_a_rule_are_kept_whatever_is_added_together(added):
    report = Cleaning()
    origins = [Origin("f", line) for line in range(sum(added))]
    report.add(
        "empty", 2 * added[0], origins[: added[0]]
    )  # pairs without an origin are counted, too
    report.add("ratio", 1, [Origin("g", 1)])
    report.add("empty", added[1], origins[added[0] :])
    assert report.counts == {"empty": 2 * added[0] + added[1], "ratio": 1}
    assert report.lines == {"empty": origins[:10_000], "ratio": [Origin("g", 1)]}
