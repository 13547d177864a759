"""Tests of transduce/wings/memories/similarity.py."""

import pytest

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.wings.memories.similarity import form, number_of, similarity, terms, tokens


def test_tokens_are_words_marks_and_single_characters_of_scripts_without_spaces() -> None:
    assert tokens("Don't stop: 3 Straßen!") == ["don", "'", "t", "stop", ":", "3", "strassen", "!"]
    assert tokens("東京 is ไทย") == ["東", "京", "is", "ไ", "ท", "ย"]
    assert tokens(" \n") == []


def test_terms_are_words_and_pairs_of_neighbouring_words() -> None:
    assert terms(tokens("A dog, a cat.")) == ["a", "dog", "a", "cat", "a_dog", "dog_a", "a_cat"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a  dog ", "a dog", True),
        ("a\u0308", "\u00e4", True),
        ("A dog", "a dog", False),
        ("a dog\nruns", "a dog runs", False),
        ("a dog \n runs", "a dog\nruns", True),
    ],
)
def test_form_ignores_spaces_and_composition_only(one: str, other: str, same: bool) -> None:
    assert (form(one) == form(other)) is same
    assert (number_of(form(one)) == number_of(form(other))) is same


def test_similarity_is_the_share_of_tokens_that_need_no_edit() -> None:
    assert similarity(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]) == pytest.approx(1 - 2 / 5)
    assert similarity(["a"], ["a"]) == 1
