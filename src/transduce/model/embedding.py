"""Tokens and positions to vectors, vectors back to tokens, and dropout (sections 3.4, 3.5 and 5.4 of the paper)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig


def sinusoids(length: int, d_model: int) -> Tensor:
    """(length, d_model): channel 2i is sin(pos / 10000^(2i / d_model)), 2i + 1 its cosine."""
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angle = torch.arange(length)[:, None] * rate
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class Embedding(nn.Module):
    """A vector per token, times sqrt(d_model); the same matrix predicts tokens (section 3.4)."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, tokens: Tensor) -> Tensor:
        """(r, t) -> (r, t, d_model)."""
        return F.embedding(tokens, self.weight) * self.scale

    def logits(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> (r, t, v)."""
        return F.linear(x, self.weight)


class SinusoidalPositions(nn.Module):
    """The table of section 3.5; it grows with the longest sequence, so length has no limit."""

    def __init__(self, d_model: int, length: int = 512):
        super().__init__()
        self.register_buffer("table", sinusoids(length, d_model), persistent=False)
        self.table: Tensor

    def forward(self, start: int, length: int) -> Tensor:
        """(length, d_model), the first at position `start`."""
        table = self.table  # another thread may replace it meanwhile
        if start + length > table.size(0):
            with torch.inference_mode(False):  # training may use it later
                self.table = table = sinusoids(2 * (start + length), table.size(1)).to(table)
        return table[start : start + length]


class LearnedPositions(nn.Module):
    """A trained vector per position (row E of Table 3)."""

    def __init__(self, d_model: int, length: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, d_model))

    def forward(self, start: int, length: int) -> Tensor:
        """(length, d_model), the first at position `start`."""
        return self.weight[start : start + length]


def make_positions(config: ModelConfig) -> SinusoidalPositions | LearnedPositions:
    """The positional encoding that model.positions names."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_positions)
    return SinusoidalPositions(config.d_model)


class Dropout(nn.Module):
    """Set each value to 0 with probability p (to within 1/65,536), else divide it by 1 - p; only in training mode."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or not self.p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        # On a CPU torch draws 32 random bits a value, a tenth of the training time. 16 bits are enough, and a 64-bit
        # draw holds four of them.
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        threshold = min(round(self.p * 2**16), 2**16 - 1) - 2**15  # below 2^15, which 16 bits would read as -2^15
        keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
        return x * keep.to(x.dtype).mul_(1 / (1 - self.p))

    def extra_repr(self) -> str:
        """Shown by `print(model)`."""
        return f"p={self.p}"
