"""Tests of transduce/inline/markup_events.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MARKUP, PLAIN
from transduce.inline.events import IN_ALL
from transduce.inline.markup_events import IN_MARKUP, events
from transduce.text.formats import MARKUP_TEXT, TextKind

MARKUP_MESSAGE = TextKind(markup=True, message=True)


@given(PLAIN | MARKUP, st.booleans())
def test_every_placeholder_has_one_of_the_characters_of_the_quick_test(
    text: str, message: bool
) -> None:
    for match in IN_MARKUP[message].finditer(text):
        assert IN_ALL[message].search(match.group())


@given(st.text() | PLAIN | MARKUP, st.booleans())
def test_events_join_to_the_text(text: str, markup: bool) -> None:
    assert "".join(event.raw for event in events(text, TextKind(markup=markup))) == text


def events_of(text: str, kind: TextKind = MARKUP_TEXT) -> list[tuple[str, str, str]]:
    """The kind and the raw text of each event, and the name of a tag or what else is shown."""
    return [(event.kind, event.raw, event.name or event.shown) for event in events(text, kind)]


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        ('<i class="a notranslate">x y</i>', "x y"),
        ('<b translate="NO">x</b>', "x"),
        ('<mrk mtype="protected">x</mrk>', "x"),
        ("<pre>\n a\n b</pre>", "a b"),
        ("<code>a<i>b</i> &lt;c &amp; d</code>", "ab <c & d"),
        ("<code><code>a</code>b</code>", "ab"),
        ("<code>a<i>b</code>", "ab"),
        (f"<code>{'x' * 40}</code>", "x" * 40),
        (f"<code>{'x' * 41}</code>", None),
        ("<code> </code>", None),
        ("<svg><b>a</b></svg>", None),
        ('<div translate="no">a<script>b</script></div>', "a"),
        *((f"<{name}>a</{name}>", "a") for name in ["code", "kbd", "samp", "var", "tt", "pre"]),
        *(
            (f"<{name}>a</{name}>", None)
            for name in [
                "it",
                "ph",
                "ut",
                "script",
                "style",
                "svg",
                "math",
                "textarea",
                "rp",
                "rt",
                "rtc",
            ]
        ),
        ("&lt;CODE&gt;a b&lt;/CODE&gt;", "a b"),
        ("&amp;lt;var&amp;gt;x&amp;lt;/var&amp;gt;", "x"),
        ("&lt;i translate='no'&gt;x &lt;b&gt;y&lt;/b&gt;&lt;/i&gt;", "x y"),
    ],
)
def test_content_that_must_not_be_translated_is_one_event(element: str, shown: str | None) -> None:
    event = ("point", element, "") if shown is None else ("word", element, shown)
    assert events_of(f"a {element} z") == [("text", "a ", ""), event, ("text", " z", "")]


@pytest.mark.parametrize(
    "tag", ['<i class="no translate">', '<b translate="yes">', '<mrk mtype="term">', "<p>"]
)
def test_other_elements_are_translated(tag: str) -> None:
    name = tag[1:].split()[0].strip(">")
    closing = f"</{name}>"
    expected = [("open", tag, name), ("text", "x", ""), ("close", closing, name)]
    assert events_of(f"{tag}x{closing}") == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        *(
            (f'<{name} translate="no">a<{name}>b', f'<{name} translate="no">a')
            for name in ["p", "li", "dt", "dd", "td", "th", "tr", "option"]
        ),
        ('<li translate="no">a<i>b</i><li>c</li>', '<li translate="no">a<i>b</i>'),
        ("<div><svg>a</div>b", "<svg>a"),
        ("<svg>a<b>c", "<svg>a<b>c"),
        ("<svg><b>a</b></b>c", "<svg><b>a</b>"),
        ("<svg><i><b>a</i></b>c", "<svg><i><b>a</i>"),
    ],
)
def test_an_unclosed_element_ends_where_another_begins_or_an_outer_one_ends(
    text: str, kept: str
) -> None:
    assert [raw for kind, raw, _ in events_of(text) if kind in ("word", "point")] == [kept]


@pytest.mark.parametrize(
    ("opening", "closing", "name"),
    [
        ('<bpt id="1">&lt;b&gt;</bpt>', '<ept id="1"/>', "bpt 1"),
        ("&lt;bpt i='1'&gt;b&lt;/bpt&gt;", "&lt;ept i='1'&gt;b&lt;/ept&gt;", "bpt 1"),
        ('<sc id="2"/>', '<ec startRef="2" id="3"/>', "sc 2"),
        ('<bx id="1" rid="7"/>', '<ex id="2" rid="7"/>', "bx 7"),
        ("<sc/>", "<ec/>", "sc "),
    ],
)
def test_two_elements_of_xliff_make_a_pair(opening: str, closing: str, name: str) -> None:
    expected = [("open", opening, name), ("text", "x", ""), ("close", closing, name)]
    assert events_of(f"{opening}x{closing}") == expected


def test_elements_named_like_empty_ones_are_pairs_if_all_are_closed() -> None:
    assert [kind for kind, *_ in events_of("<link>a</link><br>")] == [
        "open",
        "text",
        "close",
        "point",
    ]
    assert [kind for kind, *_ in events_of("<link>a<link>b</link>")] == [
        "point",
        "text",
        "point",
        "text",
        "close",
    ]
    assert [kind for kind, *_ in events_of("<link>a<link/>b</link>")] == [
        "open",
        "text",
        "point",
        "text",
        "close",
    ]


@pytest.mark.parametrize(
    ("raw", "usual", "in_a_message"),
    [
        ("&eacute;", ("character", "é"), ("character", "é")),
        ("&amp;eacute;", ("word", "&eacute;"), ("character", "é")),
        ("&amp;#39;", ("word", "&#39;"), ("character", "'")),
        ("&amp;rsquo;", ("word", "&rsquo;"), ("character", "’")),
        ("&amp;nbsp;", ("word", "&nbsp;"), ("word", "&nbsp;")),
        ("&amp;amp;", ("word", "&amp;"), ("word", "&amp;")),
        ("&#1;", ("point", ""), ("point", "")),
        ("&lt;br/&gt;", ("word", "<br/>"), ("word", "<br/>")),
    ],
)
def test_escaped_characters(
    raw: str, usual: tuple[str, str], in_a_message: tuple[str, str]
) -> None:
    for kind, (event, shown) in ((MARKUP_TEXT, usual), (MARKUP_MESSAGE, in_a_message)):
        assert events_of(raw, kind) == [(event, raw, shown)]


def test_escaped_tags_are_tags() -> None:
    assert events_of("&lt;b&gt;x&lt;/b&gt;") == [
        ("open", "&lt;b&gt;", "<b"),
        ("text", "x", ""),
        ("close", "&lt;/b&gt;", "<b"),
    ]


def test_a_price_is_no_placeholder_but_the_second_of_two_is() -> None:
    assert (
        "".join(raw for kind, raw, _ in events_of("for $2!", MARKUP_MESSAGE) if kind == "text")
        == "for $2!"
    )
    words = [raw for kind, raw, _ in events_of("for $2, not $1!", MARKUP_MESSAGE) if kind == "word"]
    assert words == ["$2", "$1"]
