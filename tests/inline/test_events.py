"""Tests of transduce/inline/events.py."""

from hypothesis import given
from hypothesis import strategies as st

from marked_texts import PLAIN
from transduce.inline.events import IN_ALL, IN_PLAIN_TEXT


@given(st.text(alphabet="<>/ab:.@{}%$#&;`*|[]_w 1") | PLAIN)
def test_quick_check_finds_every_placeholder(text: str) -> None:
    assert IN_ALL.search(text) or not IN_PLAIN_TEXT.search(text)
