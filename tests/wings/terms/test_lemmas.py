"""Tests of transduce/wings/terms/lemmas.py."""

import builtins

import pytest

pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
from transduce.system.errors import NotInstalledError
from transduce.wings.terms.lemmas import Lemmas


@pytest.mark.parametrize(
    ("language", "word", "lemma"),
    [
        ("de", "Häuser", "Haus"),
        ("de", "läuft", "laufen"),
        ("de_AT", "Hunden", "Hund"),
        ("deu", "Hunden", "Hund"),
        ("en", "dogs", "dog"),
        ("en", "Xyzzyx", "Xyzzyx"),
        ("xx", "Hunden", "Hunden"),
    ],
)
def test_dictionary_forms(language, word, lemma):
    assert Lemmas(language).of(word) == lemma


@pytest.mark.parametrize(
    ("language", "one", "other", "expected"),
    [
        ("de", "Haus", "Häusern", True),
        ("de", "haus", "Haus", True),
        ("de", "Hund", "Hundert", False),  # two words that simplemma knows
        ("de", "Quirlbank", "Quirlbänken", True),  # unknown: equal but for accents and an ending
        ("de", "Quirlbank", "Quirlbanditen", False),
        ("xx", "talo", "taloja", True),
        ("xx", "tal", "talo", False),  # too short a stem
        ("xx", "talo", "talossani", False),
        ("xx", "", "talo", False),
    ],
)
def test_forms_of_the_same_word(language, one, other, expected):
    lemmas = Lemmas(language)
    assert lemmas.same(one, other) == lemmas.same(other, one) == expected


@pytest.mark.parametrize(
    ("word", "form"),
    [("Dogs", "Dog"), ("dogs", "dog"), ("IT", "IT"), ("Apples", "Apple"), ("I", "I")],
)
def test_capitals_distinguish_names(word, form):
    assert Lemmas("en").with_capitals(word) == form


def test_without_simplemma_the_extra_is_named(monkeypatch):
    plain = builtins.__import__

    def without(name, *arguments):
        if name == "simplemma":
            raise ImportError(name)
        return plain(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotInstalledError, match=r"need simplemma.*transduce\[terms\]"):
        Lemmas("de")
