"""Label-smoothed cross-entropy (section 5.4 of the paper) and the divergence of two predictions.

Losses are sums over tokens, not means, so that the losses of several batches can be added. One pass over the logits
computes a loss and its gradient. PyTorch's own operations would need several more float32 tensors as large as these.

b = sentences, t = target positions, v = vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import PAD

CACHED_LOGITS = 1 << 17  # logits per pass on a CPU: in float32, they fit into its cache


class Sums(NamedTuple):
    """Sums over the target tokens of a batch, without padding."""

    loss: Tensor  # label-smoothed; the only sum with a gradient
    nll: Tensor  # negative log-likelihood, for perplexity
    correct: Tensor  # how often the most probable token is the right one


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Sums:
    """The `Sums` of logits (b, t, v) and targets (b, t), without padding.

    The target distribution gives smoothing / v to each of the v tokens, plus 1 - smoothing to the right token.
    """
    return Sums(*_SmoothedCrossEntropy.apply(logits.flatten(0, -2), targets.flatten(), smoothing))


def divergence(first: Tensor, second: Tensor, targets: Tensor) -> Tensor:
    """The sum of KL(first || second) over the target tokens without PAD, in float32, with gradients for both.

    The logits (b, t, v) may have any precision.
    """
    return _Divergence.apply(first.flatten(0, -2), second.flatten(0, -2), targets.flatten())


def rows_per_pass(logits: Tensor) -> int:
    """The number of rows of logits that fit into a CPU's cache; all rows on a GPU."""
    return max(1, CACHED_LOGITS // logits.size(-1)) if logits.device.type == "cpu" else logits.flatten(0, -2).size(0)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        on_cpu = logits.device.type == "cpu"
        chunk = rows_per_pass(logits)
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


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, targets: Tensor) -> Tensor:
        gradients = [torch.empty_like(logits) for logits in (first, second)]
        chunk = rows_per_pass(first)
        total = torch.zeros((), dtype=torch.float32, device=first.device)
        for start in range(0, len(first), chunk):
            rows = slice(start, start + chunk)
            log_p, log_q = (logits[rows].float().log_softmax(dim=-1) for logits in (first, second))
            real = (targets[rows] != PAD).float()[:, None]
            p, log_ratio = log_p.exp(), log_p - log_q
            each = (p * log_ratio).sum(dim=-1, keepdim=True)
            total += (each * real).sum()
            gradients[0][rows] = p * (log_ratio - each) * real
            gradients[1][rows] = (log_q.exp() - p) * real
        ctx.gradients = gradients
        return total

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        first, second = ctx.gradients
        return first.mul_(weight), second.mul_(weight), None
