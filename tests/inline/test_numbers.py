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
        ("1,00,000", "100.000", True),
        ("12,34,567", "1234567", True),
        ("1.00.000", "100000", False),
        ("1,0000", "10000", False),
        ("5 5", "5", False),
        ("3, 5", "5 und 3", True),
        ("1.000 und 2", "1,000 and 2", True),
    ],
)
def test_numbers(source: str, translation: str, same: bool) -> None:
    assert same_numbers(source, translation) is same_numbers(translation, source) is same


@pytest.mark.parametrize("separator", [*".,'’٬ \u00a0\u2009\u202f"])
def test_separators_of_thousands_are_no_numbers(separator: str) -> None:
    assert same_numbers(f"1{separator}234{separator}567 m", "1234567 m")
    assert not same_numbers(f"1{separator}23", "123") and not same_numbers("1;234", "1234")
