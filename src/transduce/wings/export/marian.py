"""How the weights of a Marian model in Hugging Face's form are named and laid out, against ours.

Its sinusoid has all sines, then all cosines, where ours has them in turns (section 3.5 of the paper). A model that has
the channels of all its layers in the other order is the same model.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import ModelConfig

WEIGHTS, CONFIG, GENERATION, TOKENIZER = (
    "model.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
)
SOURCE, TARGET, VOCABULARY, TARGET_VOCABULARY = "source.spm", "target.spm", "vocab.json", "target_vocab.json"
SHARED, BIAS, PREDICTING = "model.shared.weight", "final_logits_bias", "lm_head.weight"
SOURCE_EMBEDDING, TARGET_EMBEDDING = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}  # theirs -> ours

PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}


class Entry(NamedTuple):
    """A weight of a layer in both models."""

    ours: str
    theirs: str
    channels: int | None  # the dimension that is as wide as the model


def layers(config: ModelConfig) -> Iterator[Entry]:
    """Every weight but embeddings and what is added to the logits."""
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
    """Sines and cosines in turns -> sines, then cosines."""
    return weight if channels is None else weight.index_select(channels, _sines_first(weight.size(channels)))


def to_ours(weight: Tensor, channels: int | None) -> Tensor:
    """The other way round."""
    return weight if channels is None else weight.index_select(channels, _sines_first(weight.size(channels)).argsort())


def _sines_first(d_model: int) -> Tensor:
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def _attention(ours: str, theirs: str) -> Iterator[Entry]:
    for name, projection in PROJECTIONS.items():
        yield from _entering(f"{ours}.{name}", f"{theirs}.{projection}")
    yield from _leaving(f"{ours}.out", f"{theirs}.out_proj")


def _feed_forward(ours: str, theirs: str) -> Iterator[Entry]:
    yield from _entering(f"{ours}.feed_forward.inner", f"{theirs}.fc1")
    yield from _leaving(f"{ours}.feed_forward.out", f"{theirs}.fc2")


def _norms(ours: str, theirs: str, *names: str) -> Iterator[Entry]:
    for place, name in enumerate(names):
        yield from _leaving(f"{ours}.residual.{place}.norm", f"{theirs}.{name}")


def _entering(ours: str, theirs: str) -> Iterator[Entry]:
    """A matrix (out, d_model)."""
    yield Entry(f"{ours}.weight", f"{theirs}.weight", 1)
    yield Entry(f"{ours}.bias", f"{theirs}.bias", None)


def _leaving(ours: str, theirs: str) -> Iterator[Entry]:
    """A matrix (d_model, in) or a vector (d_model,)."""
    yield Entry(f"{ours}.weight", f"{theirs}.weight", 0)
    yield Entry(f"{ours}.bias", f"{theirs}.bias", 0)
