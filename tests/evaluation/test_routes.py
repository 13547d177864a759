"""Routes of an untrained multilingual model: each has the score of its own translations."""

from dataclasses import replace
from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF

from aligned import lively
from models import SIZES
from transduce.config.parse import configure
from transduce.evaluation import routes
from transduce.evaluation.routes import compare_routes, measure_routes
from transduce.model_folder import Bundle
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer

TEXTS = [f"{one} {two}" for one in ("ka", "lo", "mi") for two in ("zu", "fe", "GA")]
DIRECTIONS = ("de-en", "en-fr", "de-it", "it-fr", "de-fr", "it-de")


@pytest.fixture(scope="module")
def model() -> Bundle:
    tokenizer = Tokenizer.train(TEXTS, [], vocab_size=290, languages=["de", "en", "fr", "it"])
    options = {"model.vocab_size": tokenizer.target.size, "data.directions": list(DIRECTIONS)}
    config = configure({**SIZES, **options, "decode.max_extra_tokens": 2, "decode.beam_size": 3})
    return Bundle(Path(), config, tokenizer, lively(config.model))


def pairs(direction: str, count: int) -> list[Pair]:
    texts = (TEXTS * count)[:count]
    return [
        Pair(text, other, Origin("", 1), direction)
        for text, other in zip(texts, texts[1:] + texts[:1], strict=True)
    ]


def outputs(model: Bundle, some: list[Pair], *hops: str, **options: object) -> list[str]:
    """Translations by one direction after another."""
    config = replace(model.config.decode, **options)
    translator = routes._translator([model], model.config, config)
    texts = [pair.source for pair in some]
    for hop in hops:
        texts = [each.text for each in translator.direct(Direction.parse(hop)).translate(texts)]
    return texts


def chrf(texts: list[str], some: list[Pair]) -> float:
    return CHRF().corpus_score(texts, [[pair.target for pair in some]]).score


def made_of(model: Bundle, some: list[Pair], *routes: list[str]) -> list[Pair]:
    """The pairs with the translations by several routes as targets, in turn."""
    texts = [outputs(model, some, *hops) for hops in routes]
    return [pair._replace(target=texts[i % len(texts)][i]) for i, pair in enumerate(some)]


GREEDY = {"beam_size": 1, "capitals": False, "retry_loops": False}


def test_both_routes_of_a_direction_with_a_pivot_are_measured(model):
    quality = {"de-en": 50, "en-fr": 10, "de-it": 20, "it-fr": 30}
    its = made_of(model, pairs("de-fr", 100), ["de-fr"], ["de-it", "it-fr"])
    some = [*its, *pairs("de-en", 100), Pair("a\nb", "c", Origin("", 1), "de-fr")]
    found = measure_routes(model, some, quality)
    assert found.keys() == {"de-fr"} and [*found["de-fr"]] == ["direct", "it"]
    assert found["de-fr"]["direct"] == pytest.approx(
        chrf(outputs(model, its, "de-fr", **GREEDY), its)
    )
    through = outputs(model, its, "de-it", "it-fr", **GREEDY)
    assert found["de-fr"]["it"] == pytest.approx(chrf(through, its))
    assert found["de-fr"]["direct"] != found["de-fr"]["it"]
    assert [*measure_routes(model, its, {})["de-fr"]] == ["direct", "en"]


def test_few_pairs_tell_nothing_about_a_trained_direction(model):
    assert measure_routes(model, pairs("de-fr", 99), {}) == {}
    assert measure_routes(model, pairs("it-en", 3), {}).keys() == {"it-en"}, "it was not trained"
    assert measure_routes(model, pairs("en-de", 300), {}) == {}, "no pivot"
    blank = [pair._replace(target=" ") for pair in pairs("it-en", 3)]
    assert measure_routes(model, blank, {}) == {}


def test_only_the_first_pairs_are_translated(model, monkeypatch):
    assert routes.ROUTE_SENTENCES == 200
    monkeypatch.setattr(routes, "ROUTE_SENTENCES", 5)
    some = made_of(model, pairs("it-en", 9), ["it-en"], ["de-en"])
    assert measure_routes(model, some, {}) == measure_routes(model, some[:5], {})
    assert measure_routes(model, some, {}) != measure_routes(model, some[:4], {})


def test_all_routes_are_compared_with_the_direct_one(model):
    some = made_of(model, pairs("de-fr", 9), ["de-fr"], ["de-it", "it-fr"], ["de-en", "en-fr"])
    found = compare_routes([model], some, model.config.decode, "char")
    assert [route.name for route in found] == ["direct", "en", "it"]
    direct, english, italian = (route.texts for route in found)
    assert direct == outputs(model, some, "de-fr")
    assert (english, italian) == (
        outputs(model, some, "de-en", "en-fr"),
        outputs(model, some, "de-it", "it-fr"),
    )
    assert found[0].comparisons == []
    by_name = {each.name: each for each in found[2].comparisons}
    assert by_name["chrF2"].first.value == pytest.approx(chrf(direct, some))
    assert by_name["chrF2"].second.value == pytest.approx(chrf(italian, some))
    assert "tok:char" in by_name["BLEU"].first.signature
