"""Tests of transduce/training/losses.py."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config.schema import PAD
from transduce.training.losses import smoothed_cross_entropy


def random_logits(
    dtype: torch.dtype, shape: tuple[int, ...] = (7, 30, 50)
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = 4 * torch.randn(*shape, generator=generator)
    targets = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    targets[torch.rand(shape[:-1], generator=generator) < 0.3] = PAD
    return logits.to(dtype).requires_grad_(), targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_equals_that_of_pytorch(smoothing, dtype):
    logits, targets = random_logits(dtype)
    before = logits.detach().clone()
    reference = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(
        reference.flatten(0, 1),
        targets.flatten(),
        label_smoothing=smoothing,
        ignore_index=PAD,
        reduction="sum",
    )
    sums = smoothed_cross_entropy(logits, targets, smoothing)
    assert sums.loss.dtype == torch.float32
    assert sums.loss.item() == pytest.approx(expected.item(), rel=1e-6)
    (sums.loss / 7).backward()
    (expected / 7).backward()
    precision = (
        {"atol": 1e-6, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-4, "rtol": 2e-2}
    )
    torch.testing.assert_close(logits.grad.double(), reference.grad, **precision)
    assert torch.equal(logits.detach(), before)


def test_likelihood_and_accuracy_equal_those_of_pytorch():
    logits, targets = random_logits(torch.float32)
    sums = smoothed_cross_entropy(logits, targets, 0.1)
    real = targets != PAD
    expected = F.cross_entropy(logits[real].double(), targets[real], reduction="sum")
    assert sums.nll.item() == pytest.approx(expected.item(), rel=1e-6)
    assert sums.correct.item() == (logits.argmax(dim=-1) == targets)[real].sum()
    assert not sums.nll.requires_grad and not sums.correct.requires_grad


@pytest.mark.parametrize("cached", [1, 120, 1000])
def test_rows_are_computed_some_at_a_time(cached, monkeypatch):
    logits, targets = random_logits(torch.float32)
    whole = smoothed_cross_entropy(logits, targets, 0.1)
    whole.loss.backward()
    gradient, logits.grad = logits.grad, None
    monkeypatch.setattr("transduce.training.losses.CACHED_LOGITS", cached)
    parts = smoothed_cross_entropy(logits, targets, 0.1)
    parts.loss.backward()
    torch.testing.assert_close(logits.grad, gradient)
    assert [each.item() for each in parts] == pytest.approx([each.item() for each in whole])
    with torch.no_grad():
        assert smoothed_cross_entropy(logits, targets, 0.1).loss.item() == whole.loss.item()


def test_loss_by_hand():
    # Softmax: 1/6, 1/6, 1/6, 1/2.
    logits = torch.tensor([[[0.0, 0.0, 0.0, math.log(3)], [9.0, 1.0, 2.0, 3.0]]])
    sums = smoothed_cross_entropy(logits, torch.tensor([[3, PAD]]), 0.4)
    assert sums.nll.item() == pytest.approx(math.log(2))
    # 0.6 + 0.4 / 4 on the right one.
    assert sums.loss.item() == pytest.approx(0.7 * math.log(2) + 0.3 * math.log(6))
    assert sums.correct.item() == 1


def test_losses_are_sums_and_padding_counts_nothing():
    logits, targets = random_logits(torch.float32)
    whole = smoothed_cross_entropy(logits, targets, 0.1)
    parts = [
        smoothed_cross_entropy(logits[i : i + 1], targets[i : i + 1], 0.1)
        for i in range(len(logits))
    ]
    for total, each in zip(whole, zip(*parts, strict=True), strict=True):
        assert sum(value.item() for value in each) == pytest.approx(total.item(), rel=1e-5)
    other = logits.detach().clone()
    other[targets == PAD] = 100.0
    assert smoothed_cross_entropy(other, targets, 0.1).loss.item() == whole.loss.item()
    whole.loss.backward()
    assert not logits.grad[targets == PAD].any()
