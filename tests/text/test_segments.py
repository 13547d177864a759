"""Texts of sentences and paragraphs: taken apart, nothing is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.segments import join, shorten, split

ABBREVIATED = ("Dr. Smith came. ", "z. B. so. ", "1. ", "- item", "Was?", "Ja!", "…", "»Nein.« ", "你好。", "मैं हूँ। ")
ODD = (" ", "\n", "\r\n", "\t", "\u00a0", "\u2028", "\x85", "\x0b", "\x1c", "\u200b", "\ud83d", "😀")
PIECES = st.sampled_from([*ABBREVIATED, *ODD])
TEXTS = st.text() | st.lists(PIECES | st.text(max_size=5)).map("".join)
LANGUAGES = st.sampled_from(["en", "de", "de-AT", "fr", "zh", "hi", "xx", ""])


@given(TEXTS, LANGUAGES)
def test_nothing_is_lost(text: str, language: str) -> None:
    sentences, separators = split(text, language)
    assert join(separators, sentences) == text
    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert all(re.fullmatch(r"\s*((?:[-*+•‣–—·]|\d+[.)]|\w\))\s+)?", separator) for separator in separators)
    assert not any(re.search("[\t\n\r\x85\u2028]", sentence) for sentence in sentences)


@given(TEXTS.filter(str.strip), st.integers(1, 20))
def test_a_long_sentence_is_cut_into_parts_that_fit(text: str, longest: int) -> None:
    for sentence in split(text, "en").sentences:
        parts, separators = shorten(sentence, lambda parts: [len(part) for part in parts], longest)
        assert join(separators, parts) == sentence
        assert all(part.strip() and len(part) <= longest for part in parts)
        assert not any(separator.strip() for separator in separators)


def test_it_is_cut_where_a_clause_ends() -> None:
    sentence = "The report, which nobody had read before the meeting, was put aside, and nobody asked for it again."
    parts, _ = shorten(sentence, lambda parts: [len(part) for part in parts], 60)
    assert parts[0] == "The report, which nobody had read before the meeting,"
    assert parts[1] == "was put aside, and nobody asked for it again."


def test_numbers_are_not_cut_at_their_signs() -> None:
    sentence = "It cost 1,000,000 dollars at 10:30 on that day"
    parts, _ = shorten(sentence, lambda parts: [len(part) for part in parts], 12)
    assert {"1,000,000", "10:30"} <= set(" ".join(parts).split())


def test_a_part_that_is_never_short_enough_stays() -> None:
    assert shorten("ab", lambda parts: [9] * len(parts), 3).sentences == ["a", "b"]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "Dr. Smith came. He left at 3.30 p.m. sharp.", ["Dr. Smith came.", "He left at 3.30 p.m. sharp."]),
        ("de", "Das ist z. B. gut.  Und dann?", ["Das ist z. B. gut.", "Und dann?"]),
        ("de-AT", "Das ist z. B. gut. Ja.", ["Das ist z. B. gut.", "Ja."]),
        ("fr", "Il est 3 h 30 env. ici. Il part.", ["Il est 3 h 30 env. ici.", "Il part."]),
        ("zh", "你好。再见！", ["你好。", "再见！"]),
        ("en", "- one\r\n- two\r\n\r\n\tname\tvalue \n", ["one", "two", "name", "value"]),
        ("en", "1. First. Second.\n  b) third\n* *", ["First.", "Second.", "third", "*"]),
        ("en", "\n \t\n", []),
    ],
)
def test_examples(language: str, text: str, sentences: list[str]) -> None:
    assert split(text, language).sentences == sentences


def test_separators_must_be_one_more() -> None:
    with pytest.raises(ValueError, match="zip"):
        join([""], ["a"])
