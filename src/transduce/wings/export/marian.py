"""Names and layout of a Marian model's weights in Hugging Face's format, beside ours.

Marian's sinusoid has all sines, then all cosines; ours alternates them (section 3.5 of the paper). Permuting the
channels of every layer in the same way leaves the model the same.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import ModelConfig

WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"
GENERATION_FILE, TOKENIZER_FILE = "generation_config.json", "tokenizer_config.json"
SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
SHARED_EMBEDDING, OUTPUT_BIAS, OUTPUT_PROJECTION = "model.shared.weight", "final_logits_bias", "lm_head.weight"
SOURCE_EMBEDDING, TARGET_EMBEDDING = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
MARIAN_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}  # theirs -> ours

PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}


class Entry(NamedTuple):
    """The names of one weight in both models."""

    ours: str
    theirs: str
    channels: int | None  # the dimension of size d_model


def layers(config: ModelConfig) -> Iterator[Entry]:
    """Every weight except the embeddings and the output bias."""
    for layer in range(config.num_encoder_layers):
        ours, theirs = f"encoder.{layer}", f"model.encoder.layers.{layer}"
        yield from _attention(f"{ours}.attention", f"{theirs}.self_attn")
        yield from _feed_forward(ours, theirs)
        yield from _norms(ours, theirs, "self_attn_layer_norm", "final_layer_norm")
    for layer in range(config.num_decoder_layers):
        ours, theirs = f"decoder.{layer}", f"model.decoder.layers.{layer}"
        yield from _attention(f"{ours}.attention", f"{theirs}.self_attn")
        yield from _attention(f"{ours}.source_attention", f"{theirs}.encoder_attn")
        yield from _feed_forward(ours, theirs)
        yield from _norms(ours, theirs, "self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")


def to_theirs(weight: Tensor, channels: int | None) -> Tensor:
    """Alternating sines and cosines -> all sines, then all cosines."""
    return weight if channels is None else weight.index_select(channels, _sines_first(weight.size(channels)))


def to_ours(weight: Tensor, channels: int | None) -> Tensor:
    """All sines, then all cosines -> alternating."""
    return weight if channels is None else weight.index_select(channels, _sines_first(weight.size(channels)).argsort())


def _sines_first(d_model: int) -> Tensor:
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def _attention(ours: str, theirs: str) -> Iterator[Entry]:
    for name, projection in PROJECTIONS.items():
        yield from _input_projection(f"{ours}.{name}", f"{theirs}.{projection}")
    yield from _output_projection(f"{ours}.out", f"{theirs}.out_proj")


def _feed_forward(ours: str, theirs: str) -> Iterator[Entry]:
    yield from _input_projection(f"{ours}.feed_forward.inner", f"{theirs}.fc1")
    yield from _output_projection(f"{ours}.feed_forward.out", f"{theirs}.fc2")


def _norms(ours: str, theirs: str, *names: str) -> Iterator[Entry]:
    for index, name in enumerate(names):
        yield from _output_projection(f"{ours}.residual.{index}.norm", f"{theirs}.{name}")


def _input_projection(ours: str, theirs: str) -> Iterator[Entry]:
    """A matrix (out, d_model)."""
    yield Entry(f"{ours}.weight", f"{theirs}.weight", 1)
    yield Entry(f"{ours}.bias", f"{theirs}.bias", None)


def _output_projection(ours: str, theirs: str) -> Iterator[Entry]:
    """A matrix (d_model, in) or a vector (d_model,)."""
    yield Entry(f"{ours}.weight", f"{theirs}.weight", 0)
    yield Entry(f"{ours}.bias", f"{theirs}.bias", 0)
