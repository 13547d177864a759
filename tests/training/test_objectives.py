"""Tests of transduce/training/objectives.py."""

from dataclasses import replace

import pytest
import torch

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, batch_of
from transduce.config.schema import BOS, EOS, PAD, UNK, with_options
from transduce.model.build import build
from transduce.model.recording import recording
from transduce.training.losses import smoothed_cross_entropy
from transduce.training.minimum_risk import expected_risk
from transduce.training.objectives import cross_entropy, minimum_risk, omit, sums_of


def test_bfloat16_is_near_float32_and_keeps_weights_and_sums():
    model, batch = build(replace(MODEL, dropout=0.0)), batch_of(reverse_rows(32, seed=1))
    exact = sums_of(model, batch, TRAIN)
    near = sums_of(model, batch, replace(TRAIN, precision="bfloat16"))
    assert near.loss.dtype == torch.float32
    assert near.loss.item() != exact.loss.item()
    assert near.loss.item() == pytest.approx(exact.loss.item(), rel=1e-2)
    near.loss.backward()
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}


def test_a_share_of_the_words_is_omitted():
    tokens = torch.tensor([[BOS, 4, 5, 6], [BOS, EOS, PAD, PAD]]).repeat(4_000, 1)
    assert omit(tokens, 0.0) is tokens
    torch.manual_seed(1)
    found = omit(tokens, 0.25)
    changed = found != tokens
    assert (found[changed] == UNK).all() and (tokens[changed] > EOS).all()
    assert changed[tokens > EOS].float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert (omit(tokens, 1.0)[tokens > EOS] == UNK).all()
    assert tokens[0].tolist() == [BOS, 4, 5, 6], "the batch stays as it is"


def test_words_are_omitted_in_training():
    model, batch = build(replace(MODEL, dropout=0.0)), batch_of(reverse_rows(8, seed=1))
    plain = sums_of(model, batch, TRAIN)
    torch.manual_seed(1)
    found = sums_of(model, batch, replace(TRAIN, word_dropout=0.5))
    torch.manual_seed(1)
    logits = model(batch.src, omit(batch.tgt_in, 0.5))
    expected = smoothed_cross_entropy(logits, batch.tgt_out, TRAIN.label_smoothing)
    assert found.loss.item() == pytest.approx(expected.loss.item()) != plain.loss.item()


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_risk_of_long_sentences_counts_more(weight):
    """The risk of a sentence times its tokens with EOS, and the weight of the likelihood times the cross-entropy."""
    model, batch = build(replace(MODEL, dropout=0.0)), batch_of(reverse_rows(6, seed=1))
    train = replace(TRAIN, samples=3, sharpness=0.5, likelihood_weight=weight)
    torch.manual_seed(1)
    found = minimum_risk(model, batch, train)
    torch.manual_seed(1)
    risk, logits = expected_risk(model, batch, 3, 0.5)
    likelihood = smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)
    lengths = torch.tensor([len(target) + 1.0 for _, target in reverse_rows(6, seed=1)])
    expected = (risk * lengths).sum() + weight * likelihood.loss
    assert found.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert found.nll.item() == pytest.approx(likelihood.nll.item())
    assert found.correct.item() == likelihood.correct.item()
    torch.manual_seed(1)
    assert sums_of(model, batch, train, is_risk=True).loss.item() == pytest.approx(
        found.loss.item()
    )


@pytest.mark.parametrize("is_risk", [False, True])
def test_the_load_of_experts_is_balanced_without_that_of_samples(is_risk):
    """A hundredth of the mean balance loss of the layers, for each target token."""
    model = build(with_options(replace(MODEL, dropout=0.0), experts=4))
    batch, loss = batch_of(reverse_rows(6, seed=1)), minimum_risk if is_risk else cross_entropy
    train = replace(TRAIN, samples=3)
    torch.manual_seed(1)
    with recording(attention=False) as record:
        plain = loss(model, batch, train)
    # The encoder's layer reads the sources; the decoder's the targets and, in minimum-risk training, the samples.
    assert len(record.routing) == (3 if is_risk else 2)
    balance = sum(routing.balance_loss.item() for routing in record.routing) / len(record.routing)
    torch.manual_seed(1)
    found = sums_of(model, batch, train, is_risk=is_risk)
    expected = plain.loss.item() + 0.01 * batch.num_tokens * balance
    assert balance > 0 and found.loss.item() == pytest.approx(expected)
    assert found.nll.item() == pytest.approx(plain.nll.item())
