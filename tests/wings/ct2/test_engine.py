"""Tests of transduce/wings/ct2/engine.py."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import transduce
from engines import SMALL, SOURCES, converted, lively, search
from transduce.config.schema import EOS, UNK, DecodeConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Request
from transduce.model_folder import describe
from transduce.wings.ct2 import build as building
from transduce.wings.ct2 import engine as ct2_engine
from transduce.wings.ct2 import opening
from transduce.wings.ct2.engine import Check, CTranslate2Engine, Loss


def test_converting_does_not_touch_the_model(tmp_path):
    model = lively(SMALL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    converted(model, SMALL, tmp_path, "int8")
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_an_engine_leaves_the_threads_of_torch_as_they_are(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        engine = converted(lively(SMALL), SMALL, tmp_path)
        search(engine, SOURCES, 5)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_no_special_piece_is_proposed(tmp_path):
    model = lively(SMALL)
    model.embedding.weight.data[[0, 1, 3]] *= 5  # logits of PAD, BOS and UNK are often the highest
    engine = converted(model, SMALL, tmp_path)
    [free] = engine._translator.translate_batch(
        [["5", "6", "2"]], beam_size=1, max_decoding_length=30
    )
    assert {"0", "1", "3"} & {*free.hypotheses[0]}
    [(_, tokens)] = search(engine, [[5, 6]], 30, beam_size=1)
    assert tokens and min(tokens) >= 4


def test_a_translation_of_an_unknown_character_has_the_score_of_our_model(tmp_path):
    """CTranslate2's own score is that of a model that can't predict UNK."""
    shape = replace(SMALL, output_bias=True)
    model = lively(shape)
    model.output_bias.data[[EOS, UNK]] += 4  # likely
    engine = converted(model, shape, tmp_path)
    source = [5, UNK, 6, 7]
    [(score, tokens)] = search(engine, [source], 30, beam_size=4, length_penalty=0.0)
    assert len(tokens) < 30
    for each in (engine, TorchEngine([model])):
        [log_probs] = each.log_probs([source], [tokens])
        assert score == pytest.approx(sum(log_probs), abs=1e-3)


def test_alternatives_that_are_cut_are_different(tmp_path):
    engine, config = converted(lively(SMALL), SMALL, tmp_path), DecodeConfig(beam_size=4)
    [found] = engine.search([Request([""] * 7, SOURCES, [1, 2, 2, 3, 4, 5, 20])], config, 4)
    for hypotheses, limit in zip(found, [1, 2, 2, 3, 4, 5, 20], strict=True):
        assert len({tuple(each.tokens) for each in hypotheses}) == len(hypotheses) >= 1
        assert max(len(each.tokens) for each in hypotheses) <= limit


@pytest.mark.parametrize(
    ("loops", "score", "chrf", "is_good"),
    [
        (0, Loss(0.04, 0.0), Loss(0.2, 0.0), True),
        (2, Loss(-1.0, 0.0), Loss(-9.0, 0.0), True),
        (3, Loss(0.0, 0.0), Loss(0.0, 0.0), False),
        (0, Loss(0.1, 0.0), Loss(0.0, 0.0), False),
        (0, Loss(0.1, 0.08), Loss(0.0, 0.0), True),  # the loss may be chance
        (0, Loss(0.2, 9.0), Loss(0.0, 0.0), False),  # few sentences excuse little
        (0, Loss(0.0, 0.0), Loss(0.5, 0.0), False),
        (0, Loss(0.0, 0.0), Loss(1.2, 9.0), True),
        (0, Loss(0.0, 0.0), Loss(2.0, 9.0), False),
        (0, Loss(0.0, 0.0), None, True),
        (0, Loss(0.1, 0.0), None, False),
        (0, Loss(math.nan, 0.0), None, False),
    ],
)
def test_how_much_worse_an_engine_may_be(loops, score, chrf, is_good):
    assert Check(100, loops, 90, score, chrf).is_good() == is_good


@pytest.mark.usefixtures("cache")
def test_a_processor_without_int8_has_float32(trained, monkeypatch):
    class Limited(CTranslate2Engine):
        def __init__(self, folder: Path, compute_type: str, *rest: int):
            if compute_type == "int8":
                raise ValueError("Requested int8 compute type")
            super().__init__(folder, compute_type, *rest)

    for module in ct2_engine, building, opening:
        monkeypatch.setattr(module, "CTranslate2Engine", Limited)
    assert transduce.load(trained).engine.name == "CTranslate2, float32"


def test_engine_built_first_is_kept(trained, cache):
    transduce.load(trained)
    [kept] = cache.iterdir()
    assert building.build_in_cache(
        trained, describe(trained).config, kept, 1
    ) == ct2_engine.read_compute_type(kept)
    assert [each.name for each in cache.iterdir()] == [kept.name]


TAGGED = replace(SMALL, target_tag=True, norm="pre", positions="fairseq")
TAGGED_SOURCES = [[4 + i % 2, 30, *source] for i, source in enumerate(SOURCES)]


def test_both_engines_read_the_tags_of_targets(tmp_path):
    """In one batch, each sentence has its own tag; neither engine returns it, or counts it."""
    model = lively(TAGGED)
    own, fast = TorchEngine([model]), converted(model, TAGGED, tmp_path)
    found = search(own, TAGGED_SOURCES, 9)
    assert [tokens for _, tokens in search(fast, TAGGED_SOURCES, 9)] == [
        tokens for _, tokens in found
    ]
    assert [score for score, _ in search(fast, TAGGED_SOURCES, 9)] == pytest.approx(
        [score for score, _ in found], abs=1e-4
    )
    other = search(own, [[5 - i % 2, *source[1:]] for i, source in enumerate(TAGGED_SOURCES)], 9)
    assert other != found  # the tag matters
    targets = [tokens for _, tokens in found]
    one, two = (engine.log_probs(TAGGED_SOURCES, targets) for engine in (own, fast))
    for mine, theirs, target in zip(one, two, targets, strict=True):
        assert len(mine) == len(target) + 1
        assert theirs == pytest.approx(mine, abs=1e-4)


def test_attention_to_a_tag_that_the_decoder_reads_is_zero(tmp_path):
    model = lively(TAGGED)
    own, fast = TorchEngine([model], layers=lambda: [1]), converted(model, TAGGED, tmp_path)
    targets = [[8, 9, 10]] * len(SOURCES)
    for mine, theirs, source in zip(
        own.attention(TAGGED_SOURCES, targets),
        fast.attention(TAGGED_SOURCES, targets),
        TAGGED_SOURCES,
        strict=True,
    ):
        assert mine.shape == theirs.shape == (3, len(source))
        assert not mine[:, 0].any() and not theirs[:, 0].any()
        assert theirs == pytest.approx(mine, abs=1e-4)
