"""A translation that repeats itself is a loop, unless its source repeats itself as much."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.decoding.repetition import LONG_PERIOD, MIN_TIMES, is_copy, is_loop, repetition

WORDS = [
    "A",
    "man",
    "in",
    "a",
    "red",
    "shirt",
    "stands",
    "on",
    "the",
    "stage",
    "near",
    "two",
    "tall",
    "trees",
    ".",
]
counts = st.integers(MIN_TIMES, 30)


@given(
    before=st.lists(st.integers(100, 200), unique=True, max_size=9),
    unit=st.lists(st.integers(0, 99), unique=True, min_size=1, max_size=9),
    behind=st.lists(st.integers(201, 300), unique=True, max_size=9),
    times=st.integers(2, 9),
)
def test_the_longest_repetition_is_found(before, unit, behind, times):
    assume(len(unit) * times > 2)
    found = repetition([*before, *unit * times, *behind])
    assert found == (times, len(unit), times * len(unit))


@given(st.lists(st.integers(), unique=True))
def test_without_equal_tokens_there_is_none(tokens):
    assert repetition(tokens).times == 1 and not is_loop([], tokens)


@pytest.mark.parametrize("size", range(1, 9))
@given(times=counts)
def test_loops_are_found(size, times):
    assert is_loop(WORDS, [*WORDS[:3], *WORDS[3 : 3 + size] * times])
    assert is_loop(WORDS, WORDS[3 : 3 + size] * 2) == (size >= LONG_PERIOD)


@given(
    unit=st.lists(st.integers(), min_size=1, max_size=6, unique=True),
    times=counts,
    more=st.integers(-1, 1),
)
def test_repetitions_of_the_source_are_no_loop(unit, times, more):
    assume(times + more > 1)
    assert not is_loop(unit * times, unit * (times + more))


@given(times=counts)
def test_a_loop_that_a_repetition_in_the_source_began(times):
    assert is_loop(["no", ","] * 2, ["nein", ","] * (3 * times))


@given(st.integers(1, 6), st.integers(2, 5))
def test_a_loop_that_is_shorter_than_what_the_source_repeats(size, times):
    sentence = [f"word {i}" for i in range(size)]
    assert not is_loop(sentence * times, [f"Wort {i}" for i in range((size + 1) // 2)] * times)
    assert is_loop(sentence * 3, ["so"] * 3) == (size > 2)


@pytest.mark.parametrize(
    ("source", "target", "is_it"),
    [
        ("Two men stand on a stage.", "Two men stand on a stage", True),
        ("Two men stand on a stage.", "Two men stand on a Bühne.", False),
        ("一个男人站在舞台上。", "一个男人站在舞台上。", True),
        ("Angela Merkel, Berlin", "Angela Merkel, Berlin", False),
        ("https://example.com/a/long/path 30.12.", "https://example.com/a/long/path 30.12.", False),
        ("", "", False),
    ],
)
def test_copies_of_the_source_are_recognised(source, target, is_it):
    assert is_copy(source, target) is is_it
