"""Tests of transduce/wings/export/onnx_engine.py: it searches and scores as the torch engine does."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exports import GRAPH_SHAPE, SOURCES, TARGETS, graph_engines
from transduce.config.schema import DecodeConfig, ModelConfig, RunConfig
from transduce.decoding.types import Request
from transduce.system.errors import UserError
from transduce.wings.export import onnx_engine
from transduce.wings.export.onnx_engine import DECODER, ENCODER, OnnxEngine, open_engine

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def test_the_search_has_the_options_of_our_own(tmp_path: Path) -> None:
    own, exported = graph_engines(tmp_path)
    requests = [Request([], SOURCES[:2], [6, 7]), Request([], SOURCES[2:], [8])]
    plain = DecodeConfig(beam_size=3, length_penalty=0.6, no_repeat_ngram=0)
    seen = []
    changes = ({}, {"beam_size": 1}, {"length_penalty": 3.0}, {"no_repeat_ngram": 1})
    for number, change in enumerate(changes):
        config = replace(plain, **change)
        one, other = (
            [
                [(each.tokens, round(each.score, 3)) for each in hypotheses]
                for lists in engine.search(requests, config, 2 + number % 2)
                for hypotheses in lists
            ]
            for engine in (own, exported)
        )
        assert other == one and one not in seen
        seen.append(one)


def test_targets_of_several_lengths_are_scored_together_as_alone(tmp_path: Path) -> None:
    own, exported = graph_engines(tmp_path)
    together = exported.log_probs(SOURCES, TARGETS)
    assert [len(row) for row in together] == [len(target) + 1 for target in TARGETS]
    for found, expected in zip(together, own.log_probs(SOURCES, TARGETS), strict=True):
        assert found == pytest.approx(expected, abs=1e-4)
    for source, target, row in zip(SOURCES, TARGETS, together, strict=True):
        assert exported.log_probs([source], [target])[0] == pytest.approx(row, abs=1e-4)


def test_the_selector_of_a_request_is_made_for_the_beam(tmp_path: Path) -> None:
    _, exported = graph_engines(tmp_path)
    asked = list[int]()
    request = Request([], SOURCES, [3, 3, 3], lambda beam: asked.append(beam))
    list(exported.search([request], DecodeConfig(beam_size=2), 1))
    assert asked == [2]


@pytest.mark.parametrize(
    ("max_tokens", "beam_size", "total", "budget"),
    [
        (8192, 4, 100, 512),  # at least 512 source tokens, if there are as many
        (8192, 4, 1000, 1000),
        (8192, 4, 9999, 2048),  # but at most max_tokens / beam_size
        (1600, 4, 100, 400),
        (2, 4, 100, 1),
    ],
)
def test_the_size_of_a_request(
    max_tokens: int, beam_size: int, total: int, budget: int, tmp_path: Path
) -> None:
    config = DecodeConfig(max_tokens=max_tokens, beam_size=beam_size)
    assert graph_engines(tmp_path)[1].budget(config, total) == budget


def test_what_an_engine_says_of_itself(tmp_path: Path) -> None:
    _, exported = graph_engines(tmp_path, positions="learned", max_positions=9)
    sizes = [(tmp_path / name).stat().st_size for name in (ENCODER, DECODER)]
    assert exported.weight_bytes == sum(sizes) and exported.max_positions == 9
    assert exported.name == "ONNX Runtime" and exported.supports == {"constraints", "prefixes"}
    with pytest.raises(NotImplementedError):
        exported.attention([], [])
    _, exported = graph_engines(tmp_path)
    assert exported.max_positions == 4096


@pytest.mark.parametrize(("threads", "expected"), [(3, 3), (0, 7)])
def test_an_engine_is_opened_with_the_threads_that_are_asked_for(
    threads: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_engine, "cores", lambda: 7)
    graph_engines(tmp_path)
    config = RunConfig(model=ModelConfig(**GRAPH_SHAPE))
    asked: Any = SimpleNamespace(folders=[tmp_path], config=config, threads=threads)
    engine = open_engine(asked)
    for session in (engine._encoder, engine._decoder):
        assert session.get_session_options().intra_op_num_threads == expected
        assert session.get_providers() == ["CPUExecutionProvider"]


def test_damaged_graphs_and_a_missing_package_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_engines(tmp_path)
    (tmp_path / DECODER).write_bytes(b"nothing")
    with pytest.raises(UserError, match="can't be read by onnxruntime"):
        OnnxEngine(tmp_path, ModelConfig(**GRAPH_SHAPE), 1)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"needs the package onnxruntime"):
        OnnxEngine(tmp_path, ModelConfig(**GRAPH_SHAPE), 1)
