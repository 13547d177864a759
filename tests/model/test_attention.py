"""Tests of transduce/model/attention.py."""

import math
from dataclasses import replace

import pytest
import torch

from small_models import KINDS, SMALL, close
from transduce.config.schema import BOS, EOS
from transduce.model.attention import (
    MultiHeadAttention,
    attend_with_scores,
    dot_products,
)
from transduce.model.build import build


def test_attention_by_hand():
    q = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]])
    k = torch.tensor([[[[math.log(3), 1.0, 0.0, 0.0], [0.0, 0.0, 5.0, 0.0], [9.0, 0.0, 0.0, 0.0]]]])
    v = torch.tensor([[[[4.0], [8.0], [100.0]]]])
    mask = torch.tensor([[[[True, True, False]]]])
    # q k^T / sqrt(4) = ln 3, 0 and what is masked: the weights are 3/4 and 1/4.
    output, weights = attend_with_scores(dot_products(q, k), v, mask)
    assert weights.flatten().tolist() == pytest.approx([0.75, 0.25, 0])
    assert output.item() == pytest.approx(0.75 * 4 + 0.25 * 8)


@pytest.mark.parametrize(("positions", "sees_order"), [("rotary", True), ("none", False)])
@torch.no_grad()
def test_rotary_positions_tell_decoder_and_encoder_the_order(positions, sees_order):
    """With one layer and without positions, the last output depends on the set of tokens before it only."""
    config = replace(KINDS["rotary"], num_encoder_layers=1, num_decoder_layers=1)
    model = build(config).eval()
    if positions == "none":
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.positions = None
    outputs = [
        model(torch.tensor([src]), torch.tensor([tgt]))[0, -1]
        for src, tgt in (
            ([4, 5, 6, EOS], [BOS, 4, 5, 6]),
            ([5, 4, 6, EOS], [BOS, 4, 5, 6]),
            ([4, 5, 6, EOS], [BOS, 5, 4, 6]),
        )
    ]
    for output in outputs[1:]:
        assert ((output - outputs[0]).abs().max() > 1e-4) == sees_order


@torch.no_grad()
def test_shared_keys_are_those_of_heads_with_equal_matrices():
    shared, full = MultiHeadAttention(replace(SMALL, num_kv_heads=2)), MultiHeadAttention(SMALL)
    weights = shared.state_dict()
    for name in ("key", "value"):
        for kind in ("weight", "bias"):
            heads = weights[f"{name}.{kind}"].unflatten(0, (2, 4))
            weights[f"{name}.{kind}"] = heads.repeat_interleave(2, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))
    close(shared(x, shared.project(x), causal=True), full(x, full.project(x), causal=True))
    assert shared.project(x)[0].shape == (2, 2, 5, 4), "the cache is smaller"
