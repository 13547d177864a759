"""Converts weights between encoder-decoder models in Hugging Face's format and our models.

Their position vectors hold all sines before all cosines, but our position vectors alternate sines and cosines. The
conversion therefore permutes the channels of every layer.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import ModelConfig

WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"
GENERATION_FILE, TOKENIZER_FILE = "generation_config.json", "tokenizer_config.json"
DIRECTIONS = "transduce_directions"  # data.directions, in TOKENIZER_FILE of a multilingual model
SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
SHARED_EMBEDDING, OUTPUT_BIAS, OUTPUT_PROJECTION = (
    "model.shared.weight",
    "final_logits_bias",
    "lm_head.weight",
)
SOURCE_EMBEDDING, TARGET_EMBEDDING = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)
FIXED_VALUES = {  # entries of config.json that all supported models share
    "model_type": "marian",
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
}
SIZES = {  # Marian's entry -> our option
    "d_model": "d_model",
    "encoder_layers": "num_encoder_layers",
    "decoder_layers": "num_decoder_layers",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
    "encoder_attention_heads": "num_heads",
    "decoder_attention_heads": "num_heads",
}
# Marian's -> ours.
MARIAN_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "silu": "silu",
    "swish": "silu",
}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
# Projections from d_model channels; the other weights project to them.
INPUTS = (
    "q_proj",
    "k_proj",
    "v_proj",
    "fc1",
)


class Entry(NamedTuple):
    """The names of one weight in our model and in Marian's."""

    ours: str
    theirs: str
    channels: int | None  # the dimension of size d_model; None: there is none


def layers(config: ModelConfig) -> Iterator[Entry]:
    """An Entry for every weight except the embeddings of tokens and the output bias."""
    for stack, count in (
        ("encoder", config.num_encoder_layers),
        ("decoder", config.num_decoder_layers),
    ):
        attentions = {"attention": "self_attn"} | (
            {"source_attention": "encoder_attn"} if stack == "decoder" else {}
        )
        sublayers = [f"{name}_layer_norm" for name in (*attentions.values(), "final")]
        names = {
            **{
                f"{a}.{p}": f"{attentions[a]}.{PROJECTIONS[p]}"
                for a in attentions
                for p in PROJECTIONS
            },
            **{"feed_forward.inner": "fc1", "feed_forward.out": "fc2"},
            **{f"residual.{i}.norm": norm for i, norm in enumerate(sublayers)},
        }
        for layer, (ours, theirs) in product(range(count), names.items()):
            prefixes = f"{stack}.{layer}.{ours}", f"model.{stack}.layers.{layer}.{theirs}"
            reads = theirs.endswith(INPUTS)
            yield Entry(f"{prefixes[0]}.weight", f"{prefixes[1]}.weight", 1 if reads else 0)
            yield Entry(f"{prefixes[0]}.bias", f"{prefixes[1]}.bias", None if reads else 0)
        norms = {f"{stack}_norm": "layer_norm"} if config.norm == "pre" else {}
        if config.embedding_norm:
            norms["source_norm" if stack == "encoder" else "target_norm"] = "layernorm_embedding"
        for (ours, theirs), kind in product(norms.items(), ("weight", "bias")):
            yield Entry(f"{ours}.{kind}", f"model.{stack}.{theirs}.{kind}", 0)
        if config.positions == "learned":
            ours = "source_positions" if stack == "encoder" else "target_positions"
            yield Entry(f"{ours}.weight", f"model.{stack}.embed_positions.weight", 1)


def to_theirs(weight: Tensor, channels: int | None) -> Tensor:
    """Reorder a weight's channels from our order to Marian's order."""
    return weight if channels is None else weight.index_select(channels, _order(weight, channels))


def to_ours(weight: Tensor, channels: int | None) -> Tensor:
    """Reorder a weight's channels from Marian's order to our order."""
    if channels is None:
        return weight
    return weight.index_select(channels, _order(weight, channels).argsort())


def _order(weight: Tensor, channels: int) -> Tensor:
    """Our channels in Marian's order, with the sines first."""
    d_model = weight.size(channels)
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))
