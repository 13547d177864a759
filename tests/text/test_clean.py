"""Tests of transduce/text/clean.py."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import clean
from text_files import number
from transduce.text.clean import CHUNK, LINES_KEPT, Cleaning
from transduce.text.pairs import Origin
from transduce.text.rules import Rules

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
