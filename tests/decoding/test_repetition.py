"""A translation that repeats itself is a loop, unless its source repeats itself as much."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.decoding.repetition import (
    LONG_PERIOD,
    MIN_TIMES,
    find_loops,
    is_copy,
    is_loop,
    repetition,
)
from transduce.decoding.types import Hypothesis

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
        ("a b", "x x", False),
        ("a b", "x x x", True),
        ("a b", "x y z x y z", False),
        ("a b", "x y z w x y z w", True),
        ("b a a a", "x x x x", False),  # one more than in the source
        ("b a a a", "x x x x x", True),
        ("a b a b a b", "x y x y x y x y", False),
        ("a b a b a b", "x y x y x y x y x y", True),
        ("a b c d a b c d", "x y z w x y z w x y z w", False),
        ("a a a", "v w x y z v w x y z v w x y z", True),  # 15 tokens for 3
        ("a a a", "v w x y v w x y v w x y", False),  # 12
        ("a b c d a b c d", "x y x y x y", False),  # half as long
        ("a b c d e a b c d e", "x y x y x y", True),
    ],
)
def test_a_translation_may_repeat_once_more_than_its_source(source, target, is_it):
    assert is_loop(source.split(), target.split()) is is_it


def test_loops_are_looked_for_in_the_best_translations_only():
    loop, plain = Hypothesis(-1.0, [7, 7, 7]), Hypothesis(-2.0, [7, 8])
    lists = [[plain, loop], [loop, plain], [], [loop]]
    assert find_loops([[1], [2], [3], [4, 4, 4]], lists) == [1]


def test_the_longest_of_several_repetitions_counts():
    assert repetition(list("xxabcabcyy")) == (2, 3, 6)
    assert repetition(list("xxxabab")) == (2, 2, 4)
    assert repetition(list("ababab")) == (3, 2, 6)
    assert repetition(list("abababa")) == (3, 2, 7)
    assert repetition(list("xx")) == repetition([]) == (1, 0, 0)
    assert repetition(list("axxxb")) == (3, 1, 3)


@pytest.mark.parametrize(
    ("source", "target", "is_it"),
    [
        ("Two men stand on a stage.", "Two men stand on a stage", True),
        ("Two men stand on a stage.", "Two men stand on a Bühne.", False),
        ("一个男人站在舞台上。", "一个男人站在舞台上。", True),
        ("Angela Merkel, Berlin", "Angela Merkel, Berlin", False),
        ("https://example.com/a/long/path 30.12.", "https://example.com/a/long/path 30.12.", False),
        ("", "", False),
        ("abcdefgh", "abcdefgh", True),
        ("abcdefg", "abcdefg", False),
        ("“abcdefgh”, (x)", "(abcdefgh): x!", False),  # curly marks count
        ("(abcdefgh) -", "abcdefgh! ;", True),
        ("Abcdefgh Ijkl mnop", "Abcdefgh Ijkl mnop", False),  # four letters outside names
        ("12345678 90", "12345678 90", False),
        ("one two three", "one three two", False),
    ],
)
def test_copies_of_the_source_are_recognised(source, target, is_it):
    assert is_copy(source, target) is is_it
