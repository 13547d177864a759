"""Whether a term replaces words or signs of the free translation, or was only added to it."""

import pytest

from transduce.wings.terms.placement import is_added


@pytest.mark.parametrize(
    ("text", "free", "target", "added"),
    [
        ("Hunde und Katzen", "Hunde & Katzen", "und", False),
        ("Hunde + Katzen", "Hunde & Katzen", "+", False),
        ("Hunde & Katzen", "Hunde und Katzen", "&", False),
        ("Fünf Prozent.", "Fünf %.", "Prozent", False),
        ("Hunde & Katzen und", "Hunde & Katzen", "und", True),
        ("Hunde & + Katzen", "Hunde & Katzen", "+", True),
        ("Hunde & Katzen! Pudel.", "Hunde & Katzen.", "Pudel", True),
        ("Hunde & T-Shirt Katzen", "Hunde & Katzen", "T-Shirt", True),
        ("Der Hund sieht. Hund erblickt.", "Der Hund sieht.", "Hund erblickt", True),
        ("Der Hund erblickt.", "Der Hund sieht.", "Hund erblickt", False),
    ],
)
def test_a_term_that_replaces_a_sign_is_not_added(text, free, target, added):
    assert is_added(text, free, target, None) == added
