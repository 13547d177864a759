"""Tests of transduce/evaluation/evaluate.py."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aligned import lively
from models import SIZES
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, RunConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT
from transduce.evaluation import evaluate as evaluating
from transduce.evaluation.evaluate import as_json, direction_of, evaluate, validations
from transduce.evaluation.perplexity import perplexity
from transduce.evaluation.scores import metrics
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer

TEXTS = [f"{one} {two}" for one in ("ka", "lo", "mi") for two in ("zu", "fe", "ga")]


@pytest.fixture(scope="module")
def model() -> Bundle:
    tokenizer = Tokenizer.train(TEXTS, [], vocab_size=290, languages=["de", "zh"])
    options = {"model.vocab_size": tokenizer.target.size, "decode.max_extra_tokens": 2}
    config = configure({**SIZES, **options})
    return Bundle(Path(), config, tokenizer, lively(config.model))


def pairs(*directions: str) -> list[Pair]:
    return [
        Pair(text, f"{text} x", Origin("", 1), name)
        for name in directions
        for text in [*TEXTS, "", *TEXTS[:3]]
    ]


def translator_of(model: Bundle, direction: str = "", **options: object) -> Translator:
    tokenizer = model.tokenizer.into(direction.partition("-")[2])
    return Translator(
        TorchEngine([model.model]), tokenizer, replace(model.config.decode, **options)
    )


def with_outputs(model: Bundle, some: list[Pair]) -> list[Pair]:
    """The pairs with translations by the model as every other target."""
    return [
        pair._replace(target=translator_of(model, pair.direction).translate([pair.source])[0].text)
        if i % 2
        else pair
        for i, pair in enumerate(some)
    ]


@pytest.mark.parametrize("direction", ["", "en-de"])
def test_an_evaluation_is_that_of_its_parts(model, direction):
    some = with_outputs(model, pairs(direction))
    sources, references = [pair.source for pair in some], [pair.target for pair in some]
    found = evaluate([model], some, model.config.decode, tokenize="char")
    translator = translator_of(model, direction)
    assert found.translations == translator.translate(sources)
    assert found.scored == translator.score(sources, references)
    counts = [each.num_tokens for each in found.scored]
    assert found.perplexity == perplexity(
        [each.log_prob for each in found.scored], counts, references
    )
    assert found.perplexity.num_tokens == sum(counts) and 0 < found.seconds < 60
    by_name = metrics("char")
    outputs = [each.text for each in found.translations]
    assert [(each.name, each.value) for each in found.scores] == [
        (name, pytest.approx(by_name[name].corpus_score(outputs, [references]).score))
        for name in ("BLEU", "chrF2", "TER")
    ]
    made = as_json(found._replace(seconds=1.2345))
    assert (made["sentences"], made["seconds"], made["perplexity"]["num_tokens"]) == (
        13,
        1.23,
        sum(counts),
    )
    assert made["cut"] == sum(CUT in each.flags for each in found.translations) > 0
    assert [each["name"] for each in made["scores"]] == ["BLEU", "chrF2", "TER"]


def test_the_language_decides_the_tokenisation_before_anything_is_translated(model):
    for direction, name in (("en-zh", "zh"), ("en-de", "13a")):
        found = evaluate([model], pairs(direction)[:2], model.config.decode)
        assert f"tok:{name}" in found.scores[0].signature
    chinese = replace(model.config, data=replace(model.config.data, target="zh"))
    ensemble = [model, model._replace(config=chinese)]
    found = evaluate(ensemble, pairs("")[:2], model.config.decode)
    assert "tok:13a" in found.scores[0].signature, "the first model of an ensemble decides"
    with pytest.raises(UserError, match="There is no tokenisation '13b'"):
        evaluate([model], [], model.config.decode, tokenize="13b")
    with pytest.raises(UserError, match="nothing to score"):
        evaluate([model], [], model.config.decode)


def test_a_validation_has_the_perplexity_of_all_pairs_and_scores_of_some(model, monkeypatch):
    monkeypatch.setattr(evaluating, "GREEDY_SENTENCES", 10)
    monkeypatch.setattr(evaluating, "MIN_GREEDY_SENTENCES", 4)
    some = with_outputs(model, [*pairs("en-de"), *pairs("en-zh")])
    greedy = {"beam_size": 1, "capitals": False, "retry_loops": False}
    for is_final, count in ((False, 5), (True, 10)):
        found = validations(model.tokenizer, some, model.config, is_final=is_final)(model.model)
        assert [*found] == ["en-de", "en-zh"]
        for name, result in found.items():
            its = [pair for pair in some if pair.direction == name]
            translator = translator_of(model, name, **greedy)
            sources, references = [pair.source for pair in its], [pair.target for pair in its]
            scored = translator.score(sources, references)
            total = sum(each.log_prob for each in scored), sum(each.num_tokens for each in scored)
            assert result.perplexity == pytest.approx(2.718281828459045 ** (-total[0] / total[1]))
            chosen = [its[place * 13 // count] for place in range(count)]
            outputs = [each.text for each in translator.translate([pair.source for pair in chosen])]
            by_name = metrics("zh" if name == "en-zh" else "13a")
            wanted = [[pair.target for pair in chosen]]
            scores = [
                by_name[each].corpus_score(outputs, wanted).score for each in ("BLEU", "chrF2")
            ]
            assert [result.bleu, result.chrf] == pytest.approx(scores)


def test_trees_and_diverged_models_have_a_perplexity_only(model):
    trees = replace(model.config, data=replace(model.config.data, symbols=True))
    [tree] = validations(model.tokenizer, pairs(""), trees)(model.model).values()
    [usual] = validations(model.tokenizer, pairs(""), model.config)(model.model).values()
    assert tree.bleu is tree.chrf is None and tree.perplexity == usual.perplexity
    assert usual.bleu is not None
    diverged = lively(model.config.model)
    for weight in diverged.parameters():
        weight.data = torch.sign(weight.data) * 1e5
    [found] = validations(model.tokenizer, pairs(""), model.config)(diverged).values()
    assert found.bleu is None and found.perplexity == float("inf")
    assert validations(model.tokenizer, [], model.config)(model.model) == {}


def test_pairs_have_their_own_direction_or_that_of_the_corpus():
    """It decides how sacreBLEU tokenises the translations."""
    corpus = DataConfig(source="en", target="de")
    assert direction_of([Pair("a", "b", Origin("", 1), "de-zh")], corpus) == Direction("de", "zh")
    assert (
        direction_of([Pair("a", "b", Origin("", 1))], corpus)
        == direction_of([], corpus)
        == Direction("en", "de")
    )


def test_capitals_are_read_in_the_language_of_the_sources(model):
    found = []
    for source in ("en", "tr"):
        some = [Pair("MI ZU", "x", Origin("", 1), f"{source}-de")]
        direction = [Direction(source, "de")]
        translator = replace(translator_of(model, f"{source}-de"), directions=direction)
        [translation] = evaluate([model], some, model.config.decode).translations
        assert translation == translator.translate(["MI ZU"])[0]
        found.append(translation.score)
    assert found[0] != found[1], "I in lower case has a dot in English only"


class Into:
    """A tokenizer for any direction."""

    def toward(self, _direction: str) -> "Into":
        return self


@pytest.mark.parametrize("count", [1, 2, 12])
def test_final_scores_use_as_many_sentences_as_one_direction(monkeypatch, count):
    # Private, since to translate so many sentences only to count them would take minutes.
    monkeypatch.setattr(
        evaluating,
        "_validation",
        lambda _tokenizer, _pairs, _config, sentences: lambda _: sentences,
    )
    names = ["en-de"] if count == 1 else [f"l{number}-en" for number in range(count)]
    some = [Pair("a", "b", Origin("", 1), direction=name) for name in names for _ in range(600)]
    made = [validations(Into(), some, RunConfig(), is_final=each)(None) for each in (False, True)]
    assert [{*found.values()} for found in made] == [{max(50, 500 // count)}, {500}]
