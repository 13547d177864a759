"""The layers that table 1 compares; each layer maps a tensor (1, n, d) to (1, n, d), for length n and width d."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transduce.config.schema import ModelConfig
from transduce.model.restricted import make_attention

KERNEL, NEIGHBOURHOOD, MAX_HEADS = 3, 64, 8


class SelfAttention(nn.Module):
    """Self-attention to positions less than `window` away (r = 2 * window in table 1); window 0: to all positions."""

    def __init__(self, d: int, window: int = 0):
        super().__init__()
        config = ModelConfig(d_model=d, num_heads=min(MAX_HEADS, d), window=window)
        self.attention = make_attention(config, to_self=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, self.attention.project(x))


class Recurrence(nn.Module):
    """An LSTM; `forward` calls it once for all positions, and `by_steps` calls it once for each position."""

    def __init__(self, d: int):
        super().__init__()
        self.rnn = nn.LSTM(d, d, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]

    def by_steps(self, x: Tensor) -> Tensor:
        """The result of `forward`, computed with one call per position."""
        outputs, hidden = [], None
        for step in x.split(1, dim=1):
            y, hidden = self.rnn(step, hidden)
            outputs.append(y)
        return torch.cat(outputs, dim=1)


class Convolution(nn.Module):
    """A causal convolution over k = KERNEL positions, which are `dilation` apart and end at the current position.

    A stack of log_k n layers with dilations 1, k, k^2, … sees n positions. `separable`: depthwise, then pointwise.
    """

    def __init__(self, d: int, dilation: int = 1, separable: bool = False):
        super().__init__()
        self.padding = dilation * (KERNEL - 1)
        self.conv = nn.Conv1d(d, d, KERNEL, dilation=dilation, groups=d if separable else 1, bias=not separable)
        self.point = nn.Linear(d, d) if separable else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x.transpose(1, 2), (self.padding, 0))
        return self.point(self.conv(padded).transpose(1, 2))


def layer(name: str, d: int, depth: int = 0) -> nn.Module:
    """Make the layer that table 1 calls `name`; `depth`, the layer's index in a stack, determines the dilation."""
    match name:
        case "self-attention":
            return SelfAttention(d)
        case "restricted self-attention":
            return SelfAttention(d, NEIGHBOURHOOD // 2)
        case "recurrent":
            return Recurrence(d)
        case "convolutional, dilated":
            return Convolution(d, KERNEL**depth)
        case _:
            return Convolution(d, separable=name.startswith("separable"))
