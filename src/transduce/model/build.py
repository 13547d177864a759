"""Models by name: built, initialised and counted."""

import math
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from transduce.config import ModelConfig
from transduce.errors import UserError
from transduce.model.attention import MultiHeadAttention
from transduce.model.embedding import Embedding, LearnedPositions
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import Transformer

KINDS: dict[str, type[Seq2Seq]] = {"transformer": Transformer}


def build(config: ModelConfig, seed: int = 1) -> Seq2Seq:
    """A model of the given shape with fresh weights, the same for the same seed."""
    model = KINDS[config.kind](config)
    initialise(model, seed)
    return model


def initialise(model: nn.Module, seed: int) -> None:
    """Xavier's uniform initialisation, zero biases, embeddings of variance 1 / d_model.

    Query, key and value are drawn as one matrix of three times the height would be, gain 1/sqrt(2), as
    tensor2tensor did: with their full gain a post-norm model learns visibly slower at first.
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
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for projection in (module.query, module.key, module.value):
                projection.weight.data.mul_(math.sqrt(0.5))


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
        return sum(weight.numel() for weight in KINDS[config.kind](config).parameters())
