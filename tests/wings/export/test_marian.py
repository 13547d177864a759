"""Tests of transduce/wings/export/marian.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.schema import ModelConfig
from transduce.model.build import build
from transduce.model.embedding import sinusoids
from transduce.wings.export import marian


@given(st.integers(1, 20).map(lambda half: torch.randn(3, 2 * half)))
def test_the_order_of_channels_is_that_of_the_sinusoids_and_is_undone(weight):
    assert torch.equal(marian.to_ours(marian.to_theirs(weight, 1), 1), weight)
    table = marian.to_theirs(sinusoids(50, weight.size(1)), 1)
    half = weight.size(1) // 2
    # sin(0), then cos(0).
    assert torch.equal(table[0], torch.cat((torch.zeros(half), torch.ones(half))))


SMALL = ModelConfig(
    vocab_size=9, d_model=4, d_ff=6, num_heads=2, num_encoder_layers=2, num_decoder_layers=1
)


def test_every_weight_of_a_layer_has_an_entry():
    """Except embeddings; the dimension of size d_model is that of the channels, which are permuted."""
    weights = build(SMALL).state_dict()
    entries = list(marian.layers(SMALL))
    assert {entry.ours for entry in entries} == {
        name for name in weights if "embedding" not in name
    }
    assert len({entry.theirs for entry in entries}) == len(entries)
    for ours, _, channels in entries:
        size = weights[ours].size()
        if channels is None:
            assert 4 not in size or "attention" in ours, ours
        else:
            assert size[channels] == 4, ours


@pytest.mark.parametrize(
    ("ours", "theirs", "channels"),
    [
        ("encoder.0.attention.query.weight", "model.encoder.layers.0.self_attn.q_proj.weight", 1),
        ("encoder.1.attention.key.bias", "model.encoder.layers.1.self_attn.k_proj.bias", None),
        ("encoder.1.attention.value.weight", "model.encoder.layers.1.self_attn.v_proj.weight", 1),
        ("encoder.1.attention.out.weight", "model.encoder.layers.1.self_attn.out_proj.weight", 0),
        ("encoder.1.attention.out.bias", "model.encoder.layers.1.self_attn.out_proj.bias", 0),
        ("encoder.0.feed_forward.inner.weight", "model.encoder.layers.0.fc1.weight", 1),
        ("encoder.0.feed_forward.inner.bias", "model.encoder.layers.0.fc1.bias", None),
        ("encoder.0.feed_forward.out.weight", "model.encoder.layers.0.fc2.weight", 0),
        (
            "encoder.0.residual.0.norm.weight",
            "model.encoder.layers.0.self_attn_layer_norm.weight",
            0,
        ),
        ("encoder.0.residual.1.norm.bias", "model.encoder.layers.0.final_layer_norm.bias", 0),
        (
            "decoder.0.source_attention.query.weight",
            "model.decoder.layers.0.encoder_attn.q_proj.weight",
            1,
        ),
        (
            "decoder.0.residual.1.norm.weight",
            "model.decoder.layers.0.encoder_attn_layer_norm.weight",
            0,
        ),
        ("decoder.0.residual.2.norm.weight", "model.decoder.layers.0.final_layer_norm.weight", 0),
    ],
)
def test_names_and_channels_by_hand(ours, theirs, channels):
    assert marian.Entry(ours, theirs, channels) in list(marian.layers(SMALL))


def test_channels_by_hand():
    weight = torch.tensor([[0.0, 1, 2, 3], [4, 5, 6, 7]])
    assert marian.to_theirs(weight, 1).tolist() == [[0, 2, 1, 3], [4, 6, 5, 7]]
    assert marian.to_ours(weight[0], 0).tolist() == [0, 2, 1, 3]
    assert marian.to_theirs(torch.arange(6), 0).tolist() == [0, 2, 4, 1, 3, 5]
    assert marian.to_ours(torch.arange(6), 0).tolist() == [0, 3, 1, 4, 2, 5]
    assert marian.to_theirs(weight, None) is marian.to_ours(weight, None) is weight


def test_the_description_of_a_model():
    assert marian.FIXED_VALUES == {
        "model_type": "marian",
        "scale_embedding": True,
        "tie_word_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
    }
    assert sorted(marian.SIZES.items()) == [
        ("d_model", "d_model"),
        ("decoder_attention_heads", "num_heads"),
        ("decoder_ffn_dim", "d_ff"),
        ("decoder_layers", "num_decoder_layers"),
        ("encoder_attention_heads", "num_heads"),
        ("encoder_ffn_dim", "d_ff"),
        ("encoder_layers", "num_encoder_layers"),
    ]
    assert marian.MARIAN_ACTIVATIONS["swish"] == "silu" and len(marian.MARIAN_ACTIVATIONS) == 4
