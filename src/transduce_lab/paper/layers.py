"""The layers of the paper's table 1, with inputs and outputs of shape (1, length n, width d)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transduce.config.schema import ModelConfig, with_options
from transduce.model.attention import make_attention

KERNEL, NEIGHBOURHOOD, MAX_HEADS = 3, 64, 8


class SelfAttention(nn.Module):
    """Self-attention to the positions less than `window` away, or to all positions if `window` is 0."""

    def __init__(self, d: int, window: int = 0):
        super().__init__()
        config = with_options(ModelConfig(d_model=d, num_heads=min(MAX_HEADS, d)), window=window)
        self.attention = make_attention(config, to_self=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, self.attention.project(x))


class Recurrence(nn.Module):
    """An LSTM layer."""

    def __init__(self, d: int):
        super().__init__()
        self.rnn = nn.LSTM(d, d, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]

    def by_steps(self, x: Tensor) -> Tensor:
        """The result of `forward`, computed with one call per position."""
        outputs = []
        hidden = None
        for step in x.split(1, dim=1):
            y, hidden = self.rnn(step, hidden)
            outputs.append(y)
        return torch.cat(outputs, dim=1)


class Convolution(nn.Module):
    """A causal convolution over KERNEL positions that are `dilation` apart.

    If `separable` is true, a depthwise convolution precedes a pointwise convolution.
    """

    def __init__(self, d: int, dilation: int = 1, separable: bool = False):
        super().__init__()
        self.padding = dilation * (KERNEL - 1)
        self.conv = nn.Conv1d(
            d, d, KERNEL, dilation=dilation, groups=d if separable else 1, bias=not separable
        )
        self.point = nn.Linear(d, d) if separable else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x.transpose(1, 2), (self.padding, 0))
        return self.point(self.conv(padded).transpose(1, 2))


def layer(name: str, d: int, depth: int = 0) -> nn.Module:
    """Make the layer `name` of table 1 for the index `depth` in a stack of layers."""
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
