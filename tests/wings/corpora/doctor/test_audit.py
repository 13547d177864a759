"""Tests of transduce/wings/corpora/doctor/audit.py."""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_corpora import odd_texts, pairs_of
from transduce.text.rules import (
    DUPLICATE,
    IN_TEST_SET,
    MEANINGS,
    MISALIGNED,
    OTHERS,
    Rules,
)
from transduce.wings.corpora.doctor import audit as auditing
from transduce.wings.corpora.doctor.audit import Misaligned, Verdict, audit

WITHOUT_TEST = tuple(rule for rule in OTHERS if rule != IN_TEST_SET)


def test_number_of_processes_changes_nothing(sentences, monkeypatch):
    monkeypatch.setattr(auditing, "CHUNK", 400)
    spoilt = [
        ("{0}", "x") if place % 70 == 0 else pair
        for place, pair in enumerate([*sentences, *sentences[:50]])
    ]
    rules = Rules(0, True, WITHOUT_TEST, ("en", "de"))
    one, two = (audit(pairs_of(spoilt), rules, processes) for processes in (1, 2))
    assert list(one.verdicts) == list(two.verdicts)
    assert one.findings() == two.findings()
    assert np.array_equal(one.characters, two.characters)
    assert one.faults.counts[DUPLICATE] >= 45
    assert one.faulty == sum(bool(verdict.rule) or verdict.repaired for verdict in one.verdicts)


@settings(max_examples=40)
@given(st.lists(st.tuples(odd_texts, odd_texts), min_size=1, max_size=12), st.integers(1, 5))
def test_characters_are_counted(pairs, chunk):
    with patch.object(auditing, "CHUNK", chunk):
        found = audit(pairs_of(pairs), Rules(0, False))
    for side, texts in enumerate(zip(*pairs, strict=True)):
        # A line feed after each.
        assert found.characters[side].sum() == sum(map(len, texts)) + len(pairs)


def test_stretches_continue_across_chunks(sentences, monkeypatch):
    # Which leaves 37 lines over: too few to show a shift.
    monkeypatch.setattr(auditing, "CHUNK", 730)
    sources, targets = zip(*sentences, strict=True)
    found = audit(
        pairs_of(list(zip(sources[3:], targets[:-3], strict=True))), Rules(0, False, (MISALIGNED,))
    )
    assert found.stretches == [Misaligned("corpus.tsv", 1, len(sentences) - 3, 3)]
    misaligned = 1 + list(MEANINGS).index(MISALIGNED)
    assert Counter(found.verdicts) == {
        Verdict(0, True, 3): found.repaired,
        Verdict(misaligned, False, 0): found.faulty - found.repaired,
    }
    assert found.faulty == len(sentences) - 3 and found.repaired >= found.faulty - 2 * 3


@pytest.mark.parametrize(("begin", "end"), [(600, 735), (725, 830), (712, 740)])
def test_no_pair_is_kept_wrong_where_a_stretch_reaches_a_border(sentences, monkeypatch, begin, end):
    monkeypatch.setattr(auditing, "CHUNK", 730)
    sources, targets = zip(*sentences, strict=True)
    moved = [*targets[:begin], *targets[begin + 1 : end], "Das ist neu.", *targets[end:]]
    pairs = pairs_of(list(zip(sources, moved, strict=True)))
    found = audit(pairs, Rules(0, False, (MISALIGNED,)))
    kept = [
        (pair.source, pairs[place + verdict.offset].target)
        for place, (pair, verdict) in enumerate(zip(pairs, found.verdicts, strict=True))
        if verdict.repaired or not verdict.rule
    ]
    assert set(kept) <= set(sentences) and len(kept) > len(sentences) - 60
