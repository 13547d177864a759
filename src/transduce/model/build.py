"""Build, initialise and load models, and count their parameters."""

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
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import FeedForward, Residual
from transduce.system.errors import UserError


def model_class(kind: str) -> type[Seq2Seq]:
    """Import and return the class of a model family."""
    family: type[Seq2Seq] = resolve_name(FAMILIES[kind].model)
    return family


def build(config: ModelConfig, seed: int = 1) -> Seq2Seq:
    """Build a model, and draw its initial weights with the random seed `seed`."""
    model = model_class(config.kind)(config)
    initialise(model, seed)
    return model


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Draw matrices by Xavier's uniform method, draw embeddings with variance 1 / d_model, and set biases to 0.

    Query, key and value matrices are divided by sqrt(2), because tensor2tensor draws them as one matrix. The last
    matrix of every residual branch is divided by the square root of the number of branches in the encoder or decoder
    (Radford et al., 2019). With post-norm, this division raises BLEU by three points after three epochs of Multi30k
    (docs/reference/recipes.md). A module with a method `draw_weights` draws its own weights.
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
        elif callable(draw_weights := getattr(module, "draw_weights", None)):
            draw_weights(generator)
    for stack in model.children():
        branches = sum(isinstance(module, Residual) for module in stack.modules())
        for module in stack.modules():
            if isinstance(module, MultiHeadAttention):
                for projection in (module.query, module.key, module.value):
                    projection.weight.mul_(math.sqrt(0.5))
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                module.out.weight.mul_(1 / math.sqrt(branches))


def load_weights(model: nn.Module, file: Path) -> None:
    """Load weights from a safetensors file. Raises UserError if the file is damaged or does not fit the model."""
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} can't be read: {error}. Use another copy.") from None
    own = model.state_dict()
    for name in sorted(own.keys() | weights.keys()):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            raise UserError(f"{file} does not fit the model's configuration: '{name}' differs. Use another copy.")
    model.load_state_dict(weights)


def count_parameters(config: ModelConfig) -> int:
    """Count the parameters of a model without allocating them."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in model_class(config.kind)(config).parameters())
