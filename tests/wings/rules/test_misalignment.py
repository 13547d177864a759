"""Tests of transduce/wings/rules/misalignment.py."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.wings.rules import misalignment
from transduce.wings.rules.misalignment import (
    LINE_BITS,
    LINE_MASK,
    MAX_SHIFT_LINES,
    SHIFT_COST_NATS,
    Shift,
    _is_evident,
    _length_odds,
    _likeliest_path,
    _may_change,
    _word_odds,
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
    assert find_shifts(sources, targets[:300]) == [(100, 299, 1)]
    again = [*targets[:200], *targets[201:301]]  # from the 200th line, all is as it was
    assert find_shifts(sources, again) == [(100, 198, 1)]
    for lines, found in ((50, [(0, 49, 1)]), (49, [])):  # fewer lines than 50 tell too little
        assert find_shifts(sources[:lines], [targets[7], *targets[:lines]][:lines]) == found


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


@pytest.mark.parametrize(("evidence", "moves"), [(12.01, True), (11.99, False)])
def test_an_offset_costs_a_change_at_the_begin_and_half_of_one_at_the_end(evidence, moves):
    odds = np.zeros((2, 2 * MAX_SHIFT_LINES + 2))
    odds[:, MAX_SHIFT_LINES + 3] = evidence  # of 16 + 8 in two lines
    expected = MAX_SHIFT_LINES + 3 * moves
    assert _likeliest_path(odds).tolist() == [expected] * 2


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


@pytest.mark.parametrize(
    ("shifts", "lines", "expected"),
    [
        ([], 4, [0, 1, 2, 3]),
        # Three lines at either end are uncertain, but not at the ends of the file.
        ([(0, 5, 1)], 12, [1, 2, 3, *[-1] * 7, 10, 11]),
        ([(4, 11, -2)], 12, [*[-1] * 7, 5, 6, 7, 8, 9]),
        ([(0, 7, 3)], 8, [3, 4, 5, 6, 7, -1, -1, -1]),
        ([(0, 7, -3)], 8, [-1, -1, -1, 0, 1, 2, 3, 4]),
        ([(4, 5, None)], 12, [0, -1, -1, -1, -1, -1, -1, -1, -1, 9, 10, 11]),
        # Both ranges claim the lines around their border.
        ([(0, 9, 1), (10, 19, 2)], 20, [*range(1, 8), *[-1] * 6, *range(15, 20), -1, -1]),
    ],
)
def test_the_alignment_by_hand(shifts, lines, expected):
    assert alignment(shifts, lines).tolist() == expected


def test_evidence_of_words_by_hand():
    """A word on one near target line counts 2.5, on two lines half of it for each; at most 5 in all."""
    sources = ["alpha", "beta gamma", "12 x", "one two three four", "the"]
    targets = ["nothing", "alpha Beta", "beta", "a 12", "one two three four"]
    odds = _word_odds(sources, targets)
    assert odds.shape == (5, 2 * MAX_SHIFT_LINES + 1)
    expected = {(0, 1): 2.5, (1, 0): 1.25, (1, 1): 1.25, (2, 1): 2.5, (3, 1): 5.0}
    found = {
        (row, column - MAX_SHIFT_LINES): odds[row, column]
        for row, column in zip(*map(list, np.nonzero(odds)), strict=True)
    }
    assert {(int(row), int(offset)): value for (row, offset), value in found.items()} == expected
    frequent = _word_odds(["alpha"] * 3 + ["beta"], ["alpha"] * 3 + ["beta"])
    assert np.nonzero(frequent)[0].tolist() == [3], "more than two lines have alpha"
    for times, counts in ((5, True), (6, False)):  # of 500 lines, a hundredth
        lines = ["alpha"] * times + ["x"] * (500 - times)
        assert _word_odds(lines, lines).any() == counts
    far = ["x"] * MAX_SHIFT_LINES
    assert _word_odds(["word", *far], [*far, "word"])[0, -1] == 2.5
    assert not _word_odds(["word", *far, "x"], [*far, "x", "word"]).any()


def test_evidence_of_lengths_by_hand():
    """The log-odds of two normal distributions, from -3 to 2, and 0 where a line is blank or missing."""
    sources = np.random.default_rng(1).integers(10, 60, 101)
    targets = 2 * (sources + 6) - 6  # each log ratio is log(2)
    sources[50] = targets[60] = 0
    odds, ratios = _length_odds(sources, targets)
    middle = MAX_SHIFT_LINES
    assert odds.shape == ratios.shape == (101, 2 * MAX_SHIFT_LINES + 1)
    logs = np.log(sources + 6.0)
    assert ratios[7, middle + 2] == pytest.approx(logs[9] - logs[7], abs=0.05)
    assert ratios[7, middle - 2] == pytest.approx(logs[5] - logs[7], abs=0.05)
    assert (odds[50] == 0).all() and odds[60, middle] == odds[55, middle + 5] == 0
    assert (odds[0, :middle] == 0).all() and (odds[-1, middle + 1 :] == 0).all()
    rows = [row for row in range(101) if row not in (50, 60)]
    assert ratios[rows, middle] == pytest.approx(0, abs=1e-12)
    assert (odds[rows, middle] == 2.0).all() and odds.min() == -3.0
    # Standard deviations: the least, 0.05, and those of both sides together.
    spread = 1.4826 * np.median(np.abs(logs[rows] - np.median(logs[rows])))
    broad = np.sqrt(2) * spread
    near = [row for row in range(99) if 0.03 < abs(ratios[row, middle + 1]) < 0.2]
    for row in near:
        expected = np.log(broad / 0.05) - ratios[row, middle + 1] ** 2 * (
            0.5 / 0.05**2 - 0.5 / broad**2
        )
        assert odds[row, middle + 1] == pytest.approx(np.clip(expected, -3, 2), abs=0.1)
    assert len(near) > 5
    blank, nothing = _length_odds(np.zeros(60, int), np.zeros(60, int))
    assert (blank == 0).all() and np.isnan(nothing).all()


@pytest.mark.parametrize(
    ("here", "spread", "is_evident"),
    [(0.45, 0.2, True), (0.55, 0.2, False), (0.75, 0.05, True), (0.85, 0.05, False)],
)
def test_a_shift_fits_clearly_better_than_others(here, spread, is_evident):
    """By 2.5 standard deviations of the misfits, which are 1 on average, and by 0.2 at least."""
    columns = 2 * MAX_SHIFT_LINES + 1
    misfits = np.where(np.arange(columns) % 2, 1 + spread, 1 - spread)
    at = MAX_SHIFT_LINES + 3
    misfits[[at, at + 1]] = here, 1 - spread * (-1) ** (at + 1)
    misfits[MAX_SHIFT_LINES] = 1 + spread
    ratios = np.stack((misfits, -misfits))
    assert _is_evident(3, ratios, np.zeros((2, columns))) is is_evident


def test_evidence_is_that_of_the_lines_of_a_shift(sentences, monkeypatch):
    def asked(offset, ratios, words):
        seen.append((offset, ratios, words))
        return True

    seen = []
    sources, targets = map(list, zip(*sentences[:600], strict=True))
    targets[200:400] = [*targets[202:400], *targets[:2]]
    monkeypatch.setattr(misalignment, "_is_evident", asked)
    shifts = find_shifts(sources, targets)
    _, ratios = _length_odds(*(np.array([*map(len, side)]) for side in (sources, targets)))
    words = _word_odds(sources, targets)
    assert shifts and len(seen) <= len(shifts)
    for offset, its_ratios, its_words in seen:
        [shift] = [each for each in shifts if each.offset == offset]
        rows = slice(shift.first, shift.last + 1)
        np.testing.assert_array_equal(its_ratios, ratios[rows])
        np.testing.assert_array_equal(its_words[: len(its_ratios)], words[rows])


@pytest.mark.parametrize(
    ("gain", "here", "misfit", "is_evident"),
    [
        (5.0, 3, 9.0, True),
        (4.9, 3, 9.0, False),
        (5.0, None, 9.0, False),
        (0.0, None, 1.1, True),  # lengths fit better elsewhere
        (0.0, None, 0.9, False),
    ],
)
def test_words_are_evidence_without_lengths(gain, here, misfit, is_evident):
    """The words of both lines count, in the column of the offset; lengths fit at offset 0 as well as `misfit` says."""
    columns = 2 * MAX_SHIFT_LINES + 1
    misfits = np.where(np.arange(columns) == MAX_SHIFT_LINES, misfit, 1.0)
    misfits = np.full(columns, 1.0) if misfit == 9.0 else misfits
    words = np.zeros((3, columns))
    words[:2, MAX_SHIFT_LINES + 3] = gain / 2 + 1
    words[:2, MAX_SHIFT_LINES] = 1
    words[:2, MAX_SHIFT_LINES + 1] = 9  # another offset
    words[2] = 7  # of a line behind the range
    assert _is_evident(here, np.stack((misfits, -misfits)), words) is is_evident


@pytest.mark.parametrize("before", [[], [0.0] * 3, [9.0, -40.0], [-40.0]])
@pytest.mark.parametrize(("lines", "may_change"), [(9, False), (10, True)])
def test_evidence_adds_up_over_lines(lines, may_change, before):
    odds = np.zeros((len(before) + lines + 5, 2 * MAX_SHIFT_LINES + 2))
    column = odds[:, MAX_SHIFT_LINES + 2]
    column[: len(before)] = before
    column[len(before) : len(before) + lines] = SHIFT_COST_NATS / 10 + 1e-9
    assert _may_change(odds) is may_change
