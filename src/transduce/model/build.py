"""Models by name: built, initialised and counted."""

import math
from pathlib import Path
from pkgutil import resolve_name

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from transduce.config.families import FAMILIES
from transduce.config.schema import ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.embedding import Embedding, LearnedPositions
from transduce.model.layers import FeedForward, Residual
from transduce.model.seq2seq import Seq2Seq
from transduce.system.errors import UserError


def model_class(kind: str) -> type[Seq2Seq]:
    """The class of a family, imported now if it stands in a wing."""
    family: type[Seq2Seq] = resolve_name(FAMILIES[kind].model)
    return family


def build(config: ModelConfig, seed: int = 1) -> Seq2Seq:
    """A model of the given shape with fresh weights, the same for the same seed."""
    model = model_class(config.kind)(config)
    initialise(model, seed)
    return model


def initialise(model: nn.Module, seed: int) -> None:
    """Xavier's uniform initialisation, zero biases, embeddings of variance 1 / d_model.

    Query, key and value are drawn as the one matrix that they are in tensor2tensor, which divides them by sqrt(2). The
    last matrix of every residual branch is divided by the square root of the number of branches in its stack
    (Radford et al., 2019), so that the sum of all branches, not each of them, begins as large as what they are added
    to: with post-norm this is worth three BLEU after three epochs of Multi30k (docs/reference/recipes.md).
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (Embedding, LearnedPositions)):
            deviation = 1 / math.sqrt(module.weight.size(1))
            nn.init.normal_(module.weight, std=deviation, generator=generator)
        elif callable(draw_weights := getattr(module, "draw_weights", None)):  # parts that only some families have
            draw_weights(generator)
    for stack in model.children():
        branches = sum(isinstance(module, Residual) for module in stack.modules())
        for module in stack.modules():
            if isinstance(module, MultiHeadAttention):
                for projection in (module.query, module.key, module.value):
                    scale(projection, math.sqrt(0.5))
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                scale(module.out, 1 / math.sqrt(branches))


def draw_convolution(conv: nn.Conv1d, gain: float, generator: torch.Generator) -> None:
    """Draw weights of variance gain / inputs, and zero biases."""
    nn.init.normal_(conv.weight, std=math.sqrt(gain / (conv.in_channels * conv.kernel_size[0])), generator=generator)
    if conv.bias is not None:
        nn.init.zeros_(conv.bias)


@torch.no_grad()
def scale(layer: nn.Linear, factor: float) -> None:
    """Multiply the weights of a layer."""
    layer.weight.mul_(factor)


def load_weights(model: nn.Module, file: Path) -> None:
    """Copy the weights of a safetensors file into the model; raises UserError if it is damaged or doesn't fit."""
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} can't be read: {error}; use another copy.") from None
    own = model.state_dict()
    for name in sorted(own.keys() | weights.keys()):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            raise UserError(f"{file} does not fit the model's configuration: '{name}' differs; use another copy.")
    model.load_state_dict(weights)


def count_parameters(config: ModelConfig) -> int:
    """How many numbers a model of this shape learns; nothing is allocated."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in model_class(config.kind)(config).parameters())
