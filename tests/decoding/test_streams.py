"""`Translator.translate` of an iterator: the translations of the list, as an iterator that reads windows of texts."""

import inspect
from collections.abc import Iterator
from itertools import count, islice
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrases import SOURCES
from transduce.decoding import translator as translator_module
from transduce.decoding.translator import TranslateArguments, Translator
from transduce.decoding.types import Translation
from transduce.system.errors import UserError

WINDOW = 3


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator_module, "CHUNK_LINES", WINDOW)


def texts_of(translations: list[Translation]) -> list[list[str]]:
    return [[each.text, *(other.text for other in each.alternatives)] for each in translations]


@given(
    texts=st.lists(st.sampled_from([*SOURCES[:8], "", "7", "\ufeff" + SOURCES[0]]), max_size=8),
    n_best=st.sampled_from([1, 3]),
    sentences=st.booleans(),
)
def test_an_iterator_gets_the_translations_of_the_list(translator, texts, n_best, sentences):
    expected = translator.translate(texts, n_best=n_best, sentences=sentences)
    found = translator.translate(iter(texts), n_best=n_best, sentences=sentences)
    assert isinstance(expected, list) and isinstance(found, Iterator)
    found = list(found)
    assert texts_of(found) == texts_of(expected)
    assert [each.flags for each in found] == [each.flags for each in expected]
    assert [each.score for each in found] == pytest.approx(
        [each.score for each in expected], abs=1e-4
    )


def test_an_iterator_is_read_as_its_translations_are(translator):
    numbers = count()
    endless = (SOURCES[next(numbers) % 20] for _ in count())
    translations = translator.translate(endless)
    assert next(numbers) == 0, "read before a translation was asked for"
    assert len(list(islice(translations, 4))) == 4
    assert next(numbers) == 1 + 2 * WINDOW, "read more than the windows of these translations"


@pytest.mark.parametrize("n_best", [0, 99])
@pytest.mark.parametrize("sentences", [False, True])
def test_n_best_is_checked_for_sentences_and_texts(translator, n_best, sentences):
    with pytest.raises(UserError, match="n_best must be from 1 to"):
        translator.translate(SOURCES[:1], n_best=n_best, sentences=sentences)


def test_mistakes_in_arguments_are_found_at_the_call(translator):
    with pytest.raises(UserError, match="n_best must be from 1 to"):
        translator.translate(iter(SOURCES), n_best=99)
    with pytest.raises(UserError, match="an iterator can't have prefixes"):
        translator.translate(iter(SOURCES), prefixes=["E"] * len(SOURCES))
    with pytest.raises(UserError, match="The model does not translate from xx"):
        translator.translate(iter(SOURCES), source="xx")


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (5, TypeError, "item 4 is not a text but 5"),
        ("two\nlines", UserError, "Text 5 contains a line break"),
    ],
)
def test_translations_before_a_wrong_text_are_not_lost(translator, wrong, error, said):
    translations = translator.translate(iter([*SOURCES[:4], wrong]))
    assert len(list(islice(translations, WINDOW))) == WINDOW
    with pytest.raises(error, match=said):
        next(translations)


def test_the_types_name_the_arguments_that_there_are():
    hints = get_type_hints(Translator.translate)
    assert get_type_hints(TranslateArguments) == {
        name: hints[name]
        for name, each in inspect.signature(Translator.translate).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
