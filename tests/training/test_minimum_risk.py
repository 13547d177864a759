"""Minimum-risk training: samples follow the model, the expected risk is that of the definition, and it falls."""

import dataclasses
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from command_line import run
from corpora import TINY, changed, spelt, write_texts
from transduce.config.parse import configure
from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig, TrainConfig
from transduce.decoding.stepper import forced_log_probs
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.system.errors import UserError
from transduce.training.announce import updates_in_budget
from transduce.training.autobatch import Trial
from transduce.training.minimum_risk import expected_risk, gleu, sample
from transduce.training.objectives import sums_of
from transduce.training.run import train
from transduce.training.schedule import (
    RISK_DIVISOR,
    SAMPLE_COST,
    begins_risk,
    effort,
    learning_rate,
    risk_steps,
)
from transduce.training.update import make_optimizer, update

TARGETS = [[9, 10], [11, 12, 13]]
BATCH = make_batch([[5, 6, 7], [8]], TARGETS)
# In all updates.
MRT = TrainConfig(precision="float32", risk_steps=100_000, samples=8, sharpness=0.5)
IDS = st.lists(st.integers(4, 7), max_size=6)


def model(dropout: float = 0.0) -> Seq2Seq:
    sizes = {
        "vocab_size": 16,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_model": 16,
        "d_ff": 16,
    }
    return build(ModelConfig(**sizes, num_heads=2, dropout=dropout), 1).train()


@given(IDS, IDS)
def test_gleu_compares_ngrams(one, other):
    assert (
        gleu(one, one) == 1 and gleu(one, other) == gleu(other, one) and 0 <= gleu(one, other) <= 1
    )
    assert (gleu(one, other) == 0) == (bool(one or other) and not {*one} & {*other})


def test_gleu_of_an_example():
    assert gleu([1, 2, 3], [1, 2, 4, 5]) == 3 / 10  # 1, 2 and 1 2, of 4 + 3 + 2 + 1 n-grams


def test_samples_follow_the_probabilities_of_the_model_without_dropout():
    network, count = model(dropout=0.5), 4000
    torch.manual_seed(1)
    sampled = sample(network, BATCH.src, count, 20)
    assert network.training and len(sampled) == 2 * count and max(map(len, sampled)) == 20
    assert not {PAD, BOS, UNK, EOS} & {token for row in sampled for token in row}
    for sentence in range(2):
        rows = sampled[sentence * count : (sentence + 1) * count]
        first = Counter(row[0] if row else EOS for row in rows)
        with torch.no_grad():
            logits = network.eval()(BATCH.src, BATCH.tgt_in)[sentence, 0]
        logits[[PAD, BOS, UNK]] = -torch.inf
        shares = torch.tensor([first[token] / count for token in range(16)])
        torch.testing.assert_close(shares, logits.softmax(-1), atol=0.03, rtol=0)
    torch.manual_seed(1)
    assert sample(network.train(), BATCH.src, count, 20) == sampled


def test_samples_fit_into_learned_positions():
    network = build(
        ModelConfig(
            vocab_size=16, d_model=16, d_ff=16, num_heads=2, positions="learned", max_positions=5
        ),
        1,
    )
    assert math.isfinite(expected_risk(network, BATCH, 50, 1.0)[0].sum().item())


def test_the_expected_risk_is_its_definition():
    network = model()
    torch.manual_seed(3)
    found, logits = expected_risk(network, BATCH, 8, 0.5)
    torch.testing.assert_close(logits, network(BATCH.src, BATCH.tgt_in))
    torch.manual_seed(3)
    sampled = sample(network, BATCH.src, 8, BATCH.tgt_out.size(1) + 5)
    for sentence, target in enumerate(TARGETS):
        distinct = {tuple(row) for row in sampled[8 * sentence : 8 * sentence + 8]}
        weights, risks = [], []
        for row in distinct:
            batch = make_batch([BATCH.src[sentence, : (3, 1)[sentence]].tolist()], [row])
            weights.append(math.exp(0.5 * forced_log_probs([network], batch).sum().item()))
            risks.append(1 - gleu(row, target))
        expected = sum(weight * risk for weight, risk in zip(weights, risks, strict=True)) / sum(
            weights
        )
        assert found[sentence].item() == pytest.approx(expected, abs=1e-5)


def test_training_lowers_the_risk():
    network = model()
    optimizer = make_optimizer(network.parameters(), MRT)

    def risk() -> float:
        torch.manual_seed(0)
        return expected_risk(network, BATCH, 200, 1.0)[0].mean().item()

    before = risk()
    for step in range(1, 61):
        assert update(network, optimizer, [BATCH], step=step, rate=5e-3, train=MRT).applied
    assert risk() < before - 0.1


def test_the_likelihood_can_be_added():
    losses = []
    for weight in (0.0, 1.0):
        torch.manual_seed(1)
        train = dataclasses.replace(MRT, likelihood_weight=weight)
        losses.append(sums_of(model(), BATCH, train, is_risk=True))
    plain = sums_of(model(), BATCH, TrainConfig(precision="float32"))
    torch.testing.assert_close(losses[1].loss - losses[0].loss, plain.loss)
    torch.testing.assert_close(losses[0].nll, plain.nll)
    assert 0 < losses[0].loss <= BATCH.num_tokens


STEPS = st.integers(1, 500)


@given(STEPS, STEPS, st.integers(1, 100), st.integers(0, 100))
def test_the_schedule_is_that_of_two_trainings(before, risk_steps, warmup, cooldown):
    first = TrainConfig(steps=before, warmup=warmup, cooldown=cooldown, learning_rate=0.7)
    both = dataclasses.replace(first, steps=before + risk_steps, risk_steps=risk_steps)
    then = TrainConfig(steps=risk_steps, warmup=max(1, risk_steps // 6), cooldown=risk_steps // 2)
    peak = 0.7 * (warmup * 64) ** -0.5 / RISK_DIVISOR
    then = dataclasses.replace(then, learning_rate=peak * (then.warmup * 64) ** 0.5)
    assert [learning_rate(n, both, 64) for n in range(1, before + 1)] == [
        learning_rate(n, first, 64) for n in range(1, before + 1)
    ]
    assert [learning_rate(before + n, both, 64) for n in range(1, risk_steps + 1)] == pytest.approx(
        [learning_rate(n, then, 64) for n in range(1, risk_steps + 1)]
    )
    costs = [effort(n, both) - effort(n + 1, both) for n in range(before + risk_steps)]
    assert costs == pytest.approx([1.0] * before + [1 + SAMPLE_COST * both.samples] * risk_steps)
    assert effort(len(costs), both) == 0
    assert [done for done in range(len(costs)) if begins_risk(done, both)] == [before]


@pytest.mark.parametrize("risk_steps", [0, 10, 11])
def test_a_training_of_one_kind_of_updates_has_no_change_between_them(risk_steps):
    train = TrainConfig(steps=10, risk_steps=risk_steps)
    assert not any(begins_risk(done, train) for done in range(11))


def test_resumed_minimum_risk_training_gives_the_same_bits(tmp_path):
    options = changed(
        TINY, train__save_every=2, train__validate_every=3, train__ema=0.9, train__samples=4
    )
    options |= {
        "data.corpora": [{"files": write_texts(tmp_path, "train", 200, 1)}],
        "data.holdout": 20,
    }
    usual, straight, parts = (tmp_path / name for name in ("usual", "straight", "parts"))
    train(options | {"train.steps": 6}, usual)
    both = options | {"train.steps": 10, "train.risk_steps": 4}
    train(both, straight)
    for updates in (3, 3, 2, 100):  # between, before the first and within minimum-risk training
        steps = iter(range(100))
        result = train(
            both, parts, stop=lambda steps=steps, updates=updates: next(steps) >= updates
        )
    assert result.reason == "steps"
    assert same_weights(straight, usual, 6) and same_weights(straight, parts, 10)
    state = load_file(straight / "checkpoints/step-00000010/optimizer.safetensors")
    assert {value.item() for name, value in state.items() if name.endswith("/step")} == {4}, (
        "a new optimizer state"
    )


def test_train_minutes_include_minimum_risk_training():
    trial, options = (
        Trial(1, 100, 0.0, 0.1),
        {"train.minutes": 10, "train.steps": 5000, "train.samples": 10},
    )
    assert updates_in_budget(configure(options), trial) == 6000
    risk = configure(options | {"train.risk_steps": 100})
    assert updates_in_budget(risk, trial) == pytest.approx(6000 - 100 * SAMPLE_COST * 10)
    assert updates_in_budget(configure(options | {"train.risk_steps": 5000}), trial) == 6000, (
        "measured in it"
    )
    long = configure(options | {"train.risk_steps": 4000})
    assert updates_in_budget(long, trial) == 6000, "which ends within it"


def test_too_short_training_skips_minimum_risk_and_says_so(tmp_path, capsys):
    options = changed(TINY, train__steps=3, train__warmup=2) | {"data.holdout": 20}
    options |= {"data.corpora": [{"files": write_texts(tmp_path, "train", 200, 1)}]}
    train(options, tmp_path / "usual")
    capsys.readouterr()
    train(options | {"train.risk_steps": 120}, tmp_path / "cut")
    assert (
        "There is no minimum-risk training: train.risk_steps (120) exceeds"
        in capsys.readouterr().err
    )
    assert same_weights(tmp_path / "usual", tmp_path / "cut", 3)


def same_weights(one: Path, other: Path, step: int) -> bool:
    files = [folder / f"checkpoints/step-{step:08d}" for folder in (one, other)]
    names = ["model.safetensors", "optimizer.safetensors"]
    return all(file.exists() for file in files) and all(
        (files[0] / name).read_bytes() == (files[1] / name).read_bytes() for name in names
    )


@pytest.mark.slow
def test_a_second_stage_is_resumed_with_the_same_bits(tmp_path, capsys):
    options = changed(
        TINY, train__steps=6, train__warmup=20, train__save_every=2, train__validate_every=3
    )
    files = {"data.corpora": [{"files": write_texts(tmp_path, "train", 200, 1)}]}
    first, straight, halves = (tmp_path / name for name in ("first", "straight", "halves"))
    without = "--out", tmp_path / "out", "train.risk_steps=6", *spelt(options)
    corpus = "--train", *files["data.corpora"][0]["files"], "--from", "ka", "--to", "zu"
    status, _, said = run(capsys, "train", *corpus, *without, "train.steps=6", "data.holdout=20")
    assert (
        status == 2
        and "a trained model to start from. Raise train.steps, or name this model (--init)." in said
    )
    assert "Reading the corpus" not in said
    train(options | files | {"data.holdout": 0}, tmp_path / "unvalidated")
    with pytest.raises(UserError, match="needs a validation set"):
        train({"train.steps": 9, "train.risk_steps": 3}, tmp_path / "unvalidated")
    train(options | files | {"data.holdout": 20}, first)
    status, _, said = run(capsys, "train", *corpus, "--init", first, *without, "data.holdout=0")
    assert (
        status == 2
        and "Minimum-risk training needs a validation set" in said
        and "Reading" not in said
    )
    mrt = {
        name: value
        for name, value in options.items()
        if not name.startswith(("model.", "data.vocab"))
    }
    mrt |= files | {"data.holdout": 20, "train.risk_steps": 6, "train.samples": 4}
    train(mrt, straight, init=first)
    steps = iter(range(100))
    assert train(mrt, halves, init=first, stop=lambda: next(steps) >= 3).reason == "interrupted"
    train(mrt, halves)
    names = "model.safetensors", "checkpoints/step-00000006/optimizer.safetensors"
    for name in names:
        assert Path(straight / name).read_bytes() == Path(halves / name).read_bytes()


@pytest.mark.parametrize(("steps", "expected"), [(9, 0), (10, 10), (11, 10)])
def test_risk_steps_are_zero_if_training_is_too_short(steps, expected):
    assert risk_steps(TrainConfig(steps=steps, risk_steps=10)) == expected
