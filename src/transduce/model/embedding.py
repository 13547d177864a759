"""Token embeddings, output logits, position encodings and dropout (sections 3.4, 3.5 and 5.4 of the paper)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.kernels import dropout

# The first of several positions, or the position (b, s) of each token in its sentence.
Start = int | Tensor


def sinusoids(length: int, d_model: int, kind: str = "sinusoidal") -> Tensor:
    """The sinusoidal encodings (length, d_model) of the first `length` positions (section 3.5).

    With the kind "t2t", the slowest rate is 1 / 10000 exactly, as in tensor2tensor and Marian. Fairseq has these rates,
    too, and its first two positions are for padding.
    """
    divisor = d_model if kind == "sinusoidal" else max(d_model - 2, 1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / divisor))
    first = 2 if kind == "fairseq" else 0
    angle = torch.arange(first, first + length)[:, None] * rate
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class Embedding(nn.Module):
    """Token embeddings that are also the weights of the output layer (section 3.4)."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, tokens: Tensor) -> Tensor:
        """Token ids (r, t) -> embeddings (r, t, d_model)."""
        return F.embedding(tokens, self.weight) * self.scale

    def logits(self, x: Tensor) -> Tensor:
        """x (r, t, d_model) -> logits (r, t, v)."""
        return F.linear(x, self.weight)


def _index(start: Start, length: int) -> Tensor | slice:
    return start if isinstance(start, Tensor) else slice(start, start + length)


class SinusoidalPositions(nn.Module):
    """Sinusoidal position encodings (section 3.5) for sequences of any length."""

    def __init__(self, d_model: int, kind: str = "sinusoidal"):
        super().__init__()
        self.kind = kind
        # Grows when it is used.
        self.register_buffer("table", torch.empty(0, d_model), persistent=False)
        self.table: Tensor

    def forward(self, start: Start, length: int) -> Tensor:
        """The encodings (length, d_model) of `length` positions from `start` on, or those of positions (b, length)."""
        table = self.table  # another thread may replace self.table meanwhile
        end = length if isinstance(start, Tensor) else start + length
        if end > table.size(0):
            with torch.inference_mode(False):  # otherwise, training could not use the table later
                longer = sinusoids(2 * end, table.size(1), self.kind)
                self.table = table = longer.to(table)
        return table[_index(start, length)]


class RotaryPositions(SinusoidalPositions):
    """Rotates queries and keys by angles proportional to their positions (Su et al., 2021), in self-attention.

    A product of a query and a key then depends on the distance of their positions. No encoding is added to embeddings.
    """

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate pairs of channels of x (b, h, t, d_k), whose first position is `start`."""
        table = self(start, x.size(-2)).to(x.dtype)
        sines = table[:, 0::2]
        cosines = table[:, 1::2]
        even = x[..., 0::2]
        odd = x[..., 1::2]
        return torch.stack(
            (even * cosines - odd * sines, even * sines + odd * cosines), dim=-1
        ).flatten(-2)


class NoPositions(nn.Module):
    """Adds nothing to embeddings, because attention encodes the positions."""

    def forward(self, _start: Start, _length: int) -> float:
        return 0.0


class LearnedPositions(nn.Module):
    """One trained vector per position (row E of Table 3)."""

    def __init__(self, d_model: int, length: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, d_model))

    def forward(self, start: Start, length: int) -> Tensor:
        """The encodings (length, d_model) of `length` positions from `start` on, or those of positions (b, length)."""
        return self.weight[_index(start, length)]


def make_positions(config: ModelConfig) -> SinusoidalPositions | LearnedPositions | NoPositions:
    """Make the encoding that `config.positions` adds to embeddings."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_positions)
    if config.positions == "rotary":
        return NoPositions()
    return SinusoidalPositions(config.d_model, config.positions)


class Dropout(nn.Module):
    """In training mode, sets each value to 0 with probability p, and divides the others by 1 - p."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training and self.p else x
