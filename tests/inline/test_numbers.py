"""Tests of transduce/inline/numbers.py."""

import pytest

from transduce.inline.numbers import numbers_disagree, same_numbers


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


@pytest.mark.parametrize(
    ("one", "other", "disagree"),
    [
        ("page 30", "Seite 31", True),
        ("page 30", "Seite", False),
        ("page 30", "Seite 30 von 40", False),
        ("2 and 3", "2 und 4", True),
        ("2 and 2", "2 und 3", True),
        ("at 2", "um 14", False),
        ("at 12", "um 24", False),
        ("at 13", "um 25", True),  # no hours
        ("at 0", "um 12", False),
        ("in 98", "1998", False),
        ("in 8", "1998", True),
        ("in 98", "998", True),
        ("in 198", "1198", True),
        ("07", "7", False),
        ("1,000", "1000", False),
        ("9" * 31, "9" * 30, True),
        ("0" + "9" * 30, "9" * 30, True),  # a code
        ("0" + "9" * 29, "9" * 29, False),
        ("14 and 15", "2 und 3", False),
        ("14 and 15", "2 und 4", True),
        ("2 and 30", "14", False),  # each number agrees with one
    ],
)
def test_numbers_that_disagree(one: str, other: str, disagree: bool) -> None:
    assert numbers_disagree(one, other) is numbers_disagree(other, one) is disagree
