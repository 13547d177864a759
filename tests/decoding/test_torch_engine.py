"""Tests of transduce/decoding/torch_engine.py."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engines import SMALL, SOURCES, converted, lively, search
from models import make_model, publish_model
from transduce.config.schema import EOS, DecodeConfig, with_options
from transduce.decoding import torch_engine
from transduce.decoding.alignment_layer import ALIGNMENT_LAYER, source_attention
from transduce.decoding.loading import describe_models
from transduce.decoding.torch_engine import (
    MAX_WORKERS,
    MIN_REQUEST_TOKENS,
    SLACK,
    TorchEngine,
    open_engine,
)
from transduce.decoding.types import NBestLists, Request, length_penalty
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.model_folder import load as load_model

KINDS = {
    "post": SMALL,
    "pre": replace(SMALL, norm="pre"),
    "gelu": replace(SMALL, activation="gelu"),
    "silu": replace(SMALL, activation="silu", norm="pre"),
    "learned": replace(SMALL, positions="learned", max_positions=64),
    "separate": replace(SMALL, source_vocab_size=30, num_encoder_layers=3, num_decoder_layers=1),
    "blocks": with_options(SMALL, block_size=3),
}


@given(st.integers(1, 10**6), st.integers(1, 5000), st.integers(1, 9), st.integers(1, 12))
def test_requests_keep_all_threads_of_the_torch_engine_busy(total, max_tokens, beam_size, threads):
    """The fewest rounds in which every thread has a request of at most max_tokens."""
    engine, config = (
        TorchEngine([build(SMALL)]),
        DecodeConfig(beam_size=beam_size, max_tokens=max_tokens),
    )
    with patch("torch.get_num_threads", lambda: threads):
        budget = engine.budget(config, total)
    limit, workers = max(1, max_tokens // beam_size), min(threads, MAX_WORKERS)
    share = total / (workers * math.ceil(total / (workers * limit)))
    assert share <= budget <= min(limit, max(MIN_REQUEST_TOKENS, SLACK * share + 1))


def test_a_request_on_a_gpu_has_16_times_as_many_tokens():
    """Requests run one after the other; 12 threads of the CPU do not matter."""
    engine = TorchEngine([build(SMALL)])
    engine.device = torch.device("cuda")
    with patch("torch.get_num_threads", lambda: 12):
        config = DecodeConfig(beam_size=4, max_tokens=1000)
        assert engine.budget(config, 10**6) == 16 * 1000 // 4
        assert engine.budget(config, 2000) == 2100
        assert engine.budget(replace(config, beam_size=99_999), 9) == 1
        assert engine.budget(config, 0) == 128


@pytest.mark.parametrize("kind", KINDS)
def test_converted_model_scores_and_translates_alike(kind, tmp_path):
    model = lively(KINDS[kind])
    ours, theirs = TorchEngine([model]), converted(model, KINDS[kind], tmp_path)
    targets = [source[::-1] for source in SOURCES]
    rows, expected = theirs.log_probs(SOURCES, targets), ours.log_probs(SOURCES, targets)
    assert list(map(len, rows)) == [len(target) + 1 for target in targets]
    assert [*chain(*rows)] == pytest.approx([*chain(*expected)], rel=1e-4, abs=1e-3)
    expected, found = (search(engine, SOURCES, 25, beam_size=1) for engine in (ours, theirs))
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )
    # Whose end has another rule than ours.
    beams = search(theirs, SOURCES, 25, beam_size=4, length_penalty=1.0)
    scored = list(map(sum, ours.log_probs(SOURCES, [tokens for _, tokens in beams])))
    reported = [score * length_penalty(len(tokens) + 1, 1.0) for score, tokens in beams]
    assert reported == pytest.approx(scored, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_translations_at_the_length_limit_are_scored_with_an_end(limit, tmp_path):
    model = lively(SMALL)
    # EOS hardly ever comes.
    model.embedding.weight.data[2] = -model.embedding.weight.data[4:].mean(dim=0) * 9
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    expected, found = (search(engine, SOURCES, limit, beam_size=1) for engine in (ours, theirs))
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_engine_repeats_forbidden_ngrams(size, tmp_path):
    model = lively(SMALL)
    # EOS hardly ever comes.
    model.embedding.weight.data[2] = -model.embedding.weight.data[4:].mean(dim=0) * 9
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    expected, found = (
        search(engine, SOURCES, 20, beam_size=1, no_repeat_ngram=size) for engine in (ours, theirs)
    )
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )
    ngrams = [
        [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)] for _, tokens in found
    ]
    assert all(len(set(each)) == len(each) for each in ngrams) and max(map(len, ngrams)) > 5


def made_request(sources: list[list[int]], limit: int = 6) -> Request:
    return Request([""] * len(sources), sources, [limit] * len(sources))


def tokens_of(found: Iterable[NBestLists]) -> list[list[list[int]]]:
    return [[each.tokens for each in best] for lists in found for best in lists]


@pytest.mark.parametrize("threads", [1, 2, 5, 20])
def test_requests_run_in_threads_that_share_those_of_torch(threads):
    """Each of the workers has its share of the threads; the results come in the order of the requests."""
    seen: list[int] = []

    def watch(_: object) -> None:
        seen.append(torch.get_num_threads())

    engine = TorchEngine([lively(SMALL)], on_step=watch)
    config = DecodeConfig(beam_size=2)
    requests = [made_request([source, source[::-1]]) for source in SOURCES[:6]]
    alone = [tokens_of([engine.run(request, config, 2)]) for request in requests]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        seen.clear()
        assert tokens_of(engine.search(requests, config, 2)) == [
            each for its in alone for each in its
        ]
        assert torch.get_num_threads() == threads
        workers = min(threads, MAX_WORKERS, 6)
        assert {*seen} <= {max(1, threads // workers), threads} and min(seen) == max(
            1, threads // workers
        )
        seen.clear()
        assert tokens_of(engine.search(requests[:1], config, 2)) == alone[0]
        assert {*seen} == {threads}, "one request has all threads"
        assert list(engine.search([], config, 2)) == []
    finally:
        torch.set_num_threads(before)


def test_a_request_has_the_options_of_the_search():
    """The n best of a wider beam; each option changes something."""
    engine, request = TorchEngine([lively(SMALL)]), made_request(SOURCES[2:4], 9)
    config = DecodeConfig(beam_size=4)
    every = engine.run(request, config, 4)
    assert [len(best) for best in every] == [4, 4]
    assert engine.run(request, config, 2) == [best[:2] for best in every]
    for name, value in (("beam_size", 2), ("length_penalty", 3.0), ("no_repeat_ngram", 1)):
        assert engine.run(request, replace(config, **{name: value}), 2) != [b[:2] for b in every]


def test_a_search_in_float16_finds_what_float32_finds():
    engine, request = TorchEngine([lively(SMALL)]), made_request(SOURCES[:8], 9)
    exact = engine.run(request, DecodeConfig(), 1)
    assert exact == engine.run(request, DecodeConfig(precision="float32"), 1)
    rounded = engine.run(request, DecodeConfig(precision="float16"), 1)
    scores = [[best.score for (best,) in lists] for lists in (exact, rounded)]
    assert scores[0] != scores[1], "float16 rounds"
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    assert tokens_of([exact]) == tokens_of([rounded])


def test_numbers_beyond_float16_are_searched_again_in_float32():
    model = lively(SMALL)
    model.encoder[0].feed_forward.inner.weight.data *= 1e5
    engine, request = TorchEngine([model]), made_request(SOURCES[:8], 9)
    exact = engine.run(request, DecodeConfig(), 2)
    assert engine.run(request, DecodeConfig(precision="float16"), 2) == exact and all(exact)


def test_a_request_decides_its_filter_and_its_selector():
    model = lively(SMALL)
    asked = []

    class Nothing:
        def __call__(self, _: object, log_probs: torch.Tensor) -> None:
            log_probs[..., EOS + 2 :] = -math.inf  # only EOS and UNK's successor

        def select(self, _: object) -> None: ...

    def token_filter(texts: list[str], limits: list[int]) -> Nothing:
        asked.append((texts, limits))
        return Nothing()

    engine = TorchEngine([model], token_filter)
    [[best, *_]] = engine.run(Request(["x"], [SOURCES[0]], [3]), DecodeConfig(), 1)
    assert asked == [(["x"], [3])] and {*best.tokens} <= {EOS + 1}
    plain = TorchEngine([model])
    made = []

    def selector(beam_size: int) -> object:
        made.append(beam_size)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        plain.run(Request(["x"], [SOURCES[0]], [3], selector), DecodeConfig(beam_size=3), 1)
    assert made == [3]


def test_attention_is_the_mean_over_the_models_that_have_some():
    models = [lively(SMALL), lively(replace(SMALL, num_decoder_layers=3))]
    sources, targets = [[4, 5, 6], [7]], [[8, 9], [10, 11, 12]]
    batch, batch_of = make_batch(sources, targets), zip(sources, targets, strict=True)
    engine = TorchEngine(models, layers=lambda: [0, 2])
    assert "attention" in engine.supports and engine.name == "torch"
    expected = (source_attention(models[0], batch)[0] + source_attention(models[1], batch)[2]) / 2
    found = engine.attention(sources, targets)
    assert [each.shape for each in found] == [(2, 3), (3, 1)]
    for each, row, (source, target) in zip(found, expected, batch_of, strict=True):
        assert each == pytest.approx(row[: len(target), : len(source)].numpy())
    guessed = TorchEngine(models).attention(sources, targets)
    layers = [min(n - 1, max(n - 2, 1)) for n in (SMALL.num_decoder_layers, 3)]
    other = (
        sum(source_attention(m, batch)[layer] for m, layer in zip(models, layers, strict=True)) / 2
    )
    assert guessed[0] == pytest.approx(other[0, :2, :3].numpy())


def test_limits_and_memory_of_an_ensemble():
    learned = build(replace(SMALL, positions="learned", max_positions=64))
    longer = build(replace(SMALL, positions="learned", max_positions=80))
    free = build(SMALL)
    assert TorchEngine([free]).max_positions is None
    assert TorchEngine([free, longer, learned]).max_positions == 64
    numbers = sum(weight.numel() for model in (free, learned) for weight in model.parameters())
    assert TorchEngine([free, learned]).weight_bytes == 4 * numbers
    assert TorchEngine([free]).supports == {
        "constraints",
        "positions",
        "prefixes",
        "steppers",
        "attention",
    }


def test_no_batch_of_forced_decoding_is_large(monkeypatch):
    engine = TorchEngine([lively(SMALL)])
    targets = [source[::-1] for source in SOURCES]
    expected = engine.log_probs(SOURCES, targets)
    seen = []
    real = torch_engine.forced_log_probs
    monkeypatch.setattr(torch_engine, "forced_log_probs", lambda m, b: seen.append(b) or real(m, b))
    longest = max(map(len, targets)) + 1
    for most, rows in ((1, 1), (2 * longest, 2), (3 * longest - 1, 2), (3 * longest, 3)):
        monkeypatch.setattr(torch_engine, "MAX_FORCED_TOKENS", most)
        seen.clear()
        found = engine.log_probs(SOURCES, targets)
        assert [*chain(*found)] == pytest.approx([*chain(*expected)], abs=1e-4)
        assert {len(batch.src) for batch in seen[:-1]} <= {rows} and len(seen[-1].src) <= rows
    assert engine.log_probs([], []) == []


def test_an_engine_is_opened_with_the_settings_of_its_models(tmp_path, monkeypatch):
    """The number of threads, and for each model the layer that aligns words; from any working directory."""
    made = load_model(make_model(tmp_path / "model", {}, updates=1))
    folders = [tmp_path / "first", tmp_path / "last"]
    for layer, folder in enumerate(folders):
        metrics = {ALIGNMENT_LAYER: layer}
        publish_model(folder, made.config, made.tokenizer, made.model.state_dict(), metrics)
    monkeypatch.chdir(tmp_path)
    described = describe_models([Path(folder.name) for folder in folders], {})
    threads: list[int] = []
    monkeypatch.setattr(torch_engine, "set_threads", threads.append)
    engine = open_engine(described._replace(threads=5, device="cpu"))
    assert open_engine(described, name="other").name == "other"
    assert threads == [5], "without a number, the engine keeps that of torch"
    assert open_engine(described._replace(device="meta")).device.type == "meta"
    monkeypatch.chdir("/")
    assert (engine.name, engine.device.type) == ("torch", "cpu")
    expected = TorchEngine([made.model] * 2, layers=lambda: [0, 1]).attention([[5, 6]], [[7, 8, 9]])
    assert engine.attention([[5, 6]], [[7, 8, 9]])[0] == pytest.approx(expected[0])
