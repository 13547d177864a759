"""Tests of transduce/inline/numbers.py."""

import pytest

from transduce.inline.numbers import same_numbers


@pytest.mark.parametrize(
    ("source", "translation", "same"),
    [
        ("3.5 km", "3,5 km", True),
        ("1,000.50", "1.000,50", True),
        ("in 1,000 years", "in 1000 Jahren", True),
        ("10 000 people", "10.000 Leute", True),
        ("3.5", "35", False),
        ("2 of 3", "2 von 4", False),
        ("no number", "1 Zahl", False),
        ("２０２０年、٣", "3 in 2020", True),
    ],
)
def test_numbers(source: str, translation: str, same: bool) -> None:
    assert same_numbers(source, translation) is same
