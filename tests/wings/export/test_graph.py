"""Tests of transduce/wings/export/graph.py: the graphs compute what the model does, whatever its options are."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exports import SOURCES, TARGETS, graph_engines
from transduce.config.schema import ModelConfig
from transduce.wings.export import graph
from transduce.wings.export.onnx_engine import DECODER, ENCODER

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"activation": "silu"},
        {"activation": "gelu", "output_bias": True},
        {"activation": "swiglu", "norm": "pre"},
        {"source_vocab_size": 17, "num_encoder_layers": 3, "num_decoder_layers": 1},
        {"norm": "pre", "rms_norm": True},
        {"rms_norm": True},
        {"bias": False},
        {"positions": "learned", "max_positions": 9},
        {"positions": "rotary"},
        {"positions": "rotary", "d_k": 6, "d_v": 5},
        {"attention": "dot", "d_k": 3, "d_v": 5},
        {"num_kv_heads": 1},
        {"num_heads": 6, "num_kv_heads": 2, "d_k": 4, "d_v": 3, "positions": "rotary"},
    ],
    ids=str,
)
def test_the_graphs_give_the_probabilities_of_the_model(
    options: dict[str, Any], tmp_path: Path
) -> None:
    own, exported = graph_engines(tmp_path, **options)
    found = exported.log_probs(SOURCES, TARGETS)
    for one, other in zip(own.log_probs(SOURCES, TARGETS), found, strict=True):
        assert other == pytest.approx(one, abs=1e-4)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_the_small_number_of_a_norm_is_that_of_the_model(norm: str, tmp_path: Path) -> None:
    """If it is large, it changes the probabilities."""
    options = {"rms_norm": norm == "rms", "norm": "pre"}
    own, usual = graph_engines(tmp_path, **options)
    before = usual.log_probs(SOURCES, TARGETS)
    own, exported = graph_engines(tmp_path, eps=0.5, **options)
    found = exported.log_probs(SOURCES, TARGETS)
    for one, other in zip(own.log_probs(SOURCES, TARGETS), found, strict=True):
        assert other == pytest.approx(one, abs=1e-4)
    assert found[0] != pytest.approx(before[0], abs=1e-2)


def test_tensors_and_versions_are_those_that_are_documented(tmp_path: Path) -> None:
    graph_engines(tmp_path, num_kv_heads=1, d_v=5, d_k=4)
    shapes = {}
    for name in (ENCODER, DECODER):
        model = onnx.load(str(tmp_path / name))
        assert (model.opset_import[0].version, model.ir_version) == (17, 8)
        assert (model.producer_name, model.graph.name) == ("transduce", "transduce")
        for side in ("input", "output"):
            shapes[name, side] = {
                each.name: (
                    onnx.TensorProto.DataType.Name(each.type.tensor_type.elem_type),
                    [size.dim_param or size.dim_value for size in each.type.tensor_type.shape.dim],
                )
                for each in getattr(model.graph, side)
            }

    def caches(prefix: str, suffix: str, rows: str, length: str) -> dict[str, Any]:
        return {
            f"{prefix}{what}_{layer}{suffix}": ("FLOAT", [rows, 1, length, width])
            for layer in range(2)
            for what, width in (("keys", 4), ("values", 5))
        }

    memory = {"mask": ("BOOL", ["b", 1, 1, "s"]), **caches("source_", "", "b", "s")}
    assert shapes == {
        (ENCODER, "input"): {"source": ("INT64", ["b", "s"])},
        (ENCODER, "output"): memory,
        (DECODER, "input"): {"tokens": ("INT64", ["r"]), **memory, **caches("", "", "r", "t")},
        (DECODER, "output"): {
            "log_probs": ("FLOAT", ["r", 23]),
            **caches("", "_after", "r", "t + 1"),
        },
    }


def test_shared_weights_are_stored_once_and_their_size_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_engines(tmp_path)
    stored = onnx.load(str(tmp_path / DECODER)).graph.initializer
    assert sum([*each.dims] == [23, 12] for each in stored) == 1
    size = sum(len(each.raw_data) for each in stored)
    monkeypatch.setattr(graph, "MAX_WEIGHT_BYTES", size)
    graph_engines(tmp_path)
    monkeypatch.setattr(graph, "MAX_WEIGHT_BYTES", size - 1)
    with pytest.raises(ValueError, match=f"a graph has {size:,} bytes, but"):
        graph_engines(tmp_path)


def test_an_onnx_file_holds_less_than_2_gib() -> None:
    large = graph.Graph(ModelConfig())
    large._weights["x"] = SimpleNamespace(raw_data=range(2**31))
    with pytest.raises(
        ValueError, match="2,147,483,648 bytes, but an ONNX file holds at most 2 GiB"
    ):
        large.serialised([], [])
