"""Abbreviations, ordinals and dates end no sentence: the texts of sentences.txt."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.inline import full_stops
from transduce.inline.full_stops import mark
from transduce.inline.segments import split

TEXTS = [
    line.split(" ", 1)
    for line in Path(__file__).with_name("sentences.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
LANGUAGES = sorted({language for language, _ in TEXTS})
PIECES = st.sampled_from(
    ["z. B. ", "3. ", "Mai ", "Dr. ", "etc. ", "II. ", "U.S.", "J.-C. ", "Er ", "e", "د. "]
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_cut_where_sentences_end(language: str) -> None:
    expected = [text for code, text in TEXTS if code == language]
    plain = [text.replace(" | ", " ") for text in expected]
    found = [" | ".join(text[slice(*span)] for span in split(text, language)) for text in plain]
    assert found == expected


def test_thirty_languages_have_ten_texts() -> None:
    numbers = Counter(language for language, _ in TEXTS)
    assert sum(number >= 10 for number in numbers.values()) >= 30


@pytest.mark.parametrize("code", ["deu", "de-AT", "de_CH", "DE"])
def test_codes_of_a_language_have_its_rules(code: str) -> None:
    assert len(split("Das Treffen ist im 2. Stock.", code)) == 1


@given(st.lists(PIECES | st.text(max_size=5)).map("".join), st.sampled_from([*LANGUAGES, "xx", ""]))
def test_marks_replace_full_stops_only(text: str, language: str) -> None:
    marked = mark(text, language)
    assert len(marked) == len(text)
    assert all(
        new == old or (old == "." and new in ",? ") for old, new in zip(text, marked, strict=True)
    )


def test_abbreviations_are_words_of_known_kinds() -> None:
    table = Path(full_stops.__file__).with_name("abbreviations.txt").read_text("utf-8")
    lines = [line.split() for line in table.splitlines() if not line.startswith("#")]
    explained = re.findall("^#   ([a-z]+) ", table, re.MULTILINE)
    assert {kind for _, kind, *_ in lines} == set(explained)
    assert not [word for _, _, *words in lines for word in words if word.endswith(".")]
