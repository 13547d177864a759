"""Label-smoothed cross-entropy as sums over tokens (section 5.4 of the paper).

n = tokens, v = vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import PAD
from transduce.model.recording import Routing

CACHED = 1 << 17  # logits at a time on a CPU: in float32 they stay in its cache


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
        on_cpu = logits.device.type == "cpu"
        chunk = max(1, CACHED // logits.size(-1)) if on_cpu else len(logits)
        sums = torch.zeros(3, dtype=torch.float64 if on_cpu else torch.float32, device=logits.device)
        for start in range(0, len(logits), chunk):
            x, target = logits[start : start + chunk].float(), targets[start : start + chunk]
            real = (target != PAD).float()
            highest = x.amax(dim=-1)
            exponentials = (x - highest[:, None]).exp_()
            total = exponentials.sum(dim=-1)
            log_total = highest + total.log()
            chosen = x.gather(-1, target[:, None]).squeeze(-1)
            nll = log_total - chosen
            loss = (1 - smoothing) * nll + smoothing * (log_total - x.mean(dim=-1))
            sums += torch.stack(((loss * real).sum(), (nll * real).sum(), ((chosen == highest) * real).sum()))
            if gradient is not None:  # softmax minus the target distribution
                difference = exponentials.mul_((real / total)[:, None]).sub_((real * (smoothing / x.size(-1)))[:, None])
                difference.scatter_add_(-1, target[:, None], (real * (smoothing - 1))[:, None])
                gradient[start : start + chunk] = difference
        ctx.gradient = gradient
        loss, nll, correct = sums.float()
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    def backward(ctx: Any, loss: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient.mul_(loss), None, None


def balance_loss(routings: list[Routing]) -> Tensor:
    """How unevenly layers of experts spread their tokens: 1 if evenly (Fedus et al., 2022, equation 4).

    It is the mean over layers of e * sum over the e experts of (share of the tokens) * (mean probability). Padding
    counts like other tokens.
    """
    losses = []
    for probabilities, chosen in routings:
        experts = probabilities.size(-1)
        shares = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()
        losses.append(experts * (shares * probabilities.mean(dim=0)).sum())
    return torch.stack(losses).mean()
