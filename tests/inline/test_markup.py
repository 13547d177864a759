"""Tests of transduce/inline/markup.py."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MARKUP
from transduce.inline.markup import attribute, pieces


@given(st.text(alphabet="<>/ab!-=\"'[] c&;") | MARKUP, st.booleans())
def test_pieces_join_to_the_text(text: str, html: bool) -> None:
    found = list(pieces(text, html=html))
    assert [piece.begin for piece in found] == [0, *(piece.end for piece in found)][: len(found)]
    assert not found or found[-1].end == len(text)
    assert all(piece.begin < piece.end for piece in found)


class Tags(HTMLParser):
    """The tags as the standard library's parser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("start", tag, dict(reversed(attrs)).get("alt")))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("end", tag, None))


NAMES = st.sampled_from(["b", "P", "img", "td", "h1"])


VALUES = st.sampled_from(['"a > b"', "'it&amp;s'", "plain", '""'])


ATTRIBUTES = st.lists(st.tuples(st.sampled_from(["alt", "ALT", "data-x"]), VALUES), max_size=3)


STARTS = st.tuples(NAMES, ATTRIBUTES).map(
    lambda t: f"<{t[0]}{''.join(f' {name} = {value}' for name, value in t[1])}>"
)


CHUNKS = (
    STARTS
    | NAMES.map(lambda name: f"</{name}>")
    | st.sampled_from(["<!-- <b> -->", "5 < 6", "a>b", "<script>x</b></script>"])
)


@given(st.lists(CHUNKS).map(" ".join))
def test_tags_are_those_that_the_standard_library_finds(text: str) -> None:
    parser = Tags()
    parser.feed(text)
    parser.close()
    found = []
    for piece in pieces(text, html=True):
        if piece.kind in ("open", "empty"):
            found.append(("start", piece.name, attribute(text[piece.begin : piece.end], "alt")))
        elif piece.kind == "close":
            found.append(("end", piece.name, None))
    assert found == parser.found
