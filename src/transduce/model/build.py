"""Build, initialise and load models, and count their parameters."""

import math
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from transduce.config.families import families
from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.embedding import Embedding, LearnedPositions
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import FeedForward, Residual
from transduce.system.errors import UserError
from transduce.system.files import check_utf8
from transduce.system.registry import load


def model_class(kind: str) -> type[Seq2Seq]:
    """Import and return the class of a model family."""
    family: type[Seq2Seq] = load(families()[kind].model)
    return family


def build(config: ModelConfig, seed: int = 1) -> Seq2Seq:
    """Build a model, and draw its initial weights by the method config.init with the random seed `seed`."""
    with torch.random.fork_rng(devices=()):  # PyTorch's layers draw weights of their own first
        model = model_class(config.kind)(config)
    model.vocab_size = config.vocab_size
    initialise(model, seed, config.init)
    return model


@torch.no_grad()
def initialise(model: nn.Module, seed: int, method: str = "transduce") -> None:
    """Draw matrices by Xavier's uniform method, draw embeddings with variance 1 / d_model, and set biases to 0.

    A module with a method `draw_weights` draws its own weights. The methods for Transformers differ as follows:

    * transduce: query, key and value matrices are divided by sqrt(2), as if they were one matrix. The last matrix of
      every residual branch is divided by the square root of the number of branches in the encoder or decoder (Radford
      et al., 2019). docs/reference/recipes.md (Initialisation) has a comparison.
    * xavier: embeddings are drawn by Xavier's method, too (The Annotated Transformer; OpenNMT-py: param_init_glorot).
    * t2t: query, key and value are one matrix in self-attention; key and value are one matrix in attention to the
      source (tensor2tensor of June 2017: initializer "uniform_unit_scaling", common_attention.py, modalities.py).
    * fairseq: query, key and value matrices as in transduce. Their biases, and the feed-forward layers, are uniform
      between -1 / sqrt(inputs) and 1 / sqrt(inputs). The embedding of padding is 0 (fairseq 0.10 to 0.12:
      multihead_attention.py, transformer_layer.py).
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        draw_weights = getattr(module, "draw_weights", None)
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (Embedding, LearnedPositions)):
            if method == "xavier":
                nn.init.xavier_uniform_(module.weight, generator=generator)
            else:
                deviation = 1 / math.sqrt(module.weight.size(1))
                nn.init.normal_(module.weight, std=deviation, generator=generator)
            if method == "fairseq" and isinstance(module, Embedding):
                module.weight[PAD] = 0
        elif callable(draw_weights):
            draw_weights(generator)
    for stack in model.children():
        branches = sum(isinstance(module, Residual) for module in stack.modules())
        for name, module in stack.named_modules():
            if isinstance(module, MultiHeadAttention) and method != "xavier":
                _scale_projections(module, method, to_source=name.endswith("source_attention"))
            if (
                branches
                and isinstance(module, (MultiHeadAttention, FeedForward))
                and method == "transduce"
            ):
                module.out.weight.mul_(1 / math.sqrt(branches))
            if method == "fairseq":
                _draw_like_torch(module, generator)


def _scale_projections(attention: MultiHeadAttention, method: str, *, to_source: bool) -> None:
    """Scale matrices drawn by Xavier's method as if they were parts of one matrix."""
    parts = [attention.query, attention.key, attention.value]
    for group in [parts[:1], parts[1:]] if to_source else [parts]:
        width = group[0].in_features + sum(part.out_features for part in group)
        for part in group:
            share = (part.in_features + part.out_features) / width if method == "t2t" else 0.5
            part.weight.mul_(math.sqrt(share))


def _draw_like_torch(module: nn.Module, generator: torch.Generator) -> None:
    """Draw what fairseq leaves to nn.Linear: feed-forward layers, and the biases of query, key and value."""
    drawn: list[tuple[nn.Linear, torch.Tensor]] = []
    if isinstance(module, MultiHeadAttention):
        drawn = [
            (layer, layer.bias)
            for layer in (module.query, module.key, module.value)
            if layer.bias is not None
        ]
    elif isinstance(module, FeedForward):
        layers = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
        drawn = [(layer, weight) for layer in layers for weight in layer.parameters()]
    for layer, weight in drawn:
        bound = 1 / math.sqrt(layer.in_features)
        nn.init.uniform_(weight, -bound, bound, generator=generator)


def load_weights(model: nn.Module, file: Path) -> None:
    """Load weights from a safetensors file. Raises UserError if the file is damaged or does not fit the model."""
    check_utf8(file.parent)
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        is_damaged = isinstance(error, SafetensorError)
        remedy = "Use another copy." if is_damaged else "Check its name and permissions."
        raise UserError(f"{file} can't be read: {error}.", remedy) from None
    own = model.state_dict()
    for name in sorted(own.keys() | weights.keys()):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            raise UserError(
                f"{file} does not fit the model's configuration: '{name}' differs.",
                "Use another copy.",
            )
    model.load_state_dict(weights)


@cache
def count_parameters(config: ModelConfig) -> int:
    """Count the parameters of a model without allocating them."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in model_class(config.kind)(config).parameters())
