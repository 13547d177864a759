"""Two passes over a batch that should predict the same: SimCut (Gao et al., 2022) and R-Drop (Liang et al., 2021)."""

from typing import Any

import torch
from torch import Tensor

from transduce.config.schema import EOS, PAD, UNK, TrainConfig


def num_passes(train: TrainConfig) -> int:
    """The number of passes over a batch in an update."""
    return 1 if train.consistency == "none" else 2


def omit(tokens: Tensor, share: float) -> Tensor:
    """Replace a random share of the tokens by UNK, which otherwise never occurs; PAD, BOS and EOS stay."""
    if not share:
        return tokens
    omitted = torch.rand(tokens.shape, device=tokens.device) < share
    return tokens.masked_fill(omitted & (tokens > EOS), UNK)


def divergence(first: Tensor, second: Tensor, targets: Tensor, chunk: int) -> Tensor:
    """The sum of KL(first || second) over the target tokens without PAD, in float32, with gradients for both.

    The logits (batch, tokens, v) may have any precision; `chunk` rows are processed at a time.
    """
    return _Divergence.apply(first.flatten(0, -2), second.flatten(0, -2), targets.flatten(), chunk)


class _Divergence(torch.autograd.Function):
    """Divergence and gradients in one pass over the logits, as in `smoothed_cross_entropy`."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, targets: Tensor, chunk: int) -> Tensor:
        gradients = [torch.empty_like(logits) for logits in (first, second)]
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
        return first.mul_(weight), second.mul_(weight), None, None
