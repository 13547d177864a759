"""Tests of transduce/model/transformer.py."""

from dataclasses import replace

import pytest
import torch

from small_models import SMALL, close
from transduce.config.schema import BOS
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


@pytest.mark.parametrize("positions", ["fairseq", "learned"])
@torch.no_grad()
def test_a_tag_is_read_by_the_decoder_behind_bos(positions):
    """Like a plain model that reads the tag at the beginning of each translation, and is not asked to predict it."""
    plain = replace(SMALL, vocab_size=12, positions=positions, max_positions=20)
    model = build(plain).eval()
    tagged = build(replace(plain, target_tag=True)).eval()
    tagged.load_state_dict(model.state_dict())
    src = torch.tensor([[7, 5, 6, 2], [8, 6, 2, 0]])
    tgt = torch.tensor([[BOS, 9, 4], [BOS, 5, 5]])
    with_tags = torch.cat((tgt[:, :1], src[:, :1], tgt[:, 1:]), 1)
    expected = model(src[:, 1:], with_tags)[:, 1:]
    close(tagged(src, tgt), expected)
    memory = tagged.encode(src)
    first, state = tagged.decode(tgt[:, :1], memory)
    rest, _ = tagged.decode(tgt[:, 1:], memory, state)
    close(torch.cat((first, rest), 1), expected)
    assert tagged.max_positions == (19 if positions == "learned" else None)


@torch.no_grad()
def test_several_rows_of_a_sentence_read_its_tag():
    model = build(replace(SMALL, vocab_size=12, target_tag=True)).eval()
    src = torch.tensor([[7, 5, 2], [8, 6, 2]])
    tgt = torch.tensor([[BOS, 4], [BOS, 5], [BOS, 6], [BOS, 9]])
    twice = model.encode(src.repeat_interleave(2, 0))
    close(model.decode(tgt, model.encode(src))[0], model.decode(tgt, twice)[0])


@torch.no_grad()
def test_a_zero_start_makes_the_vector_of_bos_irrelevant():
    model = build(replace(SMALL, zero_start=True)).eval()
    src = torch.tensor([[7, 5, 2]])
    tgt = torch.tensor([[BOS, 4, 5]])
    before = model(src, tgt)
    model.embedding.weight[BOS] += 3
    after = model(src, tgt)
    others = [token for token in range(before.size(-1)) if token != BOS]
    close(after[..., others], before[..., others])


@torch.no_grad()
def test_embeddings_are_normalised_with_their_positions():
    config = replace(SMALL, embedding_norm=True, num_encoder_layers=0, num_decoder_layers=1)
    model = build(config).eval()
    model.source_norm.weight.copy_(torch.arange(16.0))
    recorded = []
    model.decoder[0].source_attention.key.register_forward_pre_hook(
        lambda _, args: recorded.append(args[0])
    )
    src = torch.tensor([[7, 5, 2]])
    model.encode(src)
    x = model.embedding(src) + model.source_positions(0, 3)
    close(recorded[0], torch.nn.functional.layer_norm(x, (16,)) * torch.arange(16.0))
