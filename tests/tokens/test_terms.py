"""Tests of transduce/tokens/terms.py: translations of terms inside encoded sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.decoding.words import words
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.terms import annotated
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import TERM_MARKS, Vocabulary

TEXTS = ["a dog runs", "the cats  sleep", "ein Hund läuft", "漢字 かな", "dogs, cats: 12"] * 9


@pytest.fixture(scope="module", params=["bpe", "unigram", "imported"])
def vocabulary(request) -> Vocabulary:
    kind = "bpe" if request.param == "imported" else request.param
    found = Tokenizer.train(TEXTS, TEXTS, vocab_size=335, kind=kind, marks=TERM_MARKS).source
    if request.param == "imported":
        found = ImportedVocabulary(found.model, found.all_pieces())
    return found


def plain(ids: list[int], marks: list[int]) -> tuple[list[int], list[list[int]]]:
    """The ids without marks and translations, and the ids of each term."""
    begin, middle, end = marks
    found = list[int]()
    terms = list[list[int]]()
    skips = False
    for token in ids:
        if token == begin:
            terms.append([])
            inside = True
        elif token == middle:
            skips = True
            inside = False
        elif token == end:
            skips = False
        elif not skips:
            found.append(token)
            if terms and inside:
                terms[-1].append(token)
    return found, terms


@given(st.text("dog cats, läuft漢字é€😀\u0301-.12", max_size=20), st.data())
def test_a_source_without_its_terms_has_the_plain_ids(vocabulary, text, data):
    text = " ".join(text.split())
    if not vocabulary.marks:  # an imported vocabulary knows no marks by itself
        vocabulary.marks = dict(
            zip(TERM_MARKS, map(vocabulary.all_pieces().index, TERM_MARKS), strict=True)
        )
    spans = words(text, range(len(text)), inside="")
    chosen = data.draw(st.lists(st.sampled_from(spans), unique=True)) if spans else []
    terms = [(span, data.draw(st.sampled_from(["Hund", "ä 漢", "x"]))) for span in sorted(chosen)]
    [ids] = vocabulary.encode([text]).lists()
    found = annotated(vocabulary, text, ids, terms)
    assert plain(found, vocabulary.term_marks)[0] == ids
    assert found == ids or terms
    [*targets] = vocabulary.encode([target for _, target in terms]).lists()
    assert len(found) == len(ids) + sum(len(target) + 3 for target in targets)


def test_marks_stand_around_the_pieces_of_a_term():
    vocabulary = Tokenizer.train(TEXTS, TEXTS, vocab_size=335, marks=TERM_MARKS).source
    text = "The dog, 漢é läuft. éa"  # é is spelt in bytes
    [ids] = vocabulary.encode([text]).lists()
    for word in ("The", "dog", ",", "漢é", "läuft", ".", "dog, 漢é", "éa"):
        begin = text.index(word)
        found = annotated(vocabulary, text, ids, [((begin, begin + len(word)), "Hund")])
        rest, [term] = plain(found, vocabulary.term_marks)
        assert rest == ids and vocabulary.decode([term])[0].strip() == word
        middle, end = map(found.index, vocabulary.term_marks[1:])
        assert vocabulary.decode([found[middle + 1 : end]]) == ["Hund"]
    part = annotated(vocabulary, text, ids, [((4, 5), "Hund")])
    assert vocabulary.decode(plain(part, vocabulary.term_marks)[1])[0].strip().startswith("d")


def test_no_text_contains_the_marks():
    vocabulary = Tokenizer.train(TEXTS, TEXTS, vocab_size=335, marks=TERM_MARKS).source
    ids = {token for row in vocabulary.encode(list(TERM_MARKS)).lists() for token in row}
    assert not ids & {*vocabulary.term_marks} and len({*vocabulary.term_marks}) == 3
    assert not Tokenizer.train(TEXTS, TEXTS, vocab_size=335).source.term_marks
