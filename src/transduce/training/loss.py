"""Label-smoothed cross-entropy as sums over tokens (section 5.4 of the paper).

n = tokens, v = vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.config import PAD

CHUNK = 64  # tokens at a time: their float32 logits stay in the cache


class Sums(NamedTuple):
    """Sums over the real tokens of a batch, never means: batches of any size can be added up."""

    loss: Tensor  # label-smoothed; the one that has a gradient
    nll: Tensor  # negative log-likelihood, for perplexity
    correct: Tensor  # how often the most probable token is the right one


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Sums:
    """logits (b, t, v) in any precision, targets (b, t) -> sums in float32; PAD targets count nothing.

    The target distribution has 1 - smoothing on the right token and smoothing / v on every token.
    """
    return Sums(*_SmoothedCrossEntropy.apply(logits.flatten(0, -2), targets.flatten(), smoothing))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Loss and gradient in one pass over the logits, a few rows at a time.

    The logits of a batch are the largest tensor of a training; composed of library operations, log-softmax,
    gather, mean and their gradients would each write another of its size in float32.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        chunk = CHUNK if logits.device.type == "cpu" else 16 * CHUNK
        sums = torch.zeros(
            3, dtype=torch.float64 if logits.device.type == "cpu" else torch.float32, device=logits.device
        )
        for start in range(0, len(logits), chunk):
            x, target = logits[start : start + chunk].float(), targets[start : start + chunk]
            real = target != PAD
            log_total = x.logsumexp(dim=-1)
            nll = log_total - x.gather(-1, target[:, None]).squeeze(-1)
            loss = (1 - smoothing) * nll + smoothing * (log_total - x.mean(dim=-1))
            correct = x.argmax(dim=-1) == target
            sums += torch.stack([(value * real).sum() for value in (loss, nll, correct)])
            if gradient is not None:
                # softmax minus the target distribution
                difference = (x - log_total[:, None]).exp_().sub_(smoothing / x.size(-1))
                difference.scatter_add_(-1, target[:, None], torch.full_like(nll, smoothing - 1)[:, None])
                gradient[start : start + chunk] = difference.mul_(real[:, None])
        ctx.gradient = gradient
        loss, nll, correct = sums.float()
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    def backward(ctx: Any, loss: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient * loss, None, None
