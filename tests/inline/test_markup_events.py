"""Tests of transduce/inline/markup_events.py."""

from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MARKUP, PLAIN
from transduce.inline.markup_events import events
from transduce.text.formats import TextKind


@given(st.text() | PLAIN | MARKUP, st.booleans())
def test_events_join_to_the_text(text: str, markup: bool) -> None:
    assert "".join(event.raw for event in events(text, TextKind(markup=markup))) == text
