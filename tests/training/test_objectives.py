"""Tests of transduce/training/objectives.py."""

from dataclasses import replace

import pytest
import torch

from corpora import reverse_rows
from small_trainings import MODEL, TRAIN, batch_of
from transduce.model.build import build
from transduce.training.objectives import sums_of


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
