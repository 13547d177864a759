"""Tests of transduce/decoding/torch_engine.py."""

import math
from dataclasses import replace
from itertools import chain
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import SMALL, SOURCES, converted, lively, search
from transduce.config.schema import DecodeConfig, with_options
from transduce.decoding.torch_engine import MAX_WORKERS, MIN_REQUEST_TOKENS, SLACK, TorchEngine
from transduce.decoding.types import length_penalty
from transduce.model.build import build

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
