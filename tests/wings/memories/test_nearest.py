"""Tests of transduce/wings/memories/nearest.py, and of searches that similar texts help."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from corpora import reverse_texts
from models import SIZES, make_model
from transduce.config.parse import configure
from transduce.config.schema import PAD
from transduce.decoding.loading import load
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Guide, MemoryMatch, Request
from transduce.model.build import build
from transduce.wings.memories.nearest import (
    MAX_DISTANCE,
    MAX_NEIGHBOURS,
    MAX_WEIGHT,
    Example,
    NearestStepper,
    Store,
    examples_of,
)

SOURCES, TARGETS = reverse_texts(40, seed=3)
TEXTS = SOURCES[:20]
OTHERS = [" ".join(dict.fromkeys(text.split())) for text in TARGETS[20:]]
# The unit is the text itself, so that the decoder's outputs along its translation are those of the unit.
OWN = [Guide((MemoryMatch(*pair, 0.99, "m:1"),)) for pair in zip(TEXTS, OTHERS, strict=True)]
OPTIONS = {"decode.retry_loops": False, "decode.beam_size": 3}


def texts_of(translator: Translator, texts: Sequence[str], guides: Sequence[Guide]) -> list[str]:
    return [each.text for each in translator.translate_sentences(texts, guides=guides)]


def assert_nearly_all(found: Sequence[str], expected: Sequence[str]) -> None:
    """So small a model hardly distinguishes some places of a sentence."""
    assert sum(map(str.__eq__, found, expected)) >= len(expected) - 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("nearest") / "model", {})


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load(model, OPTIONS, engine="torch")


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_text_gets_the_translation_of_a_unit_with_the_same_source(model, engine, beam_size):
    translator = load(model, OPTIONS | {"decode.beam_size": beam_size}, engine=engine)
    plain = texts_of(translator, TEXTS, [Guide()] * len(TEXTS))
    helped = texts_of(translator, TEXTS, OWN)
    assert_nearly_all(helped, OTHERS)
    assert not any(map(str.__eq__, plain, OTHERS))
    mixed = [guide if i % 3 else Guide() for i, guide in enumerate(OWN)]
    expected = [helped[i] if i % 3 else plain[i] for i in range(len(TEXTS))]
    assert texts_of(translator, TEXTS, mixed) == expected


def test_an_ensemble_is_helped_too(tmp_path: Path) -> None:
    folders = [make_model(tmp_path / str(updates), {}, updates=updates) for updates in (20, 40)]
    assert_nearly_all(texts_of(load(folders, OPTIONS, engine="torch"), TEXTS, OWN), OTHERS)


def test_a_model_with_target_tags_is_helped_too() -> None:
    sizes = {"model.vocab_size": 40, "model.target_tag": True, "model.dropout": 0.0}
    engine = TorchEngine([build(configure({**SIZES, **sizes}).model).eval()])
    examples = [Example([4 + i, 10 + i, 12], [20 + i, 30 - i, 25], 1.0) for i in range(3)]
    sources = [each.source for each in examples]
    stepper = partial(NearestStepper, examples=[[each] for each in examples])
    request = Request(["x"] * 3, sources, [9] * 3, stepper=stepper)
    found = engine.run(request, configure(SIZES).decode, 1)
    assert [best[0].tokens for best in found] == [each.target for each in examples]


def test_a_translation_does_not_depend_on_the_batch(translator: Translator) -> None:
    units = [MemoryMatch(*pair, 0.6, "m:1") for pair in zip(SOURCES, TARGETS, strict=True)]
    guides = [Guide(tuple(units[i : i + i % 4])) for i in range(len(TEXTS))]
    together = texts_of(translator, TEXTS, guides)
    alone = [
        texts_of(translator, [text], [guide])[0] for text, guide in zip(TEXTS, guides, strict=True)
    ]
    assert together == alone
    assert together != texts_of(translator, TEXTS, [Guide()] * len(TEXTS))


def test_units_that_are_too_long_are_left_out(translator: Translator) -> None:
    long = MemoryMatch(TEXTS[0], "ka " * 2000, 0.99, "m:2")
    guides = [Guide((long,)), Guide((long, OWN[1].similar[0]))]
    assert examples_of(translator.tokenizer, guides, translator.max_tokens)[0] == []
    plain = texts_of(translator, TEXTS[:1], [Guide()])
    assert texts_of(translator, TEXTS[:2], guides) == [
        *plain,
        *texts_of(translator, TEXTS[1:2], OWN[1:2]),
    ]


def mixture(distance: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The model's probabilities, and those mixed with a neighbour at this distance, which token 5 follows."""
    query = torch.tensor([[2.0, 0.0]])
    outputs = torch.tensor([[[2.0, 2 * distance**0.5], [9.0, 9.0]]])
    log_probs = torch.randn(1, 8).log_softmax(-1)
    store = Store(outputs, torch.tensor([[5, PAD]]), torch.ones(1, 2))
    mixed = store.mixed(query, log_probs)
    return log_probs.exp(), mixed.exp()


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.99, 1.0, 1.5])
def test_the_weight_of_a_neighbour_falls_with_its_distance(share: float) -> None:
    before, after = mixture(share * MAX_DISTANCE)
    weight = min(max(0.0, 1 - share), MAX_WEIGHT)
    expected = before * (1 - weight)
    expected[0, 5] += weight
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(after.sum(), torch.tensor(1.0))


def test_less_similar_texts_count_less_where_the_model_is_certain() -> None:
    outputs = torch.ones(1, 1, 4)

    def weight(score: float, certainty: float) -> float:
        log_probs = torch.tensor([[1e-9, certainty, 1 - certainty - 1e-9]]).log()
        mixed = Store(outputs, torch.tensor([[2]]), torch.tensor([[score]])).mixed(
            torch.ones(1, 4), log_probs
        )
        return 1 - float((mixed[0, 1] - log_probs[0, 1]).exp())

    assert weight(1.0, 0.99) == pytest.approx(MAX_WEIGHT)
    assert weight(0.5, 0.99) < weight(0.8, 0.99) < weight(1.0, 0.99)
    assert weight(0.5, 0.99) < weight(0.5, 0.6) < weight(1.0, 0.6)


def test_no_token_becomes_impossible() -> None:
    log_probs = torch.tensor([[-200.0, 0.0, -300.0]])
    store = Store(torch.ones(1, 1, 4), torch.tensor([[1]]), torch.ones(1, 1))
    mixed = store.mixed(torch.ones(1, 4), log_probs)
    expected = log_probs[0, [0, 2]] + torch.tensor(1 - MAX_WEIGHT).log()
    torch.testing.assert_close(mixed[0, [0, 2]], expected)


def test_padding_is_no_neighbour() -> None:
    log_probs = torch.randn(2, 8).log_softmax(-1)
    outputs = torch.ones(2, MAX_NEIGHBOURS + 3, 4)
    tokens = torch.full((2, MAX_NEIGHBOURS + 3), PAD)
    tokens[0, 0] = 6
    mixed = Store(outputs, tokens, tokens.sign()).mixed(torch.ones(2, 4), log_probs)
    torch.testing.assert_close(mixed[1], log_probs[1])
    expected = log_probs[0].exp() * (1 - MAX_WEIGHT)
    expected[6] += MAX_WEIGHT
    torch.testing.assert_close(mixed[0].exp(), expected)


def test_an_engine_that_can_not_use_examples_ignores_them(translator: Translator) -> None:
    engine = copy(translator.engine)
    engine.supports = translator.engine.supports - {"steppers"}
    lacking = replace(translator, engine=engine)
    assert texts_of(lacking, TEXTS, OWN) == texts_of(lacking, TEXTS, [Guide()] * len(TEXTS))
