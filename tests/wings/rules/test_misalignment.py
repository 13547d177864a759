"""Tests of transduce/wings/rules/misalignment.py."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.wings.rules.misalignment import (
    LINE_BITS,
    LINE_MASK,
    MAX_SHIFT_LINES,
    SHIFT_COST_NATS,
    Shift,
    _likeliest_path,
    _may_change,
    _words,
    alignment,
    at_offsets,
    find_shifts,
)


@pytest.mark.parametrize("shift", [-20, -3, -1, 1, 2, 3, 20])
def test_shifted_lines_are_found_and_located(sentences, shift):
    sources, targets = map(list, zip(*sentences, strict=True))
    at = 700 + shift
    moved = (
        [*targets[:at], *targets[:shift], *targets[at:-shift]]
        if shift > 0
        else [*targets[:at], *targets[at - shift :]]
    )
    found = find_shifts(sources[: len(moved)], moved)
    assert [each.offset for each in found if each.offset is not None] == [shift]
    # Where many lines are missing, those beside the gap are nowhere near.
    assert abs(found[0].first - at) <= 10
    assert (found[-1].offset, found[-1].last) == (shift, len(moved) - 1)


def test_shifted_and_unrelated_stretches_end_where_they_should(sentences):
    sources, targets = map(list, zip(*sentences, strict=True))
    targets[500:800] = [*targets[502:800], *targets[:2]]
    targets[1000:1300] = targets[:300]
    shift, lost = find_shifts(sources, targets)
    assert shift.offset == -2 and abs(shift.first - 502) <= 10 and abs(shift.last - 799) <= 10
    assert lost.offset is None and abs(lost.first - 1000) <= 20 and abs(lost.last - 1299) <= 20


def test_aligned_text_has_no_shifted_stretch(sentences):
    assert find_shifts(*zip(*sentences, strict=True)) == []
    assert find_shifts(["a"] * 500, ["b"] * 500) == []
    assert find_shifts([""] * 500, [""] * 500) == []
    assert find_shifts(["a"], ["b"]) == []


@pytest.mark.parametrize("seed", range(10))
def test_lengths_that_tell_little_are_no_shift(seed):
    """Neither lengths without any relation, nor names whose lengths have little to do with each other."""
    choice = random.Random(seed)
    lengths = [choice.randint(5, 30) for _ in range(1000)]
    assert (
        find_shifts(
            ["a" * each for each in lengths], ["b" * choice.randint(5, 30) for _ in lengths]
        )
        == []
    )
    assert find_shifts(*_names(choice, 500)) == []


def test_words_tell_a_shift_of_lines_of_equal_length():
    sources = [f"Order number {10_000 + i} shipped" for i in range(300)]
    targets = [f"Bestellung Nummer {10_000 + i} versandt" for i in range(300)]
    targets.insert(100, targets[7])
    assert [shift.offset for shift in find_shifts(sources, targets[:300])] == [1]


def test_a_list_of_names_among_sentences_is_no_shift(sentences):
    names = _names(random.Random(1), 100)
    for side, other in zip(names, zip(*sentences, strict=True), strict=True):
        side[:0], side[100:] = other[:700], other[700:]
    assert find_shifts(*names) == []


def _names(choice, count):
    """Two sides whose lengths have a heavy-tailed ratio, as names in English and Chinese have."""
    lengths = [choice.randint(4, 12) + choice.choice([0, 0, 0, 15, 25]) for _ in range(count)]
    ratios = (choice.choice([0.25, 0.3, 0.3, 0.3, 0.35, 0.8, 0.1]) for _ in lengths)
    return ["a" * each for each in lengths], [
        "b" * max(1, round(each * ratio)) for each, ratio in zip(lengths, ratios, strict=False)
    ]


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 3))
def test_quick_check_agrees_with_the_best_path(seed, width):
    odds = np.random.default_rng(seed).normal(0, width, (60, 2 * MAX_SHIFT_LINES + 2))
    if not _may_change(odds):
        assert (_likeliest_path(odds) == MAX_SHIFT_LINES).all()


@given(st.integers(0, 2**32 - 1))
def test_the_path_is_the_best_one(seed):
    odds = np.random.default_rng(seed).normal(0, 12, (2, 2 * MAX_SHIFT_LINES + 2))

    here, there = np.indices((2 * MAX_SHIFT_LINES + 2,) * 2)  # the columns of both lines, every way
    changes = (here != MAX_SHIFT_LINES) + 0.0 + (here != there) + (there != MAX_SHIFT_LINES) / 2
    worth = odds[0][here] + odds[1][there] - SHIFT_COST_NATS * changes
    assert worth[tuple(_likeliest_path(odds))] == pytest.approx(worth.max())


@given(
    st.lists(
        st.lists(st.text(st.sampled_from("abcäßÉ3٣"), min_size=1, max_size=5), max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_words_have_the_same_hash_where_they_are_the_same(lines):
    found = _words([" ".join(line) for line in lines])
    kept = [
        (place, word.casefold())
        for place, line in enumerate(lines)
        for word in line
        if len(word.casefold()) >= 3 or any(map(str.isdecimal, word))
    ]
    hashes = (found >> LINE_BITS).tolist()
    assert (found & LINE_MASK).tolist() == [place for place, _ in kept]
    assert len(set(hashes)) == len({word for _, word in kept})
    assert len(set(zip(hashes, (word for _, word in kept), strict=True))) == len(
        {w for _, w in kept}
    )


@given(
    st.lists(
        st.tuples(
            st.integers(0, 99), st.integers(0, 30), st.sampled_from([None, -20, -2, 1, 3, 20])
        )
    )
)
def test_no_target_goes_to_two_lines(drawn):
    stretches, line = [], 0
    for gap, length, offset in drawn:
        stretches.append(Shift(line + gap, line + gap + length, offset))
        line += gap + length + 1
    found = alignment(stretches, line + 10)
    sure = found[found >= 0]
    assert len(set(sure.tolist())) == len(sure) and (sure < len(found)).all()
    offsets = (found - np.arange(len(found)))[found >= 0]
    assert set(offsets.tolist()) <= {0, *(stretch.offset for stretch in stretches)}


@given(st.lists(st.integers(-MAX_SHIFT_LINES, MAX_SHIFT_LINES), max_size=80))
def test_items_are_found_at_offsets(offsets):
    wanted = [
        place + offset if 0 <= place + offset < len(offsets) else None
        for place, offset in enumerate(offsets)
    ]
    assert list(at_offsets(iter(range(len(offsets))), offsets)) == wanted
