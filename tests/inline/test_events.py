"""Tests of transduce/inline/events.py."""

from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MESSAGES
from transduce.inline.events import IN_ALL, IN_PLAIN_TEXT


@given(st.text(alphabet="<>/ab:.@{}%$#&;`*|[]_w 1!\\N") | MESSAGES, st.booleans())
def test_quick_check_finds_every_placeholder(text: str, message: bool) -> None:
    assert IN_ALL[message].search(text) or not IN_PLAIN_TEXT[message].search(text)
