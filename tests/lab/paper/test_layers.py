"""Tests of transduce_lab/paper/layers.py."""

import json

import pytest
import torch

from command_line import run
from transduce.config.schema import ModelConfig, with_options
from transduce_lab.operations import per_target_token
from transduce_lab.paper import layers, table1

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


def test_a_recurrent_layer_step_by_step_is_the_same():
    layer, x = layers.Recurrence(8), torch.randn(1, 9, 8)
    torch.testing.assert_close(layer.by_steps(x), layer(x))


@pytest.mark.slow
def test_table_1_is_computed(tmp_path, capsys, monkeypatch):
    for name, value in {
        "LENGTHS": (16, 32, 64, 128),
        "CROSSING_WIDTHS": (8, 16),
        "COUNTED_LENGTHS": (16, 32),
        "TIMED_WIDTH": 16,
    }.items():
        monkeypatch.setattr(table1, name, value)
    status, printed, said = run(capsys, "reproduce", "table1", "--out", tmp_path)
    assert status == 0 and "separable convolutional" in printed, said
    assert (tmp_path / "table1.png").stat().st_size > 1000
    layers = json.loads((tmp_path / "table1.json").read_text())["layers"]
    assert [len(layer["measured"]) for layer in layers] == [4] * 6


def test_the_arithmetic_of_the_families_is_that_of_their_matrices():
    n, v, d, k, layers = 10, 50, 64, 3, 2
    shape = {
        "vocab_size": v,
        "d_model": d,
        "d_ff": 4 * d,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
    }
    gates, attention, logits = 4 * d * n, 2 * n * n * d, n * v * d
    # both ways, the second layer over both; two decoder layers over token or layer below, and context; query and key
    lstm = gates * (2 * 2 * d + 3 * d + 2 * 3 * d) + 2 * n * d * d
    convolutions = n * d * d * (4 + 2 * layers * 2 * k + 2 * layers)
    inner = layers * (2 * d * d // 2 + k * (d // 2) ** 2)
    sparse = 8 * d + 2 * 8 * d * d  # gates of eight, two used
    wanted = {
        "recurrent": lstm + attention + logits,
        "convolutional": convolutions + layers * attention + logits,
        "bytenet": (12 + n) * inner + n * d * d + logits,
        "transformer": layers * (n * (4 + 8) * d * d + 2 * n * sparse + 3 * attention) + logits,
    }
    for kind, products in wanted.items():
        own = {"attention": "additive"} if kind == "recurrent" else {}
        own |= {"experts": 8, "num_heads": 4} if kind == "transformer" else {}
        found = per_target_token(with_options(ModelConfig(**shape, kind=kind), **own), n, n)
        assert found == pytest.approx(3 * 2 * products / n), kind
