"""Texts of sentences and paragraphs: taken apart, nothing is lost."""

import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.inline.placeholders import Mark, Masked
from transduce.inline.segments import WINDOW, _halves, shorten, split, whole, whole_words
from transduce.tokens.spans import Span

ABBREVIATED = (
    "Dr. Smith came. ",
    "z. B. so. ",
    "1. ",
    "- item",
    "Was?",
    "Ja!",
    "…",
    "»Nein.« ",
    "你好。",
    "मैं हूँ। ",
)
ODD = (
    " ",
    "\n",
    "\r\n",
    "\t",
    "\u00a0",
    "\u2028",
    "\x85",
    "\x0b",
    "\x1c",
    "\u200b",
    "\ud83d",
    "😀",
)
PIECES = st.sampled_from([*ABBREVIATED, *ODD])
TEXTS = st.text() | st.lists(PIECES | st.text(max_size=5)).map("".join)
LANGUAGES = st.sampled_from(["en", "de", "de-AT", "fr", "zh", "hi", "xx", ""])


def cut(text: str, spans: list[Span]) -> tuple[list[str], list[str]]:
    """The sentences, and what is before, between and behind them."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    return [text[slice(*span)] for span in spans], [
        text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]


@given(TEXTS, LANGUAGES, st.sampled_from([1, 7, WINDOW]))
def test_segments_join_to_the_text(text: str, language: str, window: int) -> None:
    with mock.patch("transduce.inline.segments.WINDOW", window):
        sentences, separators = cut(text, split(text, language))
    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert all(
        re.fullmatch(r"\s*((?:[-*+•‣–—·]|\d+[.)]|\w\))\s+)?", separator) for separator in separators
    )
    assert not any(re.search("[\t\n\r\x85\u2028]", sentence) for sentence in sentences)


@given(TEXTS.filter(str.strip), st.integers(1, 20))
def test_a_long_sentence_is_cut_into_parts_that_fit(text: str, longest: int) -> None:
    for begin, end in split(text, "en"):
        spans = shorten(text, (begin, end), lambda parts: [len(part) for part in parts], longest)
        assert (spans[0][0], spans[-1][1]) == (begin, end)
        parts, (_, *separators, _) = cut(text, spans)
        assert all(part.strip() and len(part) <= longest for part in parts)
        assert not any(separator.strip() for separator in separators)


def test_sentences_are_cut_at_clause_ends() -> None:
    sentence = "The report, which nobody had read before the meeting, was put aside, and nobody asked for it again."
    parts, _ = cut(
        sentence,
        shorten(sentence, (0, len(sentence)), lambda parts: [len(part) for part in parts], 60),
    )
    assert parts[0] == "The report, which nobody had read before the meeting,"
    assert parts[1] == "was put aside, and nobody asked for it again."


def test_numbers_are_not_cut_at_their_signs() -> None:
    sentence = "It cost 1,000,000 dollars at 10:30 on that day"
    parts, _ = cut(
        sentence,
        shorten(sentence, (0, len(sentence)), lambda parts: [len(part) for part in parts], 12),
    )
    assert {"1,000,000", "10:30"} <= set(" ".join(parts).split())


@pytest.mark.parametrize(
    "text",
    [
        "ក្ត",
        "บ่",
        "ကော",
        "को",
        "क्त",
        "👩\u200d🔧",
        "👩🏽",
        "e\u0301",
        "กำ",
        "ກຳ",
        "1\u20e3",
        "\u1100\u1161",
    ],
)
def test_a_text_without_blanks_is_not_cut_inside_a_character(text: str) -> None:
    for repeated in (text * 8, "a" + text * 8):
        parts, _ = cut(
            repeated, shorten(repeated, (0, len(repeated)), lambda parts: [*map(len, parts)], 5)
        )
        assert all(part.removeprefix("a").startswith(text[0]) for part in parts)


@pytest.mark.parametrize("mark", ["។", "၊", "။", "፣", "।", "۔ "])
def test_clauses_of_other_scripts_are_the_best_places_to_cut(mark: str) -> None:
    sentence = f"aa{mark}bb bbb b"
    parts, _ = cut(
        sentence, shorten(sentence, (0, len(sentence)), lambda parts: [*map(len, parts)], 8)
    )
    assert parts == [f"aa{mark.strip()}", "bb bbb b"]


def test_a_sentence_that_fits_is_not_cut() -> None:
    assert shorten("a b c d", (2, 7), lambda parts: [*map(len, parts)], 5) == [(2, 7)]
    assert shorten("a b c d", (2, 7), lambda parts: [*map(len, parts)], 4) == [(2, 5), (6, 7)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [("", []), (" \n", []), (" a b\n", [(1, 4)]), ("\ufeff a", [(2, 3)]), ("\ufeff", [])],
)
def test_a_text_may_be_one_sentence(text: str, spans: list[Span]) -> None:
    assert whole(text) == spans


def test_unshortenable_part_stays_whole() -> None:
    assert shorten("ab", (0, 2), lambda parts: [9] * len(parts), 3) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        (
            "en",
            "Dr. Smith came. He left at 3.30 p.m. sharp.",
            ["Dr. Smith came.", "He left at 3.30 p.m. sharp."],
        ),
        ("de", "Das ist z. B. gut.  Und dann?", ["Das ist z. B. gut.", "Und dann?"]),
        ("de-AT", "Das ist z. B. gut. Ja.", ["Das ist z. B. gut.", "Ja."]),
        ("fr", "Il est 3 h 30 env. ici. Il part.", ["Il est 3 h 30 env. ici.", "Il part."]),
        ("de", "Er liebt mich. Sie geht.", ["Er liebt mich.", "Sie geht."]),
        ("de", "Tu, was er mag. Dann geh.", ["Tu, was er mag.", "Dann geh."]),
        ("de", "Er hat einen Bart. Er geht.", ["Er hat einen Bart.", "Er geht."]),
        ("fr", "C'était un vol. Il part.", ["C'était un vol.", "Il part."]),
        ("fr", "Voir vol. 3 ici.", ["Voir vol. 3 ici."]),
        ("zh", "你好。再见！", ["你好。", "再见！"]),
        (
            "km",
            "ខ្ញុំទៅសាលារៀន។ គាត់នៅផ្ទះ។តើអ្នកសុខសប្បាយទេ?",
            ["ខ្ញុំទៅសាលារៀន។", "គាត់នៅផ្ទះ។", "តើអ្នកសុខសប្បាយទេ?"],
        ),
        ("km", "ឆ្កែ ឆ្មា ។ល។ “ខ្ញុំ៕” គាត់", ["ឆ្កែ ឆ្មា ។ល។", "“ខ្ញុំ៕”", "គាត់"]),
        ("bo", "ང་ལ་དགའ། །ཁྱེད་རང་། ང་", ["ང་ལ་དགའ། །", "ཁྱེད་རང་།", "ང་"]),
        ("am", "ሰላም ነው፡፡ እንዴት፡ነህ፡፡", ["ሰላም ነው፡፡", "እንዴት፡ነህ፡፡"]),
        ("en", "- one\r\n- two\r\n\r\n\tname\tvalue \n", ["one", "two", "name", "value"]),
        ("en", "1. First. Second.\n  b) third\n* *", ["First.", "Second.", "third", "*"]),
        ("en", "\n \t\n", []),
        ("en", "\ufeffA dog. A cat.\n\ufeffB", ["A dog.", "A cat.", "\ufeffB"]),
        ("en", "\ufeff- one", ["one"]),
        ("en", "-\nfoo\na)\nb", ["-", "foo", "a)", "b"]),  # no bullets without a text
        ("cs", " 3. října prší. Ano.", ["3. října prší.", "Ano."]),  # an ordinal
        ("cs", " 3. Prší. Ano.", ["Prší.", "Ano."]),
    ],
)
def test_sentence_ends_by_hand(language: str, text: str, sentences: list[str]) -> None:
    assert cut(text, split(text, language))[0] == sentences


def test_a_long_paragraph_has_the_sentences_of_short_ones() -> None:
    sentences = [f"{i} dogs came to {'the very ' * (i % 40)}old house." for i in range(200)]
    sentences[7] += WINDOW * "x" + "."
    assert cut(" ".join(sentences), split(" ".join(sentences), "en"))[0] == sentences


@pytest.mark.parametrize("end", ["Am 3. Januar kam er.", "Er sagte: „Halt. Genug.“"])
@pytest.mark.parametrize("offset", range(0, 40, 3))
def test_sentence_ends_at_window_borders_depend_on_the_next_text(end: str, offset: int) -> None:
    begin = "Es regnet. " * 170
    text = f"{'x' * (WINDOW - len(begin) - offset)}. {begin}{end}{' Und dann.' * 99}"
    assert end in cut(text, split(text, "de"))[0]


@pytest.mark.parametrize("rest", [0, 1, 60])
def test_a_sentence_may_be_as_long_as_a_window(rest: int) -> None:
    text = "x" * (WINDOW + rest)
    assert split(text, "en") == [(0, len(text))]


def test_no_sentence_end_close_to_the_border_of_a_window_is_lost() -> None:
    sentences = [
        "x" * (WINDOW - 70) + ".",
        "One is short.",
        f"Another {'very ' * 20}long one.",
        "B.",
    ]
    assert cut(" ".join(sentences), split(" ".join(sentences), "en"))[0] == sentences


@pytest.mark.parametrize(("opening", "closing"), ["«»", "“”", "()"])
def test_distant_closing_mark_hides_few_sentence_ends(opening: str, closing: str) -> None:
    text = f"Il dit : {opening} oui. {'Il pleut encore. ' * 1000}Non {closing} !"
    assert len(split(text, "fr")) > 800


@pytest.mark.parametrize("blank", ["\u00a0", "\u2009", "\u3000", " \u00a0 "])
@pytest.mark.parametrize("language", ["en", "fr", "ja"])
def test_wide_blanks_before_a_full_stop(language, blank):
    """Without a replacement, sentencex panics."""
    text = f"Plan A{blank}. Then plan B{blank}."
    sentences = (text[begin:end] for begin, end in split(text, language))
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaaaa, ", ["aaaa", "aa, "]),  # no part is empty
        ("aaaa, bb cc", ["aaaa,", "bb cc"]),
        ("a, bbbbbbbbbbb cc dddd", ["a, bbbbbbbbbbb", "cc dddd"]),
        (" aaaaaa", [" aa", "aaaa"]),
        # The end of a clause may be as far as 80 % from the middle, but no farther.
        ("aa, bbbbbbbbb cccccccc", ["aa,", "bbbbbbbbb cccccccc"]),
        ("a, bbbbbbbb cccccccc", ["a, bbbbbbbb", "cccccccc"]),
    ],
)
def test_a_long_sentence_is_cut_near_its_middle(text: str, parts: list[str]) -> None:
    begin = 3
    spans = _halves("xxx" + text + "yyy", begin, begin + len(text))
    assert [("xxx" + text)[b:e] for b, e in spans] == parts


@pytest.mark.parametrize(
    ("spans", "words", "merged"),
    [
        ([(0, 4), (5, 9)], [(3, 6)], [(0, 9)]),
        ([(0, 3), (7, 9)], [(3, 6)], [(0, 3), (7, 9)]),
        ([(0, 6), (7, 9)], [(3, 6)], [(0, 6), (7, 9)]),
        ([(0, 2), (4, 9)], [(3, 6)], [(0, 9)]),
        ([(0, 4), (5, 9), (10, 12)], [(0, 1), (8, 11)], [(0, 4), (5, 12)]),
        ([(0, 4), (5, 9), (10, 12)], [(3, 11)], [(0, 12)]),
    ],
)
def test_no_placeholder_extends_across_a_border(
    spans: list[Span], words: list[Span], merged: list[Span]
) -> None:
    marks = tuple(Mark("word", begin, end, "{0}") for begin, end in words)
    assert whole_words(Masked("x" * 12, marks), spans) == merged


def test_line_breaks_and_bullets_separate_sentences() -> None:
    for character in "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029":
        assert split(f"A dog{character} a cat", "en") == [(0, 5), (7, 12)]
    for bullet in ("-", "*", "+", "•", "‣", "–", "—", "·", "1)", "123)", "a)", "Z)", "1.", "12."):
        text = f" {bullet}  A dog"
        assert split(text, "en") == [(len(text) - 5, len(text))]
    for word in ("~", "1234)", "ab)", "1234.", "(a)"):
        assert split(f"{word} A dog", "en")[0][0] == 0


@pytest.mark.parametrize(
    "sentence",
    [
        *(f"aaaaaaaaa{sign}| bb bbbb bb" for sign in ";:,)]–؛،۔"),
        *(f"aaaaaaaaa{sign}|bb bbbb bbb" for sign in "—、，；：。។៖၊။፣።।"),
        *(f"aaaaaaaaa| {sign}bb bbbb bbb" for sign in "([–"),
        *(f"aaa{sign}aaa bbb| bbb ccc ccc" for sign in ";:,.)!"),
    ],
)
def test_a_long_sentence_is_cut_at_the_end_of_a_clause(sentence: str) -> None:
    text = sentence.replace("|", "")
    assert [text[b:e] for b, e in _halves(text, 0, len(text))] == [
        part.strip() for part in sentence.split("|")
    ]
