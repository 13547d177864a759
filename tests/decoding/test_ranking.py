"""Tests of transduce/decoding/ranking.py."""

from phrases import CONFIG
from transduce.decoding.ranking import rank
from transduce.decoding.types import (
    EMPTY,
    UNTRANSLATED,
    Hypothesis,
    Sentences,
)


def test_a_translation_that_copies_its_source_or_is_empty_is_flagged(tokenizer):
    texts = ["ein kleiner mann", "Angela Merkel", "eine katze"]
    n_best_lists = [[Hypothesis(-1.0, ids)] for ids in [*tokenizer.encode_target(texts[:2]), []]]
    sentences = Sentences(texts, tokenizer.encode_source(texts), [1, 2, 3])
    ranked = rank(
        sentences, n_best_lists, tokenizer, CONFIG, None, limits=[99, 99, 99], loops=(), n_best=1
    )
    assert [translation.flags for translation, _ in ranked] == [(UNTRANSLATED,), (), (EMPTY,)]
