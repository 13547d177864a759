"""Tests of transduce/wings/ct2/build.py."""

import copy

import pytest
import torch

import transduce
from corpora import reverse_texts
from transduce.config.schema import DecodeConfig
from transduce.decoding.types import Hypothesis, Sentences
from transduce.model.seq2seq import Seq2Seq
from transduce.model_folder import describe, read_config
from transduce.system.errors import UserError
from transduce.wings.ct2 import build as building
from transduce.wings.ct2 import convert as conversion
from transduce.wings.ct2.opening import choice


@pytest.mark.usefixtures("cache")
def test_an_engine_is_judged_by_the_search_of_its_model(trained, monkeypatch):
    """Whatever the options of the first translation are: later ones use the same engine."""
    judged, compare = list[DecodeConfig](), building.compare
    monkeypatch.setattr(
        building, "compare", lambda own, *rest: judged.append(own.config) or compare(own, *rest)
    )
    transduce.load(
        trained, {"decode.length_penalty": 5.0, "decode.beam_size": 10}, engine="ctranslate2"
    )
    assert judged and {*judged} == {read_config(trained).decode}


def wrong_matrix(model: Seq2Seq) -> None:
    model.decoder[0].feed_forward.out.weight.data.normal_(
        std=2.0, generator=torch.Generator().manual_seed(0)
    )


class Reversed(torch.nn.Module):
    """Positions whose channels are in the wrong order."""

    def __init__(self, right: torch.nn.Module):
        super().__init__()
        self.right = right

    def forward(self, start: int, length: int) -> torch.Tensor:
        return self.right(start, length).flip(-1)


def wrong_positions(model: Seq2Seq) -> None:
    model.source_positions = Reversed(model.source_positions)
    model.target_positions = Reversed(model.target_positions)


def saturated_weights(model: Seq2Seq) -> None:
    for weight in model.parameters():
        weight.data.clamp_(-0.1, 0.1)


@pytest.mark.parametrize("fault", [wrong_matrix, wrong_positions, saturated_weights])
def test_an_engine_that_translates_worse_is_not_used(fault, trained, cache, monkeypatch, capfd):
    """The converted model is wrong: it must be noticed, and our own search must take its place."""

    def damaged(model: Seq2Seq, *rest: object) -> None:
        wrong = copy.deepcopy(model)
        fault(wrong)
        convert(wrong, *rest)

    convert = conversion.convert
    monkeypatch.setattr(building, "convert", damaged)
    assert transduce.load(trained).engine.name == "torch"
    assert "so torch is used." in capfd.readouterr().err
    monkeypatch.setattr(building, "convert", convert)
    assert transduce.load(trained).engine.name == "torch"  # what was found is kept, too
    assert {file.name for file in cache.glob("*/*")} == {"check.json", "manifest.json"}
    with pytest.raises(UserError, match="its translations are worse than those of our own search"):
        transduce.load(trained, engine="ctranslate2")
    assert choice(trained, describe(trained).config).startswith(
        "torch, since CTranslate2 is worse: "
    )


def test_single_loop_does_not_reject_an_engine(trained):
    own = transduce.load(trained, engine="torch")
    sources, targets = reverse_texts(20, seed=4)
    sentences = Sentences(sources, own.tokenizer.encode_source(sources), list(range(20)))
    ours = own.search(own.engine, sentences, 1)
    again = own.tokenizer.encode_target(["ba " * 40])[0]
    looped = [[Hypothesis(-99.0, again)], *ours[1:]]
    assert building.compare(own, sentences, ours, ours, targets).is_good()
    assert building.compare(own, sentences, ours, looped, targets).is_good()
    many = [[Hypothesis(-99.0, again)] if i < 3 else best for i, best in enumerate(ours)]
    assert not building.compare(own, sentences, ours, many, targets).is_good()
    other = [[hypotheses[0]] for hypotheses in [*ours[1:], ours[0]]]
    assert not building.compare(own, sentences, ours, other, targets).is_good()
    assert not building.compare(own, sentences, ours, other).is_good()


@pytest.mark.parametrize(
    "error", [ImportError("no libiomp"), OSError(28, "No space left"), UserError("no home")]
)
def test_failed_engine_build_falls_back_to_torch(error, trained, cache, monkeypatch, capfd):
    monkeypatch.setattr(building, "build_in_cache", lambda *_: (_ for _ in ()).throw(error))
    assert transduce.load(trained).engine.name == "torch"
    assert f"it can't be built: {error}" in capfd.readouterr().err
    with pytest.raises(
        UserError, match=r"The engine ctranslate2 can't run .*: it can't be built: "
    ):
        transduce.load(trained, engine="ctranslate2")
    assert not list(cache.iterdir())


def test_uncompared_engine_is_not_used(trained):
    for references in ([], None):
        check = building.compare(
            transduce.load(trained, engine="torch"), Sentences([], [], []), [], [], references
        )
        assert check.sentences == 0 and not check.is_good()
