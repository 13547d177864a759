"""Small models of each kind."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, ModelConfig, with_options
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq

SMALL = ModelConfig(
    vocab_size=9,
    d_model=16,
    d_ff=32,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)


KINDS = {
    "post": SMALL,
    "pre": replace(SMALL, norm="pre"),
    "window": with_options(SMALL, window=2),
    "dot": replace(SMALL, attention="dot"),
    "additive": replace(SMALL, attention="additive", d_k=3),
    "experts": with_options(SMALL, experts=3, experts_per_token=2, expert_layers=(2,)),
    "blocks": with_options(SMALL, block_size=2, norm="pre"),
    "recurrent": replace(SMALL, kind="recurrent", attention="additive"),
    "recurrent, shallow": replace(
        SMALL, kind="recurrent", attention="dot", num_encoder_layers=1, num_decoder_layers=1
    ),
    "recurrent, deep": with_options(
        SMALL, kind="recurrent", cell="gru", num_encoder_layers=4, num_decoder_layers=4
    ),
    "convolutional": replace(SMALL, kind="convolutional"),
    "convolutional, uneven": with_options(
        SMALL, kind="convolutional", convolutions=("2x8x3", "1x12x4", "1x20x1")
    ),
    "separable": with_options(
        SMALL, kind="convolutional", separable=True, convolutions=("1x8x3", "1x12x4")
    ),
    "recurrent, experts": with_options(
        SMALL, kind="recurrent", num_encoder_layers=3, experts=3, experts_per_token=2
    ),
    "bytenet": replace(
        SMALL, kind="bytenet", num_encoder_layers=6, num_decoder_layers=7, source_vocab_size=10
    ),
    "deep_att": replace(SMALL, kind="deep_att", source_vocab_size=10),
    "deep_att, shallow": replace(
        SMALL, kind="deep_att", num_encoder_layers=1, num_decoder_layers=1
    ),
    "neural_gpu": replace(SMALL, kind="neural_gpu", source_vocab_size=10),
    "neural_gpu, shallow": replace(
        SMALL, kind="neural_gpu", num_encoder_layers=1, num_decoder_layers=1
    ),
    "learned": replace(SMALL, positions="learned", max_positions=8),
    "heads": replace(SMALL, d_k=3, d_v=5),
    "separate": replace(SMALL, source_vocab_size=11, num_encoder_layers=1),
    "gelu": replace(SMALL, activation="gelu"),
    "silu": replace(SMALL, activation="silu", norm="pre", num_heads=2),
    "swiglu": replace(SMALL, activation="swiglu"),
    "rms": replace(SMALL, rms_norm=True, bias=False),
    "rotary": replace(SMALL, positions="rotary", d_k=6),
    "rotary, window": with_options(SMALL, positions="rotary", window=2),
    "multi-query": replace(SMALL, num_kv_heads=1, d_v=3),
    "grouped": with_options(SMALL, num_kv_heads=2, window=3, bias=False, output_bias=True),
    "modern": replace(
        SMALL,
        norm="pre",
        rms_norm=True,
        bias=False,
        activation="swiglu",
        positions="rotary",
        num_kv_heads=2,
    ),
}


every_kind = pytest.mark.parametrize("kind", KINDS)


SRC = torch.tensor([[4, 5, 6, 7, EOS], [5, 4, EOS, PAD, PAD]])


TGT = torch.tensor([[BOS, 4, 5, 6, 8, 8], [BOS, 6, 6, 5, PAD, PAD]])


def tiny(kind: str) -> Seq2Seq:
    """A small model whose weights, norms and biases too, are large enough that everything matters."""
    model, generator = build(KINDS[kind]), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(2.0).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-3)


WIDE = ModelConfig(
    vocab_size=300,
    d_model=64,
    d_ff=256,
    num_heads=4,
    d_v=24,
    num_encoder_layers=1,
    num_decoder_layers=1,
)
