"""Tests of transduce/augmentation/subwords.py."""

import math
from collections import Counter
from itertools import chain, pairwise, product, repeat
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sampled import ENGLISH, GERMAN
from transduce.augmentation.subwords import VARIANTS, SubwordSampler, _hashes
from transduce.tokens.vocabulary import pack

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


def sampler_of(scores, strength=1.0):
    """A sampler of a unigram vocabulary; a piece without a score is a byte."""
    vocabulary = SimpleNamespace(
        kind="unigram", all_pieces=lambda: [*scores], scores=lambda: [*scores.values()]
    )
    return SubwordSampler(vocabulary, strength)


def test_the_last_piece_is_drawn_with_its_probability():
    """The weights of a|b|c, ab|c, a|bc and abc are 12, 6, 3 and 3 of 24."""
    weights = {"<0>": None, "a": 2, "b": 2, "c": 3, "ab": 2, "bc": 1.5, "abc": 3}
    scores = {piece: weight and math.log(weight) / 2 for piece, weight in weights.items()}
    sampler = sampler_of(scores, strength=2.0)
    ids = list(scores).index
    drawn = Counter(
        tuple(sampler._segment([ids("abc")], chain([first], repeat(second)).__next__))
        for first in (np.arange(24) + 0.5) / 24
        for second in (np.arange(6) + 0.5) / 6
    )
    expected = {("abc",): 3, ("a", "bc"): 3, ("ab", "c"): 6, ("a", "b", "c"): 12}
    assert drawn == {tuple(map(ids, pieces)): 6 * times for pieces, times in expected.items()}


def test_a_character_that_a_vocabulary_lacks_weighs_as_much_as_a_sure_one():
    """Of ab and a|b, only the first can be written; otherwise the word stays as it was."""
    sampler = sampler_of({"a": 0.0, "ab": 0.0, "abab": 0.0})
    drawn = Counter(
        tuple(sampler._segment([2], chain([first], repeat(second)).__next__))
        for first in (0.1, 0.3, 0.5, 0.7, 0.9)
        for second in (0.25, 0.75, 0.75)
    )
    assert drawn == {(1, 1): 2, (2,): 13}


def test_a_word_ends_with_its_sentence():
    """No sentence begins with a space here, and some are empty."""
    sampler = sampler_of(
        {"\u2581a": -1.0, "b": -2.0, "c": -2.0, "bc": -1e9, "\u2581": -1e9, "a": -1}
    )
    rows = pack([[1], [], [2, 0, 1], [2], [1, 2], []])
    assert sampler.sample(rows, np.random.default_rng(1)).lists() == rows.lists()
    assert sampler.sample(pack([]), np.random.default_rng(1)).lists() == []


def test_a_single_character_needs_no_random_number():
    sampler = sampler_of({"a": -1.0, "b": -1.0})
    assert sampler._segment([1], iter([]).__next__) == [1]


def test_a_byte_in_a_word_stays_while_the_rest_is_drawn():
    """The pieces are the byte, a, b and ab; all segmentations are equally likely."""
    sampler = sampler_of({"<0>": None, "a": 0.0, "b": 0.0, "ab": 0.0})
    drawn = [sampler._segment([3, 0], repeat(at).__next__) for at in (0.25, 0.75)]
    assert drawn == [[3, 0], [1, 2, 0]]


def test_a_vocabulary_may_have_no_pieces_but_bytes():
    rows = pack([[0, 1], [1]])
    sampler = sampler_of({"<0>": None, "<1>": None})
    assert sampler.sample(rows, np.random.default_rng(1)).lists() == rows.lists()


def test_equal_words_have_up_to_sixteen_segmentations_per_call():
    """Of 1,024 equally likely ones, for which a caller would wait; each call draws others."""
    word = "\u2581abcdefghij"
    parts = [word[begin:end] for end in range(1, 12) for begin in range(end)]
    sampler, random = sampler_of(dict.fromkeys(parts, 0.0)), np.random.default_rng(1)
    rows = pack([[parts.index(word)] * 300, [parts.index("a"), *[parts.index(word)] * 100]])
    draws = []
    for _ in range(2):
        texts = [
            ".".join(parts[token] for token in row) for row in sampler.sample(rows, random).lists()
        ]
        words = [each.strip(".") for text in texts for each in text.split("\u2581")]
        assert len(words) == 402 and {each.replace(".", "") for each in words} == {
            "",
            "a",
            word[1:],
        }
        draws.append({each for each in words if len(each) > 1})
        assert 10 < len(draws[-1]) <= 16 == VARIANTS
    assert draws[0] != draws[1]


def test_short_words_have_different_hashes():
    words = [word for length in (1, 2, 3) for word in product(range(30), repeat=length)]
    hashes = _hashes(pack([list(word) for word in words]))
    assert hashes.dtype == np.uint64 and len({*hashes.tolist()}) == len(words)
