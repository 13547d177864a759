"""Tests of transduce/inline/placeholder_removal.py."""

import pytest

from marked_texts import shown
from transduce.inline.markup import speller
from transduce.inline.placeholder_removal import is_text, without_words
from transduce.inline.placeholders import mask, original
from transduce.inline.symbols import symbols_of
from transduce.text.formats import MARKUP_TEXT


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        # One of two blanks is removed, too.
        ("{0}", "_‹{0}›_"),
        ("{0} a", "_‹{0}›_a"),
        ("a {0}", "a_‹{0}›_"),
        ("a {0} b", "a_‹{0}›_ b"),
        ("a {0}.", "a_‹{0}›_."),
        ("a {0}, b", "a_‹{0}›_, b"),
        ("a  {0}  b", "a _‹{0}›_  b"),
        # A part of a word needs no blanks.
        ("a{0}b", "a‹{0}›b"),
        ("a {0}b", "a _‹{0}›b"),
        ("a{0} b", "a‹{0}›_ b"),
        ("{0}b", "_‹{0}›b"),
        ("a{0}", "a‹{0}›_"),
        ("{0}-b", "_‹{0}›-b"),
        # Neither do Chinese words, but other words may take their places.
        ("我{0}你", "我_‹{0}›_你"),
        ("我 {0} 你", "我_‹{0}›_ 你"),
        # Placeholders with only punctuation between them are removed together.
        ("a {0}{1} b", "a_‹{0}{1}›_ b"),
        ("{0}/{1} a", "_‹{0}/{1}›_a"),
        ("a_{0}_{1}_b", "a_‹{0}_{1}›_b"),
        ("{0}, {1}; {2} a", "_‹{0}›_,_‹{1}›_;_‹{2}›_ a"),
        ("a {0} {1} b", "a_‹{0}›__‹{1}›_ b"),
        ("a {0}-b-{1}-{2}", "a_‹{0}›-b-‹{1}-{2}›_"),
        # With their quotes and brackets.
        ('Say "{0}" now', 'Say_‹"{0}"›_ now'),
        ("“{0}” a", "_‹“{0}”›_a"),
        ("a “{0}”.", "a_‹“{0}”›_."),
        ("a ({0}) [{1}]", "a_‹({0})›__‹[{1}]›_"),
        ("a({0})b", "a‹({0})›b"),
        ("a ({0}/{1}) b", "a_‹({0}/{1})›_ b"),
        ("a “{0} b", "a “‹{0}›_ b"),
        ("a '{0}s' b", "a '‹{0}›s' b"),
        ("({0}]", "(‹{0}›]"),
        ("(", "("),
        # A tag that touches a placeholder keeps its place, and the blank that is on its other side.
        ("a <b>{0}</b> b", "a_‹<b>{0}</b>›_ b"),
        ("a <b>{0} b</b>", "a <b>‹{0}›_ b</b>"),
        ("a <b>b {0}</b> c", "a <b>b_‹{0}›</b> c"),
        ("a <b>x</b>{0} b", "a <b>x</b>‹{0}›_ b"),
        ("a {0}<b>x</b> b", "a _‹{0}›<b>x</b> b"),
        ("({0}<b>) x</b>", "(‹{0}›<b>) x</b>"),
        ("<b>x (</b>{0}) y", "<b>x (</b>‹{0}›) y"),
        ("{0}<b>.</b>{1} a", "_‹{0}›<b>.</b>‹{1}›_ a"),
        ("<b>a</b> {0} b", "<b>a</b>_‹{0}›_ b"),
        ("{0}-<b>a</b>", "_‹{0}›-<b>a</b>"),
    ],
)
def test_placeholders_are_removed(text: str, removed: str) -> None:
    masked = without_words(mask(text))
    assert shown(masked) == removed
    assert "".join(original(masked).split()) == "".join(text.split())


def test_what_is_removed_is_spelt_for_markup() -> None:
    masked = without_words(mask("a {0}&lt;{1} &lt;{2}&gt; b", MARKUP_TEXT), speller(""))
    assert shown(masked) == "a_‹{0}&lt;{1}›__‹&lt;{2}&gt;›_ b"


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        # A closing quotation mark needs no blank before it, unless it has one.
        ("“It rains.”", "_‹“›It rains.‹”›_"),
        ("It rains. ” a", "It rains._‹”›_ a"),
        ("a » b", "a_‹»›_ b"),
        ("a →.", "a_‹→›_."),
        ("a.→", "a._‹→›_"),
    ],
)
def test_symbols_are_removed(text: str, removed: str) -> None:
    assert shown(without_words(mask(text, symbols=symbols_of({*"“”»→"})))) == removed


@pytest.mark.parametrize(
    ("text", "has_letters"),
    [("{0} 12 <b>%s</b> ... https://a.b", False), ("{a} 5", False), ("{0} a", True), ("", False)],
)
def test_a_text_has_letters_outside_of_its_placeholders(text: str, has_letters: bool) -> None:
    assert is_text(mask(text)) is has_letters


@pytest.mark.parametrize(
    "quotes", ['""', "''", "()", "[]", "<>", "«»", "»«", "“”", "„“", "‘’", "‚‘"]
)
def test_all_kinds_of_quotes_are_removed(quotes: str) -> None:
    opening, closing = quotes
    quoted = f"{opening}{{0}}{closing}"
    assert shown(without_words(mask(f"a {quoted} b"))) == f"a_‹{quoted}›_ b"
