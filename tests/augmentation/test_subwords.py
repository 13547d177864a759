"""Tests of transduce/augmentation/subwords.py."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sampled import ENGLISH, GERMAN
from transduce.augmentation.subwords import SubwordSampler

WORD = "sitting"


DRAWS = 8_000


def sampled(vocabulary, texts, strength, seed=1):
    return (
        SubwordSampler(vocabulary, strength)
        .sample(vocabulary.encode(texts), np.random.default_rng(seed))
        .lists()
    )


@given(
    texts=st.lists(
        st.sampled_from(ENGLISH + GERMAN)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")),
        max_size=5,
    )
)
def test_drawn_subwords_spell_the_same_text(vocabulary, texts):
    assert vocabulary.decode(sampled(vocabulary, texts, 0.5)) == texts


def test_without_randomness_the_segmentation_is_the_encoders(vocabulary):
    strength = 0.0 if vocabulary.kind == "bpe" else 1e4
    assert (
        sampled(vocabulary, ENGLISH + GERMAN, strength)
        == vocabulary.encode(ENGLISH + GERMAN).lists()
    )


def by_dropout(word, ranks, p):
    """The probability of each segmentation under BPE-dropout, by following every choice."""
    pairs = sorted((ranks[a + b], i) for i, (a, b) in enumerate(pairwise(word)) if a + b in ranks)
    outcomes = Counter({word: p ** len(pairs)})
    for better, (_, i) in enumerate(pairs):
        merged = (*word[:i], word[i] + word[i + 1], *word[i + 2 :])
        for outcome, probability in by_dropout(merged, ranks, p).items():
            outcomes[outcome] += p**better * (1 - p) * probability
    return outcomes


def by_scores(word, scores, alpha):
    """The probability of each segmentation of a word in proportion to its probability to the power of alpha."""
    if not word:
        return Counter({(): 1.0})
    outcomes = Counter()
    for end in range(1, len(word) + 1):
        if (piece := word[:end]) in scores:
            for rest, weight in by_scores(word[end:], scores, alpha).items():
                outcomes[(piece, *rest)] += weight * math.exp(alpha * scores[piece])
    return outcomes


def test_the_distribution_is_the_papers(vocabulary):
    pieces, strength = vocabulary.pieces(range(vocabulary.size)), 0.3
    scores = {
        piece: score
        for piece, score in zip(pieces, vocabulary.scores(), strict=True)
        if score is not None
    }
    spelled = f"\u2581{WORD}"
    expected = (
        by_dropout(tuple(spelled), {piece: -score for piece, score in scores.items()}, strength)
        if vocabulary.kind == "bpe"
        else by_scores(spelled, scores, strength)
    )
    sampler, rows = SubwordSampler(vocabulary, strength), vocabulary.encode([WORD])
    random = np.random.default_rng(1)
    drawn = Counter(
        tuple(vocabulary.pieces(sampler.sample(rows, random).ids)) for _ in range(DRAWS)
    )
    total = sum(expected.values())
    assert len(expected) > 3 and set(drawn) <= set(expected)
    for segmentation, weight in expected.items():
        share = weight / total
        assert (
            abs(drawn[segmentation] / DRAWS - share)
            < 5 * math.sqrt(share * (1 - share) / DRAWS) + 1e-9
        )


def test_a_word_has_several_segmentations_in_an_epoch(vocabulary):
    drawn = sampled(vocabulary, ["  ".join(["running"] * 50)] * 20, 0.5)
    assert len(set(map(tuple, drawn))) == len(drawn)
