"""Drawn subwords spell the same text, follow the distributions of the papers, and are drawn anew in every epoch."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import blocks
from transduce.augmentation.pairs import Augmentation, changes
from transduce.augmentation.subwords import SubwordSampler
from transduce.config.schema import SYNTHETIC_TAG, RunConfig, TrainConfig
from transduce.preparation.prepared import Facts, Prepared
from transduce.tokens.mixture import Mixture, SampledMixture
from transduce.tokens.store import TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer

ENGLISH = [
    "A dog runs over the grass.",
    "Two men  are sitting.",
    " The child's red ball, 3.5 m away!",
] * 25
GERMAN = [
    "Ein Hund läuft über das Gras.",
    "Zwei Männer sitzen.",
    "Der rote Ball des Kindes, 3,5 m entfernt!",
] * 25
WORD = "sitting"
DRAWS = 8_000


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request):
    return Tokenizer.train(ENGLISH, GERMAN, vocab_size=400, kind=request.param).target


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


@pytest.fixture(scope="module")
def mixture(vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "0"
    rows = zip(vocabulary.encode(ENGLISH).lists(), vocabulary.encode(GERMAN).lists(), strict=True)
    write_store(folder, blocks((*row, 0, line) for line, row in enumerate(rows, start=1)))
    return Mixture([TokenStore(folder)], [1.0])


def test_an_epoch_has_its_own_subwords_and_its_batches_fit(vocabulary, mixture):
    config, everything = RunConfig(train=TrainConfig(sample_target=0.3)), np.arange(len(mixture))
    change, epochs = changes(config, Tokenizer(vocabulary)), []
    for epoch in (0, 1, 0):
        data = SampledMixture(mixture, change)
        plan = data.plan(epoch, 0, budget=120, accumulate=2, seed=1)
        for batch in (batch for batches in plan for batch in batches):
            targets = data.targets(batch)
            assert data.lengths(batch)[1].tolist() == [len(row) for row in targets]
            assert (max(map(len, targets)) + 1) * len(batch) <= 120
        assert (
            sorted(np.concatenate([batch for batches in plan for batch in batches]))
            == everything.tolist()
        )
        epochs.append([row.tolist() for row in data.targets(everything)])
        assert [row.tolist() for row in data.sources(everything)] == [
            row.tolist() for row in mixture.sources(everything)
        ]
    assert epochs[0] == epochs[2] != epochs[1]
    assert vocabulary.decode(epochs[0]) == GERMAN
    assert max(map(len, epochs[0])) <= mixture.longest()[1]


def test_an_epoch_changes_its_own_texts(vocabulary, mixture):
    augment, everything = Augmentation(Tokenizer(vocabulary)), np.arange(len(mixture))
    epochs, lines = [], set()
    for epoch in (0, *range(40)):
        data = SampledMixture(mixture, augment)
        data.plan(epoch, 0, budget=120, accumulate=2, seed=1)
        sources, targets = (
            vocabulary.decode(read(everything)) for read in (data.sources, data.targets)
        )
        assert [len(row) for row in data.sources(everything)] == data.lengths(everything)[
            0
        ].tolist()
        assert (
            max(data.lengths(everything)[0].max(), data.lengths(everything)[1].max())
            <= mixture.longest()[1]
        )
        epochs.append([*sources, *targets])
        lines |= {line for line, text in enumerate(sources) if text != ENGLISH[line]}
    assert epochs[0] == epochs[1] != epochs[2]
    # The longest sentence stays if it would become longer.
    assert len(lines) > 0.8 * len(everything) * 2 / 3
    assert "two men  are sitting." in {line for epoch in epochs for line in epoch}


def test_the_tag_of_a_back_translation_stays_at_the_beginning(vocabulary):
    texts = [f"{SYNTHETIC_TAG}red house number {number}" for number in range(300)]
    rows = vocabulary.encode(texts)
    for seed in range(9):
        changed = Augmentation(Tokenizer(vocabulary))([rows, rows], np.random.default_rng(seed))[0]
        assert changed.ids.tolist() != rows.ids.tolist()
        assert all(text.startswith(SYNTHETIC_TAG) for text in vocabulary.decode(changed.lists()))


def test_a_word_has_several_segmentations_in_an_epoch(vocabulary):
    drawn = sampled(vocabulary, ["  ".join(["running"] * 50)] * 20, 0.5)
    assert len(set(map(tuple, drawn))) == len(drawn)


def prepared(tokenizer: Tokenizer, mixture: Mixture) -> Prepared:
    counts = dict.fromkeys(
        ["pairs", "held_out", "dropped", "source_tokens", "target_tokens", "seconds"], 0
    )
    names = {
        "source": "ka",
        "target": "zu",
        "corpora": [],
        "files": [],
        "weights": [],
        "left_out": {},
    }
    facts = Facts(options={"data.symbols": True}, **names, **counts)
    return Prepared(Path(), facts, tokenizer, mixture, [0])


def test_the_sources_of_a_parser_can_be_sampled(vocabulary, mixture):
    corpus = prepared(Tokenizer(vocabulary), mixture)
    assert isinstance(corpus.drawn(RunConfig(train=TrainConfig(sample_source=0.1))), SampledMixture)
    assert corpus.drawn(RunConfig()) is mixture
