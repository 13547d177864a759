"""Tests of transduce/decoding/ranking.py."""

import math

import pytest

from phrases import CONFIG
from transduce.decoding.confidence import Confidence
from transduce.decoding.ranking import rank
from transduce.decoding.types import (
    CUT,
    DETACHED,
    EMPTY,
    LOOP,
    UNTRANSLATED,
    Hypothesis,
    Sentences,
)
from transduce.system.errors import UserError


def test_a_translation_that_copies_its_source_or_is_empty_is_flagged(tokenizer):
    texts = ["ein kleiner mann", "Angela Merkel", "eine katze"]
    n_best_lists = [[Hypothesis(-1.0, ids)] for ids in [*tokenizer.encode_target(texts[:2]), []]]
    sentences = Sentences(texts, tokenizer.encode_source(texts), [1, 2, 3])
    ranked = rank(
        sentences, n_best_lists, tokenizer, CONFIG, None, limits=[99, 99, 99], loops=(), n_best=1
    )
    assert [translation.flags for translation, _ in ranked] == [(UNTRANSLATED,), (), (EMPTY,)]


def test_of_hypotheses_with_one_text_the_best_counts(tokenizer):
    """The same text in other pieces is no alternative, and n_best counts texts."""
    pieces = tokenizer.target.pieces(range(tokenizer.target.size))
    whole, spelt, cat, dog = (
        [pieces.index(piece) for piece in text.split()]
        for text in ("▁rot ▁Hund", "▁r ot ▁Hund", "▁Katze", "▁Hund")
    )
    best = [
        Hypothesis(-1.0, spelt),
        Hypothesis(-2.0, whole),
        Hypothesis(-3.0, cat),
        Hypothesis(-4.0, whole),
        Hypothesis(-5.0, dog),
    ]
    sentences = Sentences(["red dog", "cat"], tokenizer.encode_source(["red dog", "cat"]), [1, 2])
    lists = [best, [Hypothesis(-0.5, cat)]]
    limits = [3, 9]
    (first, kept), (second, _) = rank(
        sentences, lists, tokenizer, CONFIG, None, limits=limits, loops=[1], n_best=2
    )
    assert (first.text, first.score, first.tokens) == ("rot Hund", -1.0, ("▁r", "ot", "▁Hund"))
    assert [(each.text, each.score) for each in first.alternatives] == [("Katze", -3.0)]
    assert kept == [best[0], best[2]]
    assert (first.flags, first.alternatives[0].flags) == ((CUT,), ())
    assert (second.text, second.alternatives, second.flags) == ("Katze", (), (LOOP,))
    with pytest.raises(UserError, match="probabilities are not numbers"):
        list(
            rank(sentences, [best, []], tokenizer, CONFIG, None, limits=limits, loops=(), n_best=2)
        )


def test_confidence_and_the_flag_for_detached_texts_come_from_the_log_probability(tokenizer):
    """The score times the length penalty, over the tokens with EOS."""
    [source], [target] = tokenizer.encode_source(["red dog"]), tokenizer.encode_target(["rot Hund"])
    log_prob = -2.0 * ((5 + len(target) + 1) / 6) ** CONFIG.length_penalty
    mean = log_prob / (len(target) + 1)
    scale = (1.0,) * 3
    fitted = {"means": (0.0,) * 3, "scales": scale, "weights": (1.0, 0.0, 0.1), "bias": 0.5}
    for least, area, detached in ((mean + 0.01, 0.9, True), (mean - 0.01, 0.5, False)):
        confidence = Confidence(
            **fitted, pairs=9, area=area, calibration_error=0, min_chrf=50, min_log_prob=least
        )
        [(found, _)] = rank(
            Sentences(["red dog"], [source], [1]),
            [[Hypothesis(-2.0, target)]],
            tokenizer,
            CONFIG,
            confidence,
            limits=[99],
            loops=(),
            n_best=1,
        )
        ratio = math.log((len(target) + 1) / (len(source) + 1))
        expected = 1 / (1 + math.exp(-(0.5 + mean + 0.1 * ratio)))
        assert found.confidence == (pytest.approx(expected) if area > 0.6 else None)
        assert found.flags == ((DETACHED,) if detached else ())
