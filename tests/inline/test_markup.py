"""Tests of transduce/inline/markup.py."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MARKUP
from transduce.inline.markup import attribute, attributes, decoded, pieces, speller


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


@pytest.mark.parametrize(
    ("text", "html", "expected"),
    [
        ("a<B c='>'>d</B ><br/>", False, "text a|open <B c='>'>|text d|close </B >|empty <br/>"),
        ("<br>x<IMG src=a/b>", True, "empty <br>|text x|empty <IMG src=a/b>"),
        ("<br>x", False, "open <br>|text x"),
        (
            "<!-- <b> --><![CDATA[<]]><?x ?><!DOCTYPE y>",
            False,
            "other <!-- <b> -->|other <![CDATA[<]]>|other <?x ?>|other <!DOCTYPE y>",
        ),
        ("1 < 2 <3", True, "text 1 < 2 <3"),
        ("<b", True, "other <b"),
        ("<!-- x", True, "other <!-- x"),
        ("</ x>y", True, "other </ x>|text y"),
        ("<script>a<b></script>c", True, "open <script>|other a<b>|close </script>|text c"),
        ("<script>a<b></script>c", False, "open <script>|text a|open <b>|close </script>|text c"),
        ("<TITLE>a<b></Title >", True, "open <TITLE>|text a<b>|close </Title >"),
        ("<textarea></textarea>", True, "open <textarea>|close </textarea>"),
        ("<style>x", True, "open <style>|other x"),
        ("<script/>a<b>", True, "empty <script/>|text a|open <b>"),
    ],
)
def test_pieces_by_hand(text: str, html: bool, expected: str) -> None:
    found = [(piece.kind, text[piece.begin : piece.end]) for piece in pieces(text, html=html)]
    assert "|".join(f"{kind} {raw}" for kind, raw in found) == expected


def test_names_of_tags() -> None:
    for html, name in ((True, "td"), (False, "TD")):
        assert [piece.name for piece in pieces("<TD a>x</TD>", html=html)] == [name, "", name]


def test_attributes_by_hand() -> None:
    tag = '<a HREF = "x y" b=\'1\' c=2 d e="" href=z data-q=/p/>'
    found = {name: tag[slice(*span)] for name, span in attributes(tag).items()}
    assert found == {"href": "x y", "b": "1", "c": "2", "e": "", "data-q": "/p/"}
    assert attribute(tag, "href") == "x y" and attribute(tag, "d") is attribute(tag, "x") is None
    assert attribute("<a alt='&amp;&lt;&#228;'>", "alt") == "&<ä" and attribute("<b>", "b") is None


def test_entities_are_decoded() -> None:
    assert [decoded(each) for each in ("&amp;", "&#228;", "&#xE4;", "&nbsp;")] == [
        "&",
        "ä",
        "ä",
        "\xa0",
    ]
    assert decoded("&nosuch;") is decoded("&#0;") is decoded("&#xD800;") is None


@pytest.mark.parametrize(
    ("fragment", "text", "spelt"),
    [
        ("", "a & b < c > \"'", "a &amp; b &lt; c &gt; \"'"),
        ("1 > 0", "a > b ]]>", "a > b ]]&gt;"),
        ("&auml;&#34; &nbsp;<b title='&szlig;'>", 'ä "ß\xa0', "&auml; &#34;ß&nbsp;"),
        ("&#38;", "&", "&#38;"),
        ("&#32;", "a b", "a b"),
    ],
)
def test_text_is_spelt_with_the_entities_of_its_fragment(
    fragment: str, text: str, spelt: str
) -> None:
    assert speller(fragment)(text) == spelt


def test_elements_without_content_or_without_tags_are_those_of_html() -> None:
    void = "area base br col embed hr img input link meta param source track wbr"
    raw = "script style textarea title xmp iframe noembed noframes plaintext"
    for name in f"{void} {raw} b p pre noscript".split():
        found = [piece.kind for piece in pieces(f"<{name}>a<b></{name}>", html=True)]
        assert found[0] == ("empty" if name in void.split() else "open")
        assert ("open" in found[1:]) is (name not in raw.split())
        assert [piece.kind for piece in pieces(f"<{name}>", html=False)] == ["open"]
