"""Tests of transduce/wings/terms/lexicon.py."""

from itertools import combinations

import pytest

pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
from transduce.wings.terms import lexicon
from transduce.wings.terms.lemmas import Lemmas
from transduce.wings.terms.lexicon import Lexicon, Word, words_in

NOUNS = {"dog": "Hund", "cat": "Katze", "cow": "Kuh", "bird": "Vogel", "house": "Haus"}


def test_words_that_may_be_terms_have_letters_alone():
    found = words_in("Two dogs, 12 pigs-in x42 at Rome.", Lemmas("en"))
    assert [each.lemma for each in found] == ["two", "dog", "pig", "Rome"]
    assert found[1] == Word("dog", (4, 8))


def test_words_are_aligned_by_what_they_occur_with(monkeypatch):
    """Whatever their order and form; the most frequent words have no translations."""
    monkeypatch.setattr(lexicon, "NUM_FUNCTION_WORDS", 1)
    texts = [
        (f"the {a}s and the {b}", f"das {NOUNS[b]} und das {NOUNS[a]}")
        for a, b in combinations(NOUNS, 2)
    ]
    both = Lemmas("en"), Lemmas("de")
    pairs = [(words_in(one, both[0]), words_in(other, both[1])) for one, other in texts]
    learnt = Lexicon(pairs)
    assert "the" not in learnt.translations
    for source, target in pairs:
        found = {(source[i].lemma, target[j].lemma) for i, j in learnt.align(source, target)}
        nouns = {word.lemma for word in source} - {"the", "and"}
        assert {(noun, NOUNS[noun]) for noun in nouns} == found - {("and", "und")}
    words = [Word("dog", (0, 3)), Word("new", (4, 7)), Word("dog", (8, 11))]
    assert learnt.align(words, [Word("Hund", (0, 4))]) == [(0, 0)]
    assert learnt.align(words, [Word("Kuh", (0, 3))]) == learnt.align([], []) == []


def test_no_words_have_no_translations():
    assert Lexicon([]).translations == Lexicon([([], [])]).translations == {}
