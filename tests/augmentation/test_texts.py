"""Changed pairs: what changes, and what must not."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.augmentation.texts import (
    CHANGES,
    MARKERS,
    MAX_TYPOS,
    NEIGHBOURS,
    augment,
    lower_case,
    mark,
    misspell,
)

NOT_WORDS = "{name} %s https://example.org/a_b <b>bold</b> x=1 \ufdd0 3.5 user@example.org"


def test_words_change_and_everything_else_stays():
    text = f"The child's red-brown ball, {NOT_WORDS} runs."
    assert lower_case(text) == f"the child's red-brown ball, {NOT_WORDS} runs."
    assert misspell(NOT_WORDS, Random(1)) == NOT_WORDS


def edits(first, second):
    """The number of letters to swap, leave out, insert or replace between two texts."""
    table = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            table[i, j] = min(
                table[i - 1, j] + 1,
                table[i, j - 1] + 1,
                table[i - 1, j - 1] + (first[i - 1] != second[j - 1]),
            )
            if (
                i > 1
                and j > 1
                and first[i - 2 : i] == second[j - 1 : j - 3 if j > 2 else None : -1]
            ):
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[-1, -1]


@given(st.integers())
def test_a_misspelt_sentence_has_few_errors(seed):
    text = "Two young women are walking along the beach."
    # Two letters swapped beside another error count twice.
    assert edits(text, misspell(text, Random(seed))) <= 2 * MAX_TYPOS


def test_every_kind_of_typing_error_occurs_and_no_other(monkeypatch):
    monkeypatch.setattr("transduce.augmentation.texts.MAX_TYPOS", 1)
    swapped, replaced = (
        {"awlk", "wlak", "wakl", "walk"},
        {"qalk", "ealk", "wslk", "wakk", "walj", "wall"},
    )
    left_out, doubled = {"alk", "wlk", "wak", "wal"}, {"wwalk", "waalk", "wallk", "walkk"}
    drawn = [misspell("walk,", Random(seed)).removesuffix(",") for seed in range(2_000)]
    assert {*drawn} == swapped | replaced | left_out | doubled
    for kind in (swapped, replaced, left_out, doubled):
        assert sum(each in kind for each in drawn) / len(drawn) == pytest.approx(1 / 4, abs=0.04)


@given(st.integers())
def test_a_marker_begins_both_sides(seed):
    source, target = mark("A dog.", "Ein Hund.", Random(seed))
    assert source.removesuffix("A dog.") == target.removesuffix("Ein Hund.")
    assert source.removesuffix("A dog.")[-1:] == " " and len(MARKERS) > 1


@given(st.text(), st.text(), st.integers())
def test_only_a_marker_changes_the_target(source, target, seed):
    changed, kept = augment(source, target, Random(seed))
    assert kept == target or (kept.endswith(target) and changed.endswith(source))


def test_shares_of_changes_add_up_to_14_percent():
    assert 0 < sum(share for share, _ in CHANGES) == pytest.approx(0.14)


def test_one_to_three_words_of_four_letters_are_misspelt():
    """Each error changes one of the long words; words of three letters and other scripts stay."""
    text = "The walk, dog likes THE RUNNING 漢字漢字 don't"
    numbers = set()
    for seed in range(3_000):
        changed = misspell(text, Random(seed)).split(" ")
        differ = [
            i
            for i, (one, two) in enumerate(zip(text.split(" "), changed, strict=True))
            if one != two
        ]
        assert set(differ) <= {1, 3, 5, 7}, changed
        numbers.add(len(differ))
    assert numbers == {0, 1, 2, 3}, "two equal letters may be swapped"
    assert misspell("The dog", Random(1)) == "The dog"


def test_keys_have_their_neighbours_on_a_keyboard():
    assert {key: NEIGHBOURS[key] for key in "qwpalzm"} == {
        "q": "w",
        "w": "qe",
        "p": "o",
        "a": "s",
        "l": "k",
        "z": "x",
        "m": "n",
    }


def test_markers_are_drawn_from_all_and_numbers_from_one_to_twenty():
    drawn = {mark("", "", Random(seed))[0] for seed in range(3_000)}
    plain = {"- ", "* ", "• ", "– ", "# ", "## "}
    numbered = {form.format(n) for form in ("{}. ", "{}) ", "({}) ") for n in range(1, 21)}
    assert drawn == plain | numbered


def test_changes_are_drawn_by_their_shares():
    """Of 14 changed pairs, 3 are in lower case, 10 are misspelt, and 1 has a marker."""
    text, count = "The Dog likes Walking", 4_000
    drawn = [augment(text, "x", Random(seed)) for seed in range(count)]
    lower = sum(source == text.lower() for source, _ in drawn)
    marked = sum(target != "x" for _, target in drawn)
    assert lower / count == pytest.approx(3 / 14, abs=0.03)
    assert marked / count == pytest.approx(1 / 14, abs=0.02)
    assert [share for share, _ in CHANGES] == [0.03, 0.1, 0.01]
