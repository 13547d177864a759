"""Blockwise parallel decoding finds what greedy search finds, with fewer calls of the decoder."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import transduce
from corpora import reverse_rows
from models import make_model
from transduce.config.parse import configure
from transduce.config.schema import DecodeConfig, ModelConfig, RunConfig, TrainConfig, with_options
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Hypothesis, ModelToOpen, Refusal, Request
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.model.transformer import Transformer
from transduce.system.errors import UserError
from transduce.system.profiling import profiling
from transduce.training.update import make_optimizer, update
from transduce_lab.families.blockwise import Ahead, BlockwiseEngine, open_engine

PLAIN = ModelConfig(
    vocab_size=14,
    d_model=32,
    d_ff=64,
    num_heads=4,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0,
)
SMALL = with_options(PLAIN, block_size=4)
SHAPES = {
    "post": SMALL,
    "pre": with_options(SMALL, norm="pre", block_size=2),
    "rotary": with_options(SMALL, positions="rotary", num_kv_heads=2, block_size=3),
    "window": with_options(SMALL, window=3),
    "bias": with_options(SMALL, output_bias=True, block_size=9),
    "learned": with_options(
        SMALL, positions="learned", max_positions=16, block_size=9
    ),  # a block must not reach beyond
}
GREEDY = DecodeConfig(beam_size=1)


def train(model: Transformer, updates: int) -> Transformer:
    """Train a model to reverse short sentences."""
    config = TrainConfig(precision="float32")
    optimizer = make_optimizer(model.parameters(), config)
    for step in range(1, updates + 1):
        batch = make_batch(*zip(*reverse_rows(64, seed=step), strict=True))
        update(model, optimizer, [batch], step=step, rate=3e-3, train=config)
    return model


@cache
def trained(name: str) -> Transformer:
    """A model whose heads are right now and then."""
    return train(build(SHAPES[name]), 40)


def search(
    engine: TorchEngine, sources: list[list[int]], limits: list[int], config: DecodeConfig = GREEDY
) -> list[Hypothesis]:
    [found] = engine.search([Request([""] * len(sources), sources, limits)], config, 1)
    return [best for [best] in found]


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_the_translations_are_those_of_greedy_search(name, data):
    sources = data.draw(st.lists(st.lists(st.integers(4, 13), max_size=12), min_size=1, max_size=4))
    limits = [data.draw(st.integers(0, 15)) for _ in sources]
    expected, found = (
        search(engine([trained(name)]), sources, limits)
        for engine in (TorchEngine, BlockwiseEngine)
    )
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [each.score for each in found] == pytest.approx(
        [each.score for each in expected], rel=1e-4, abs=1e-5
    )


@pytest.mark.slow
def test_trained_heads_save_calls_of_the_decoder():
    model, sources = train(build(SMALL), 300), [source for source, _ in reverse_rows(50, seed=1000)]
    with profiling(["search"]) as profile:
        found = search(BlockwiseEngine([model]), sources, [12] * len(sources))
    tokens = sum(len(each.tokens) + 1 for each in found)
    assert profile.counts["hypotheses"] == tokens
    assert tokens / 4 <= profile.counts["decoder calls"] < 0.9 * tokens  # 0.8 after 300 updates


def test_a_head_learns_what_follows_later():
    """Each row of the training is that of one head; its positions are those of the tokens that the head predicts."""
    ahead, x = Ahead(SMALL), torch.randn(600, 5, 32)
    mixed, counts = ahead(x), []
    for i in range(4):
        expected = x.clone()
        if i:
            expected[:, i:] = ahead.heads[i - 1](x)[:, :-i]
        counts.append(
            sum(
                torch.allclose(row, other, atol=1e-5)
                for row, other in zip(mixed, expected, strict=True)
            )
        )
    assert sum(counts) == len(x)
    assert counts == pytest.approx([300, 100, 100, 100], abs=60)


def test_other_searches_are_those_of_the_torch_engine():
    sources = [source for source, _ in reverse_rows(5, seed=3)]
    for config in (DecodeConfig(beam_size=3), DecodeConfig(beam_size=1, no_repeat_ngram=1)):
        engines = TorchEngine([trained("post")]), BlockwiseEngine([trained("post")])
        expected, found = (search(engine, sources, [9] * 5, config) for engine in engines)
        assert found == expected


def test_damaged_weights_are_not_an_empty_translation():
    model = build(SMALL)
    model.embedding.weight.data[:] = torch.nan
    [found] = BlockwiseEngine([model]).search([Request([""], [[5, 6]], [9])], GREEDY, 1)
    assert found == [[]]


def test_a_loss_that_would_need_heads_is_refused():
    with pytest.raises(
        UserError, match=r"model\.block_size does not support train\.risk_steps. Leave it out"
    ):
        configure({"model.block_size": 2, "train.risk_steps": 5})


@pytest.mark.parametrize(
    ("decode", "model", "folders", "why"),
    [
        (DecodeConfig(beam_size=4), SMALL, 1, "greedy"),
        (GREEDY, with_options(SMALL, block_size=1), 1, "block_size"),
        (GREEDY, SMALL, 2, "one model"),
    ],
)
def test_models_without_blocks_are_refused(decode, model, folders, why, tmp_path):
    config = RunConfig(model=model, decode=decode)
    refusal = open_engine(ModelToOpen([tmp_path] * folders, [], config, None))
    assert isinstance(refusal, Refusal) and why in refusal.reason


def test_the_engine_is_greedy_unless_told_otherwise(tmp_path):
    folder = make_model(tmp_path / "model", {"model.block_size": 2}, updates=0)
    assert transduce.load(folder, engine="blockwise").config.beam_size == 1
    with pytest.raises(UserError, match="it needs greedy search"):
        transduce.load(folder, {"decode.beam_size": 2}, engine="blockwise")
