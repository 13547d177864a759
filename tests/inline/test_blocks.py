"""The tags of blocks and line breaks separate texts, whatever the file."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.decoding.plan import Plan
from transduce.decoding.types import Link, Translation, TranslationOptions
from transduce.inline.blocks import cut_at_blocks, edges, spaced
from transduce.inline.placeholders import mask
from transduce.text.formats import MARKUP_TEXT, MESSAGE, PLAIN_TEXT, PRESERVED_TEXT, TextKind
from transduce.text.pairs import read_pairs

BLOCKS: dict[str, tuple[TextKind, str, str]] = {  # kinds of texts, and tags around a text
    "HTML in a message": (PLAIN_TEXT, "<li>", "</li>"),
    "HTML in XML": (MARKUP_TEXT, "<td class='a'>", "</td>"),
    "escaped HTML": (PRESERVED_TEXT, "&lt;p&gt;", "&lt;/p&gt;"),
    "a line break in a message": (PLAIN_TEXT, "", "<br>"),
    "an escaped line break": (MARKUP_TEXT, "", "&lt;BR/&gt;"),
    "an element on two lines": (MARKUP_TEXT, '<x id="1"\n ctype="lb"/>', ""),
    "the type of an element": (MARKUP_TEXT, '<x id="1" ctype="lb"/>', ""),
    "the type of a pair": (PRESERVED_TEXT, '<g id="1" ctype="x-li">', "</g>"),
    "code in an element": (
        MARKUP_TEXT,
        '<bpt id="1">&lt;li&gt;</bpt>',
        '<ept id="1">&lt;/li&gt;</ept>',
    ),
    "what an element shows": (MARKUP_TEXT, '<x id="START_ITEM" equiv-text="&lt;li&gt;"/>', ""),
    "XLIFF 2": (MARKUP_TEXT, '<ph id="1" type="fmt" subType="xlf:lb"/>', ""),
}


def in_capitals(sentences: Sequence[str], *_: object) -> list[Translation]:
    """An engine that translates each word into two words, and aligns none."""
    doubled = (
        re.sub("[a-z]+", lambda word: f"{word[0]} {word[0]}".upper(), sentence)
        for sentence in sentences
    )
    return [Translation(text, 0.0, ()) for text in doubled]


@given(
    st.sampled_from([*BLOCKS]),
    st.lists(st.sampled_from(["one dog", "two", "a cat runs"]), min_size=1, max_size=5),
)
def test_the_text_of_a_block_stays_in_it(name: str, texts: list[str]) -> None:
    kind, before, behind = BLOCKS[name]
    plan = Plan(["".join(f"{before}{text}{behind}" for text in texts)], "en", kinds=[kind])
    assert plan.sentences == texts
    (translation,) = plan.assemble(plan.translate(in_capitals, [1]))
    words = (" ".join(f"{word} {word}" for word in text.upper().split()) for text in texts)
    assert translation.text == "".join(f"{before}{text}{behind}" for text in words)
    assert translation.flags == ()


@pytest.mark.parametrize(
    "text", ["Join <table> to <b>a table</b>", "A<sup>p</sup> and <pre>x</pre>", "a <path/> b"]
)
def test_other_tags_stay_in_their_sentence(text: str) -> None:
    assert Plan([text], "en").sentences[0] == mask(text).text


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        ("One dog<ph>&lt;br/&gt;</ph>two", "One dog two"),
        (
            '<bpt i="1">&lt;li&gt;</bpt>One<ept i="1"/><it>&lt;b&gt;</it><ph>&lt;/li&gt;</ph>two',
            "One two",
        ),
        ("One, <ph>&lt;br/&gt;</ph>two<ph>&lt;br/&gt;</ph>.", "One, two."),
        ("One<ph>&lt;i&gt;</ph>s", "Ones"),
        ("一。<ph>&lt;br/&gt;</ph>二", "一。二"),
    ],
)
def test_a_corpus_has_a_blank_for_a_block(segment: str, said: str, tmp_path: Path) -> None:
    memory, xliff = tmp_path / "a.tmx", tmp_path / "a.xlf"
    variants = "".join(
        f'<tuv xml:lang="{code}"><seg>{segment}</seg></tuv>' for code in ("en", "de")
    )
    memory.write_text(
        f'<tmx version="1.4"><header srclang="en"/><body><tu>{variants}</tu></body></tmx>'
    )
    unit = f"<trans-unit><source>{segment}</source><target>{segment}</target></trans-unit>".replace(
        " i=", " id="
    )
    xliff.write_text(
        f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>'
    )
    for file in (memory, xliff):
        assert [pair[:2] for pair in read_pairs([str(file)], ("en", "de"))] == [(said, said)]


def test_masked_texts_of_a_corpus_have_a_blank_for_a_block() -> None:
    assert spaced(mask("<li>One dog</li><li>two cats</li>")) == "One dog two cats"
    assert spaced(mask("<b>O</b>ne <p> dog</p>")) == "One  dog"
    assert spaced(mask("One<br>two")) == "One<br>two"  # a placeholder


def test_a_line_break_of_chinese_gets_no_blank() -> None:
    plan = Plan(["一<br>二。三<br/>"], "zh")
    words = dict(zip("一二三", ("One", "two.", "Three"), strict=True))
    (whole,) = plan.assemble(
        [Translation(words.get(text.strip("。"), text), 0.0, ()) for text in plan.sentences]
    )
    assert whole.text == "One<br>two. Three<br/>"


def test_links_move_with_their_block() -> None:
    plan = Plan(["<p>One</p><p>dog</p>"], "en", options=TranslationOptions(align=True))
    translations = [
        Translation(text.upper(), 0.0, (), links=(Link((0, 3), (0, 3), 1.0),))
        for text in plan.sentences
    ]
    (whole,) = plan.assemble(translations)
    assert [whole.text[slice(*link.target)] for link in whole.links] == ["ONE", "DOG"]


@pytest.mark.parametrize(
    ("text", "kind", "parts", "with_blanks"),
    [
        ("a<td>b</td>c d", MARKUP_TEXT, "a|b|c d", "a b c d"),
        ("<p>One dog</p><p> two </p>", MARKUP_TEXT, "One dog|two", "One dog two "),
        ("a <b>b</b><br/>c", MARKUP_TEXT, "a b|c", "a b c"),
        ("<li>a</li> <li></li>b", MARKUP_TEXT, "a|b", "a b"),
        ("<p> </p>a", MARKUP_TEXT, "a", " a"),
        ("a<br/>.<br/>b", MARKUP_TEXT, "a|.|b", "a. b"),
        # A line break may be a placeholder, which stays in its place.
        ("one<br>two <li> x", PLAIN_TEXT, "one|<br>|two <li> x", "one<br>two <li> x"),
        (r"one two\n three\x", MESSAGE, r"one two|\n|three\x", r"one two\n three\x"),
    ],
)
def test_blocks_by_hand(text: str, kind: TextKind, parts: str, with_blanks: str) -> None:
    masked = mask(text, kind)
    spans = cut_at_blocks(masked, [(0, len(masked.text))])
    assert [masked.text[slice(*span)] for span in spans] == parts.split("|")
    assert spaced(masked) == with_blanks
    # What was cut is not cut again, and no sentence is joined.
    assert cut_at_blocks(masked, spans) == spans
    placeholders = {edge for mark in masked.words for edge in (mark.begin, mark.end)}
    found = edges(masked, with_words=True)
    assert found == sorted({*found}) and len(found) >= len(parts.split("|")) - 1
    assert edges(masked, with_words=False) == [edge for edge in found if edge not in placeholders]


def test_tags_of_blocks_are_those_of_html() -> None:
    blocks = "p div br hr tr li ul ol dl dt dd td th table thead tbody caption h1 h6 blockquote"
    others = "b i a span code q h7 pl link dir html path bra"
    for names, is_block in ((blocks + " section note", True), (others, False)):
        for name in names.split():
            for text in (f"a<{name}>b", f"a</{name.upper()}>b", f"a<x ctype='{name}'/>b"):
                assert bool(edges(mask(text, MARKUP_TEXT), with_words=True)) is is_block, text
