"""Tests of transduce/wings/rules/numbers.py."""

import pytest

from transduce.wings.rules.numbers import numbers_disagree


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
