"""Tests of transduce/decoding/types.py."""

from dataclasses import replace

import pytest

from engines import SMALL, lively
from phrases import CONFIG, SOURCES, TARGETS, own
from transduce.config.schema import RunConfig
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    PLAIN_SEARCH,
    ModelToOpen,
    Request,
    Sentences,
    Term,
    TranslationOptions,
    as_list,
    as_terms,
    length_penalty,
)
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer


def test_n_best_needs_a_beam():
    for n_best in (1, 4):
        TranslationOptions(n_best=n_best).check(4)
    for n_best in (0, 5):
        with pytest.raises(UserError, match=rf"from 1 to decode.beam_size \(4\), not {n_best}"):
            TranslationOptions(n_best=n_best).check(4)


def test_some_sentences_are_selected():
    sentences = Sentences(["a", "b", "c"], [[1], [2], [3]], [7, 8, 9])
    assert sentences.select([2, 0]) == Sentences(["c", "a"], [[3], [1]], [9, 7])


def test_the_length_penalty_by_hand():
    assert length_penalty(1, 0.6) == length_penalty(9, 0.0) == 1.0
    assert length_penalty(7, 1.0) == 2.0 and length_penalty(7, 2.0) == 4.0


def test_lists_of_texts():
    assert as_list(iter(["\ufeffa\ufeff", "b"])) == ["a\ufeff", "b"]
    assert as_list(["a\nb"]) == ["a\nb"], "it is split into lines later"
    with pytest.raises(
        UserError, match=r"Text 4 contains a line break\. Give one sentence per text"
    ):
        as_list(["a", "b\n"], [3, 4])
    with pytest.raises(TypeError, match="not a single string"):
        as_list("text")
    with pytest.raises(TypeError, match="item 1 is not a text but None"):
        as_list(["a", None])


def test_glossaries_are_pairs_of_texts():
    terms = (Term("a", "b"), Term("c", "d"))
    assert (
        as_terms({"a": "b", "c": "d"})
        == as_terms([("a", "b"), ["c", "d"]])
        == as_terms(terms)
        == terms
    )
    for wrong in (["ab"], [("a",)], [("a", "b", "c")], [("a", 1)]):
        with pytest.raises(TypeError, match="A term of a glossary is a pair of texts"):
            as_terms(wrong)


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = Tokenizer.train(SOURCES, TARGETS, vocab_size=340)
    model = lively(replace(SMALL, vocab_size=tokenizer.target.size))
    return own([model], tokenizer, replace(CONFIG, mbr="chrf", max_extra_tokens=4))


def test_the_plain_search_is_beam_search_and_nothing_else(translator):
    """Each of the other options changes some of these translations."""
    tokenizer = translator.tokenizer
    texts = ["BIG RED DOG", "big red dog", *SOURCES[:20]]
    sources = tokenizer.encode_source(texts)
    request = Request(texts, sources, [len(source) + 4 for source in sources])
    best = [found[0].tokens for found in translator.engine.run(request, CONFIG, 1)]
    expected = [tokenizer.target.pieces(each) for each in best]

    def tokens_of(changed):
        config = replace(translator.config, **(PLAIN_SEARCH | changed))
        found = replace(translator, config=config).translate_sentences(texts)
        return [list(each.tokens) for each in found]

    assert tokens_of({}) == expected
    for name, value in (("capitals", True), ("retry_loops", True), ("mbr", "chrf")):
        assert tokens_of({name: value}) != expected


def test_by_default_there_are_no_links_no_alternatives_and_no_sentences(translator):
    text = "red dog? big dog?"
    [found] = translator.translate_lines([text])
    assert (found.alternatives, found.links, found.confidence, found.hops) == ((), (), None, ())
    [plain] = translator.translate_sentences([text], TranslationOptions(1, False, (), False))
    [split] = translator.translate([text], sentences=True)
    assert found.tokens == translator.translate([text])[0].tokens != split.tokens
    assert plain == translator.translate_sentences([text])[0]


def test_blank_texts_have_the_score_and_the_probability_1(translator):
    """Their logarithm is 0."""
    for found in translator.translate(["", " \t"]):
        assert (found.text, found.score, found.tokens, found.flags) == ("", 0.0, (), ())
    [blank] = translator.score([""], [""])
    assert blank[:3] == (0.0, 0, 0.0) and not blank.words
    assert (blank.confidence, blank.detached) == (None, False)


def test_by_default_the_engine_chooses_its_device_and_threads():
    model = ModelToOpen([], [], RunConfig(), None)
    assert (model.device, model.threads, model.required) == (None, 0, False)
