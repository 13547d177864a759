"""Tests of transduce/wings/terms/searching.py: the choice of the search, and what became of the terms."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
from corpora import reverse_texts
from models import make_model
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    TERM,
    Guide,
    Match,
    Sentences,
    Term,
    Translation,
    TranslationOptions,
    UsedTerm,
)
from transduce.tokens.terms import annotated
from transduce.tokens.vocabulary import TERM_MARKS
from transduce.wings.terms.glossary import contains
from transduce.wings.terms.searching import TermSearch

TEXTS = reverse_texts(12, seed=8)[0]
GLOSSARY = {"ka": "zu", "lo": "fe fe", "ti so": "du"}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("terms") / "model"
    options = {"decode.retry_loops": False}
    return load(make_model(folder, {}, marks=TERM_MARKS), options, engine="torch")


@pytest.mark.parametrize(
    ("target", "text", "state"),
    [
        ("Haus", "Das Haus.", "kept"),
        ("Haus", "Die Häuser.", "inflected"),
        ("Haus", "Die HÄUSER.", "inflected"),
        ("Haus", "Das Hausboot.", "missed"),
        ("Haus", "", "missed"),
        ("rotes Haus", "vor roten Häusern", "inflected"),
        ("rotes Haus", "Häuser, rot", "missed"),
        ("T-Shirt", "in T-Shirts", "inflected"),
        ("laufen", "Er läuft.", "inflected"),
        ("Hund", "Die Katze und ein Hund", "kept"),
        ("Katze", "ein Hund, zwei Katzen", "inflected"),
    ],
)
def test_states(translator, target, text, state):
    source = "a house"
    options = TranslationOptions(glossary=(Term("house", target),))
    sentences = Sentences([source], translator.encode([source]), [1])
    other = Translation("Haus", -2.0, (), flags=("cut",))
    translation = Translation(text, -1.0, (), alternatives=(other,))
    search = TermSearch(translator, options, sentences, [source])
    found = search.checked(0, translation)
    assert found.terms == (UsedTerm("house", target, state),)
    assert found.flags == ((TERM,) if state == "missed" else ())
    assert found.alternatives[0].terms[0].state == ("kept" if target == "Haus" else "missed")
    assert found.alternatives[0].flags == (("cut",) if target == "Haus" else ("cut", TERM))
    exact = TermSearch(translator, options._replace(glossary_exact=True), sentences, [source])
    expected = "missed" if state == "inflected" else state
    assert exact.checked(0, translation).terms == (UsedTerm("house", target, expected),)


def test_the_model_reads_the_terms_of_each_text(translator):
    glossary = [Term(*each) for each in GLOSSARY.items()]
    found = translator.translate(TEXTS, glossary=glossary, n_best=2)
    sources = translator.encode(TEXTS)
    with_terms = 0
    improved = 0
    for text, source, each in zip(TEXTS, sources, found, strict=True):
        matches = [
            Match((3 * place, 3 * place + 2), GLOSSARY[word])
            for place, word in enumerate(text.split())
            if word in ("ka", "lo")
        ]
        if "ti so" in text:
            continue
        guide = Guide(terms=tuple(matches))
        ids = translator.guided(source, guide, text)
        assert (ids == source) == (not matches)
        if matches:
            with_terms += 1
            assert ids == annotated(translator.tokenizer.source, text, source, matches)
        [first] = translator.translate_sentences([text], TranslationOptions(2), guides=[guide])
        lacking = sum(not contains(first.text, match.target) for match in matches)
        if lacking:
            wider = translator.with_beam_size(12)
            [first] = wider.translate_sentences([text], TranslationOptions(12), guides=[guide])
        texts = [one.text for one in (first, *first.alternatives)]
        assert each.text in texts or lacking
        missed = [sum(not contains(one, match.target) for match in matches) for one in texts]
        now = sum(not contains(each.text, match.target) for match in matches)
        assert now == min([*missed, lacking]), "the most terms of all hypotheses"
        improved += now < lacking
        for one in (each, *each.alternatives):
            assert all(
                (term.state == "kept") == contains(one.text, term.target) for term in one.terms
            )
            assert (TERM in one.flags) == any(term.state == "missed" for term in one.terms)
    assert with_terms > 4 and improved


def test_a_text_without_terms_is_translated_as_ever(translator):
    assert translator.translate(TEXTS, glossary={"none": "x"}) == translator.translate(TEXTS)


def test_terms_that_do_not_fit_are_left_out(translator):
    text = TEXTS[0]
    [source] = translator.encode([text])
    guide = Guide(terms=(Match((0, 2), "zu"),))
    long = translator.guided(source, guide, text)
    for limit, expected in ((len(long), long), (len(long) - 1, source)):
        assert replace(translator, max_length=limit).guided(source, guide, text) == expected


def test_a_term_is_found_in_other_forms_only_if_it_is_inflected(translator):
    options = {"glossary": {"dog": "Hund", "dogs": "Meute", "Cat": "Kater"}}
    texts = ["dogs", "Dog", "cats", "Cats", "CAT"]
    found = translator.translate(texts, **options)
    targets = [[term.target for term in each.terms] for each in found]
    assert targets == [["Meute"], ["Hund"], [], ["Kater"], []]
    exact = translator.translate(texts, **options, glossary_exact=True)
    targets = [[term.target for term in each.terms] for each in exact]
    assert targets == [["Meute"], ["Hund"], [], [], []]


def test_without_marks_a_glossary_is_enforced(tmp_path: Path):
    plain = load(make_model(tmp_path / "model", {}), engine="torch")
    assert not plain.tokenizer.source.term_marks
    found = plain.translate(TEXTS, glossary=GLOSSARY)
    assert found == plain.translate(TEXTS, glossary=GLOSSARY, glossary_exact=True)
    for each in found:
        assert all(contains(each.text, term.target) for term in each.terms) != (TERM in each.flags)
        assert all(term.state != "inflected" for term in each.terms)
    assert any(each.terms for each in found)
