"""Tests of transduce/model/embedding.py."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from small_models import KINDS, SRC, TGT, WIDE, close, tiny
from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import (
    MultiHeadAttention,
    causal_mask,
)
from transduce.model.build import build
from transduce.model.embedding import (
    Embedding,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoids,
)
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import FeedForward


def test_sinusoids_by_hand():
    table = sinusoids(50, 512)
    assert table[0, :4].tolist() == [0.0, 1.0, 0.0, 1.0]
    for position, pair in itertools.product((1, 7, 49), (0, 10, 255)):
        angle = position / 10000 ** (2 * pair / 512)
        assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_positions_of_other_programs_by_hand():
    for kind, first in (("t2t", 0), ("fairseq", 2)):
        table = sinusoids(50, 512, kind)
        assert table[0, :2].tolist() == pytest.approx([math.sin(first), math.cos(first)])
        for position, pair in itertools.product((1, 7, 49), (0, 10, 255)):
            angle = (position + first) / 10000 ** (pair / 255)
            assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)
        assert torch.equal(SinusoidalPositions(512, kind)(3, 20), table[3:23])


def test_the_table_of_positions_grows():
    positions = SinusoidalPositions(16)
    with torch.inference_mode():
        grown = positions(2, 7)
    assert torch.equal(grown, sinusoids(9, 16)[2:])
    assert positions.table.size(0) >= 9
    assert not positions.table.is_inference()  # or training could not use it afterwards
    assert not positions.state_dict()


def test_threads_may_grow_the_table_of_positions_at_once():
    class Contended(SinusoidalPositions):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "table":  # the moment after, another thread has a smaller one
                super().__setattr__(name, sinusoids(4, 16))

    positions = Contended(16)
    assert torch.equal(positions(2, 7), sinusoids(9, 16)[2:])


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    three = ours.query, ours.key, ours.value
    theirs.in_proj_weight.data = torch.cat([linear.weight for linear in three]).detach()
    theirs.in_proj_bias.data = torch.cat([linear.bias for linear in three]).detach()
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def torch_transformer(model: Seq2Seq, config: ModelConfig) -> nn.Transformer:
    """The library's Transformer with the model's weights; only pre-norm gets the final norms, as in ours."""
    theirs = nn.Transformer(
        config.d_model,
        config.num_heads,
        config.num_encoder_layers,
        config.num_decoder_layers,
        config.d_ff,
        dropout=0.0,
        activation="gelu" if config.activation == "gelu" else "relu",
        norm_first=config.norm == "pre",
        batch_first=True,
    )
    layers = [*theirs.encoder.layers, *theirs.decoder.layers]
    for ours, layer in zip([*model.encoder, *model.decoder], layers, strict=True):
        copy_attention(ours.attention, layer.self_attn)
        if hasattr(ours, "source_attention"):
            copy_attention(ours.source_attention, layer.multihead_attn)
        layer.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
        layer.linear2.load_state_dict(ours.feed_forward.out.state_dict())
        for number, residual in enumerate(ours.residual, start=1):
            getattr(layer, f"norm{number}").load_state_dict(residual.norm.state_dict())
    for stack, norm in (theirs.encoder, model.encoder_norm), (theirs.decoder, model.decoder_norm):
        stack.norm = norm
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kind", ["post", "pre", "gelu"])
def test_equal_to_the_transformer_of_pytorch(kind):
    config, model = KINDS[kind], tiny(kind)
    theirs, table = torch_transformer(model, config), sinusoids(6, config.d_model)
    hidden = SRC == PAD
    x = theirs(
        model.embedding(SRC) + table[:5],
        model.embedding(TGT) + table,
        tgt_mask=~causal_mask(6, 6),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    close(model(SRC, TGT), x @ model.embedding.weight.T)


@torch.no_grad()
def test_rotated_products_depend_on_the_distance_and_on_nothing_else():
    positions, draw = RotaryPositions(6), torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 1, 1, 6, generator=draw)

    def product(of_query: int, of_key: int) -> float:
        return (positions.rotate(q, of_query) * positions.rotate(k, of_key)).sum().item()

    assert product(0, 0) == pytest.approx((q * k).sum().item(), abs=1e-5)
    assert product(9, 4) == pytest.approx(product(5, 0), abs=1e-4) == product(105, 100)
    assert abs(product(9, 4) - product(4, 9)) > 1e-3
    together = positions.rotate(torch.cat((q, k), 2), 7)
    close(together, torch.cat((positions.rotate(q, 7), positions.rotate(k, 8)), 2))


@torch.no_grad()
def test_rotary_models_have_no_absolute_positions():
    model = build(KINDS["rotary"])
    assert not any(type(module) is SinusoidalPositions for module in model.modules())
    assert all(layer.source_attention.positions is None for layer in model.decoder)


@pytest.mark.parametrize(
    "config", [WIDE, replace(WIDE, positions="learned", source_vocab_size=200)]
)
def test_initial_weights_have_the_right_spread(config):
    model = build(config)
    gains = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            gains |= dict.fromkeys((module.query, module.key, module.value), math.sqrt(0.5))
    for stack, branches in ((model.encoder, 2), (model.decoder, 3)):  # of one layer each
        for module in stack.modules():
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                gains[module.out] = 1 / math.sqrt(branches)
    seen = set()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            bound = gains.get(module, 1.0) * math.sqrt(6 / sum(module.weight.shape))
            assert 0.98 * bound < module.weight.abs().max() <= bound * 1.0001
            # As of a uniform one.
            assert module.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.07)
            assert not module.bias.any()
        elif isinstance(module, (Embedding, LearnedPositions)):
            assert module.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
            assert module.weight.abs().max() > 3 * 64**-0.5  # a normal distribution has tails
        elif isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all() and not module.bias.any()
        seen.add(type(module))
    assert {nn.Linear, Embedding, nn.LayerNorm} <= seen
