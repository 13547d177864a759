"""Drawn subwords spell the same text, follow the distributions of the papers, and are drawn anew in every epoch."""

from pathlib import Path

import numpy as np
import pytest

from corpora import blocks
from sampled import ENGLISH, GERMAN
from transduce.augmentation.pairs import Augmentation, changes
from transduce.config.schema import SYNTHETIC_TAG, DataConfig, RunConfig, TrainConfig
from transduce.preparation.prepared import Facts, Prepared
from transduce.tokens.mixture import Mixture, SampledMixture
from transduce.tokens.store import TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer


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


def test_a_share_of_the_pairs_is_changed(vocabulary):
    """A marker begins both sides of one pair in a hundred; all other changes are those of sources."""
    sources, targets = (vocabulary.encode(texts * 60) for texts in (ENGLISH, GERMAN))
    changed = Augmentation(Tokenizer(vocabulary))([sources, targets], np.random.default_rng(1))
    differ = [
        np.array([one != two for one, two in zip(new.lists(), old.lists(), strict=True)])
        for new, old in zip(changed, (sources, targets), strict=True)
    ]
    assert differ[0].mean() == pytest.approx(0.14, abs=0.02)
    assert differ[1].mean() == pytest.approx(0.01, abs=0.006)
    assert not (differ[1] & ~differ[0]).any()


@pytest.mark.parametrize(
    ("augment", "symbols", "source", "target", "changed"),
    [
        ("none", False, 0.0, 0.0, ""),
        ("default", False, 0.0, 0.0, "both"),
        ("default", True, 0.0, 0.0, ""),  # trees are not changed
        ("none", False, 0.5, 0.0, "source"),
        ("none", False, 0.0, 0.5, "target"),
        ("none", True, 0.0, 0.5, "target"),
        ("default", False, 0.5, 0.5, "both"),
    ],
)
def test_options_decide_what_changes(vocabulary, augment, symbols, source, target, changed):
    config = RunConfig(
        data=DataConfig(augment=augment, symbols=symbols),
        train=TrainConfig(sample_source=source, sample_target=target),
    )
    change = changes(config, Tokenizer(vocabulary))
    assert bool(change) == bool(changed)
    if change:
        both = [vocabulary.encode(texts * 9) for texts in (ENGLISH, GERMAN)]
        found = change(both, np.random.default_rng(1))
        names = [
            name
            for name, old, new in zip(("source", "target"), both, found, strict=True)
            if old.lists() != new.lists()
        ]
        assert names == (["source", "target"] if changed == "both" else [changed])
        texts = [vocabulary.decode(rows.lists()) for rows in (*both, *found)]
        assert (texts[:2] != texts[2:]) == (augment == "default")


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
