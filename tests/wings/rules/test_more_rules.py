"""Tests of transduce/wings/rules/more_rules.py."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.wings.rules.more_rules import MISREAD

WORDS = [
    *"„“…’€–",
    "Ähre",
    "Übel",
    "Öl",
    "über",
    "Spaß",
    "café",
    "à",
    "señor",
    "Œuvre",
    "naïve",
    " »",
    " ",
]


@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_mojibake_is_found_and_nothing_else(text):
    # Two signs after an accented letter may be a misread one.
    assume(not re.search("[à-ï][„“…’€–]{2}", text))
    assert not MISREAD.search(text)
    for wrong in ("cp1252", "latin-1"):
        misread = text.encode().decode(wrong, "replace")
        assert bool(MISREAD.search(misread)) or "\ufffd" in misread or text.isascii()


UNITS = ["1200 Å³", "10 Å²", "50 Å–60 Å", "1.5 Å±0.1 Å", "Ø±2 mm", "AMANHÃ—disse", "AMANHÃ — disse"]


@pytest.mark.parametrize(
    "text", ["LA MAÑ…", "ATÉ AMANHÃ…", "Der Umlaut „Ä“ ist neu.", "«Å» er et ord.", *UNITS]
)
def test_marks_after_a_capital_letter_are_not_mojibake(text):
    assert not MISREAD.search(text)
    assert MISREAD.search(text.encode().decode("cp1252", "replace") + " Ã…ngström")
