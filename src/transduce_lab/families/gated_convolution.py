"""Convolutions with gated linear units (Gehring et al., 2017), also depthwise separable ones (Kaiser et al., 2017).

r = rows (hypotheses), t = target positions.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.embedding import Dropout
from transduce_lab.options import ConvolutionOptions, KernelOptions


class Shape(NamedTuple):
    """The sizes of a convolution layer."""

    inputs: int
    channels: int
    kernel: int


def shapes(config: ModelConfig, layers: int) -> list[Shape]:
    """The layer sizes from model.convolutions, or `layers` layers with d_model channels if that option is empty."""
    sizes = [
        (int(channels), int(kernel))
        for count, channels, kernel in (
            text.split("x") for text in ConvolutionOptions.of(config).convolutions
        )
        for _ in range(int(count))
    ] or [(config.d_model, KernelOptions.of(config).kernel_size)] * layers
    inputs = [sizes[0][0], *(channels for channels, _ in sizes)]
    return [Shape(before, *size) for before, size in zip(inputs, sizes, strict=False)]


def draw_convolution(conv: nn.Conv1d, gain: float, generator: torch.Generator) -> None:
    """Draw weights with variance `gain` / fan-in, and set biases to zero."""
    fan_in = conv.in_channels // conv.groups * conv.kernel_size[0]
    nn.init.normal_(conv.weight, std=math.sqrt(gain / fan_in), generator=generator)
    if conv.bias is not None:
        nn.init.zeros_(conv.bias)


class GatedConvolution(nn.Module):
    """A convolution with gated linear units. The caller must pad the input.

    If it is separable, a kernel for each channel is followed by a linear layer over the channels of a position.
    """

    def __init__(self, shape: Shape, config: ModelConfig):
        super().__init__()
        self.kernel = shape.kernel
        inputs = shape.inputs
        separable = ConvolutionOptions.of(config).separable
        self.depthwise = (
            nn.Conv1d(inputs, inputs, self.kernel, groups=inputs, bias=False)
            if separable
            else nn.Identity()
        )
        self.conv = nn.Conv1d(inputs, 2 * shape.channels, 1 if separable else self.kernel)
        self.shortcut = (
            nn.Linear(shape.inputs, shape.channels)
            if shape.inputs != shape.channels
            else nn.Identity()
        )
        self.dropout = Dropout(config.dropout)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw weights with variance 4 / fan-in (section 3.5 of ConvS2S), or 1 / fan-in before the linear layer."""
        draw_convolution(self.conv, 4, generator)
        if isinstance(self.depthwise, nn.Conv1d):
            draw_convolution(self.depthwise, 1, generator)

    def forward(self, window: Tensor) -> Tensor:
        """(r, t + kernel - 1, inputs) -> (r, t, channels)."""
        return F.glu(
            self.conv(self.depthwise(self.dropout(window).transpose(1, 2))).transpose(1, 2), dim=-1
        )
