"""Tests of transduce/inline/symbols.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.decoding.plan import Plan
from transduce.decoding.types import UNTRANSLATED, Translation, TranslationOptions
from transduce.inline.events import Event
from transduce.inline.placeholders import intact, mask
from transduce.inline.symbols import symbols_of, with_symbols

KNOWN = {*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöü0123456789 .,!?"}
ODD = [
    "🐶",
    "👍🏽",
    "👩\u200d🚀",
    "❤\ufe0f",
    "🇩🇪",
    "1\ufe0f\u20e3",
    "♪",
    "→",
    "½",
    "東京",
    "Москва",
    "%",
]


def unknown_in(text: str) -> set[str]:
    return {*text} - KNOWN


@pytest.mark.parametrize("symbol", ODD)
def test_a_symbol_is_one_placeholder(symbol: str) -> None:
    text = f"It rains {symbol} now."
    masked = mask(text, symbols=symbols_of(unknown_in(text)))
    assert [mark.opening for mark in masked.words] == [symbol]


@pytest.mark.parametrize("text", ["Łódź is nice.", "a na\u00efve dog", "12 dogs"])
def test_a_part_of_a_word_is_no_symbol(text: str) -> None:
    assert mask(text, symbols=symbols_of(unknown_in(text))).words == []


def test_texts_without_unknown_characters_have_no_symbols() -> None:
    assert symbols_of(unknown_in("It rains.")) is None


@given(st.lists(st.sampled_from([*ODD, "dog", "It", ".", " ", "<b>", "</b>"])).map("".join))
def test_a_text_is_intact_after_masking(text: str) -> None:
    symbols = symbols_of(unknown_in(text))
    assert intact(text, text, symbols=symbols)
    for symbol in ("🐶", "♪"):
        if symbol in text and symbols:
            assert not intact(text, text.replace(symbol, "", 1), symbols=symbols)


def test_symbols_come_back_at_the_aligned_place() -> None:
    text = "It rains 🐶 now."
    plan = Plan([text], options=TranslationOptions(), unknown=unknown_in(text))
    assert plan.sentences == [text, "It rains now."]
    translations = [
        Translation("Es wuff jetzt.", -1.0, ()),
        Translation("Es regnet jetzt.", -1.0, ()),
    ]
    [assembled] = plan.assemble(translations)
    assert assembled.text.count("🐶") == 1
    assert assembled.text.replace(" 🐶", "") == "Es regnet jetzt."


def test_a_text_in_an_unknown_script_is_copied_and_flagged() -> None:
    text = "Собака спит."
    plan = Plan([text], options=TranslationOptions(), unknown=unknown_in(text))
    assert plan.sentences == []
    [assembled] = plan.assemble([])
    assert assembled.text == text
    assert assembled.flags == (UNTRANSLATED,)


def test_a_closing_quotation_mark_follows_a_full_stop_without_a_blank() -> None:
    text = "“It rains.”"
    plan = Plan([text], options=TranslationOptions(), unknown=unknown_in(text))
    translations = [Translation("x", -1.0, ()), Translation("Es regnet.", -1.0, ())]
    [assembled] = plan.assemble(translations)
    assert assembled.text == "“Es regnet.”"


@pytest.mark.parametrize(
    ("text", "unknown", "symbols"),
    [
        ("a 👍🏽 b 👍", "👍🏽", ["👍🏽", "👍"]),
        ("👩\u200d🚀👩", "👩🚀\u200d", ["👩\u200d🚀👩"]),
        ("❤\ufe0f ok", "❤\ufe0f", ["❤\ufe0f"]),
        ("press 1\ufe0f\u20e3 or #\u20e3", "\ufe0f\u20e3", ["1\ufe0f\u20e3", "#\u20e3"]),
        ("½ ² Ⅳ", "½²Ⅳ", ["½", "²", "Ⅳ"]),
        ("東京x 東京 xМосква Москва", "東京Москва", ["東京", "Москва"]),
        ("e\u0301 नमस्ते", "नमस्ते\u0301", ["नमस्ते"]),
        ("a → b", "♪", []),
        ("a_ж ж", "ж", ["ж"]),
    ],
)
def test_symbols_by_hand(text: str, unknown: str, symbols: list[str]) -> None:
    pattern = symbols_of({*unknown})
    assert pattern
    assert [match.group() for match in pattern.finditer(text)] == symbols
    events = [*with_symbols([Event("text", text, text), Event("tag", "→", "→")], pattern)]
    assert "".join(event.raw for event in events) == text + "→"
    assert [event.raw for event in events if event.kind == "word"] == symbols
    assert events[-1] == Event("tag", "→", "→")


def test_known_characters_are_no_symbols() -> None:
    for unknown in ("", "a", "5", " ", "\ud800"):
        assert symbols_of({*unknown}) is None
    events = [Event("text", "a ♪", "a ♪")]
    assert [*with_symbols(events, None)] == events == [*with_symbols(events, symbols_of({"→"}))]
