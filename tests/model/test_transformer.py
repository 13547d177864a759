"""Tests of transduce/model/transformer.py."""

from dataclasses import replace

import torch

from small_models import SMALL, close
from transduce.model.build import build
from transduce.model.transformer import FeedForward, make_norm


@torch.no_grad()
def test_swiglu_and_rms_norm_by_hand():
    config = replace(SMALL, activation="swiglu", rms_norm=True, bias=False)
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(1))
    layer = FeedForward(config)
    inner = x @ layer.inner.weight.T
    close(layer(x), (inner / (1 + (-inner).exp()) * (x @ layer.gate.weight.T)) @ layer.out.weight.T)
    norm = make_norm(config)
    norm.weight.copy_(torch.arange(16.0))
    close(norm(x), x / x.square().mean(-1, keepdim=True).sqrt() * torch.arange(16.0))
    assert not [
        name
        for name, _ in build(replace(config, norm="pre")).named_parameters()
        if name.endswith("bias")
    ]
