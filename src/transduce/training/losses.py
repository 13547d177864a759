"""Label-smoothed cross-entropy (section 5.4 of the paper).

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


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        on_cpu = logits.device.type == "cpu"
        # Rows at a time.
        chunk = max(1, CACHED_LOGITS // logits.size(-1)) if on_cpu else len(logits)
        sums = torch.zeros(
            3, dtype=torch.float64 if on_cpu else torch.float32, device=logits.device
        )
        for start in range(0, len(logits), chunk):
            x = logits[start : start + chunk].float()
            target = targets[start : start + chunk]
            real = (target != PAD).float()
            highest = x.amax(dim=-1)
            exponentials = (x - highest[:, None]).exp_()
            total = exponentials.sum(dim=-1)
            log_total = highest + total.log()
            chosen = x.gather(-1, target[:, None]).squeeze(-1)
            nll = log_total - chosen
            loss = (1 - smoothing) * nll + smoothing * (log_total - x.mean(dim=-1))
            sums += torch.stack(
                ((loss * real).sum(), (nll * real).sum(), ((chosen == highest) * real).sum())
            )
            if gradient is not None:  # softmax minus the target distribution
                difference = exponentials.mul_((real / total)[:, None]).sub_(
                    (real * (smoothing / x.size(-1)))[:, None]
                )
                difference.scatter_add_(-1, target[:, None], (real * (smoothing - 1))[:, None])
                gradient[start : start + chunk] = difference
        ctx.gradient = gradient
        loss, nll, correct = sums.float()
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    def backward(ctx: Any, loss: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient.mul_(loss), None, None
