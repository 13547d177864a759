"""The model that a training continues from: what is inherited, what must fit, and the weights of new tokens."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from corpora import reverse_texts
from models import publish_model
from small_trainings import MODEL, TRAIN, updated
from transduce import model_folder
from transduce.config.schema import DataConfig, DecodeConfig, RunConfig
from transduce.config.settings import FROM_SIZES, Settings
from transduce.config.settings import MODEL as OF_MODEL
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.checkpoint import TrainState, save_checkpoint
from transduce.training.origin import check_origin, extended, with_origin


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(*reverse_texts(50, 0), vocab_size=290, languages=["de", "en"])


@pytest.fixture
def model(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """The folder of a model with other options than the defaults, without checkpoints."""
    shape = replace(MODEL, vocab_size=tokenizer.target.size)
    data = DataConfig(
        source="en",
        target="de",
        directions=("en-de",),
        bleu_tokenize="char",
        placeholders="masked",
        tokenizer="unigram",
        max_tokens=77,
        max_length=88,
    )
    config = RunConfig(shape, data, replace(TRAIN, seed=9), DecodeConfig(beam_size=7))
    publish_model(tmp_path / "model", config, tokenizer, build(shape).state_dict(), {})
    return tmp_path / "model"


def options(**more: object) -> Settings:
    """The user's options."""
    own = {"data.target": "fr", "train.steps": 50, "data.holdout": 0}
    return Settings.of(own | {name.replace("__", "."): value for name, value in more.items()})


def test_options_of_text_and_search_are_inherited_and_those_of_training_are_not(model):
    settings, origin = with_origin(options(decode__length_penalty=0.3), model, False)
    assert origin and origin.folder == model
    inherited = {
        "model.d_model": 16,
        "model.dropout": 0.1,
        "decode.beam_size": 7,
        "data.source": "en",
        "data.directions": ("en-de",),
        "data.bleu_tokenize": "char",
        "data.placeholders": "masked",
        "data.tokenizer": "unigram",
        "data.joint": True,
        "data.symbols": False,
    }
    assert {name: settings[name] for name in inherited} == inherited
    assert {settings.source(name) for name in inherited} == {OF_MODEL}
    assert (settings["data.target"], settings["decode.length_penalty"]) == ("fr", 0.3)
    assert "data.max_tokens" not in settings and "data.max_length" not in settings
    assert {name for name in settings if name.startswith("train.")} == {"train.steps"}


def test_without_a_model_nothing_is_inherited():
    given = options()
    assert with_origin(given, None, False) == (given, None)
    with pytest.raises(UserError, match="An optimizer state needs a model") as refused:
        with_origin(given, None, True)
    assert refused.value.hint and refused.value.hint.options == ("init",)


def test_minimum_risk_training_alone_has_no_other_updates(model):
    risk = options(train__risk_steps=6, data__holdout=5).without("train.steps")
    settings, _ = with_origin(risk, model, False)
    assert settings["train.steps"] == 6 and settings.source("train.steps") == FROM_SIZES
    chosen, _ = with_origin(options(train__risk_steps=6, data__holdout=5), model, False)
    assert chosen["train.steps"] == 50
    replayed, _ = with_origin(risk.updated(Settings.of({"data.replay": "data"})), model, False)
    assert "train.steps" not in replayed


@pytest.mark.parametrize("valid", ["valid", "holdout", "prepared", "nothing"])
def test_minimum_risk_training_needs_a_validation_set_of_any_kind(valid, model, tmp_path):
    (tmp_path / "preparation.json").write_text("{}")
    sets = {
        "valid": {"data__valid": ["a", "b"]},
        "holdout": {"data__holdout": 5},
        "prepared": {"data__corpora": [{"files": ["a"]}, {"files": [str(tmp_path)]}]},
        "nothing": {},
    }
    given = options(train__risk_steps=6, **sets[valid])
    if valid == "nothing":
        with pytest.raises(UserError, match="needs a validation set"):
            with_origin(given, model, False)
    else:
        with_origin(given, model, False)


@pytest.mark.parametrize(
    ("change", "was"),
    [
        ({"model__d_ff": 64}, "model.d_ff = 32"),
        ({"data__tokenizer": "bpe"}, "data.tokenizer = unigram"),
        ({"data__joint": False}, "data.joint = True"),
    ],
)
def test_the_shape_and_the_kind_of_vocabulary_are_fixed(change, was, model):
    origin = model_folder.load(model)
    ((name, value),) = change.items()
    name = name.replace("__", ".")
    with pytest.raises(UserError, match=f"has {was}, which can't change to {value}. Leave {name}"):
        check_origin(origin, options(**change), False)
    dropout = {"model__dropout": 0.5, "model__attention_dropout": 0.5}
    check_origin(origin, options(**dropout, data__max_length=9, train__warmup=3), False)


def test_the_size_of_the_vocabulary_is_fixed_unless_tokens_are_added(model, tokenizer):
    origin = model_folder.load(model)
    size = tokenizer.target.size
    check_origin(origin, options(data__vocab_size=size), False)
    more = options(data__vocab_size=size + 1)
    with pytest.raises(UserError, match="has a vocabulary of 290 tokens already"):
        check_origin(origin, more, False)
    (model / "run.json").write_text(
        json.dumps({"inputs": {}, "keep_optimizer": False, "vocab_size": size + 1, "sessions": []})
    )
    check_origin(origin, more, False)
    check_origin(origin, options(data__vocab_size=size + 2, data__replay="data"), False)


def test_an_optimizer_state_is_kept_if_there_is_one_and_no_language_is_added(model):
    origin = model_folder.load(model)
    for added, said in (
        ("data", "needs a new optimizer state"),
        ("", "has no checkpoints, so its"),
    ):
        with pytest.raises(UserError, match=said) as refused:
            check_origin(origin, options(data__replay=added), True)
        assert refused.value.hint and refused.value.hint.options == ("keep_optimizer",)
        check_origin(origin, options(data__replay=added), False)
    _, optimizer, trained = updated(TRAIN, 1)
    save_checkpoint(model / "checkpoints", trained, optimizer, TrainState(step=1))
    check_origin(origin, options(), True)
    with pytest.raises(UserError, match="needs a new optimizer state"):
        check_origin(origin, options(data__replay="data"), True)
    config = model / "config.toml"
    config.write_text(config.read_text().replace("[train]\n", '[train]\noptimizer = "sgd"\n'))
    with pytest.raises(UserError, match=r"was trained with train\.optimizer = sgd"):
        check_origin(origin, options(), True)


def test_a_new_token_begins_as_the_mean_of_the_tokens_that_spell_it(tokenizer):
    new = tokenizer.extended(["pizza pasta fa"] * 9, 4, ["de", "it"])
    old_size, size = tokenizer.target.size, new.target.size
    networks = [build(replace(MODEL, vocab_size=each), seed=each) for each in (old_size, size)]
    origin = model_folder.Bundle(Path(), RunConfig(), tokenizer, networks[0])
    before = {name: weight.clone() for name, weight in networks[0].state_dict().items()}
    found = extended(origin, new, networks[1])
    assert found.keys() == before.keys()
    added = {
        token: piece.replace("▁", " ")
        for token, piece in enumerate(new.target.all_pieces())
        if token >= old_size
    }
    assert ">>it<<" in added.values() and len(added) > 1
    grown = 0
    for name, weight in found.items():
        old = before[name]
        if weight.shape == old.shape:
            assert torch.equal(weight, old)
            continue
        grown += 1
        assert torch.equal(weight[:old_size], old) and len(weight) == size
        for token, text in added.items():
            tags = [tokenizer.target.tags[f">>{code}<<"] for code in ("de", "en")]
            spelt = tags if text == ">>it<<" else tokenizer.target.encode_behind(text)
            torch.testing.assert_close(weight[token], old[spelt].mean(0))
            assert text == ">>it<<" or tokenizer.target.decode([spelt]) == [text.strip()]
    assert grown > 0
    networks[1].load_state_dict(found)
    # A model without tags: the tag begins as the mean of all tokens.
    plain = Tokenizer.train(*reverse_texts(50, 0), vocab_size=290)
    network = build(replace(MODEL, vocab_size=plain.target.size))
    first = plain.extended(["fa"], 0, ["it"])
    larger = build(replace(MODEL, vocab_size=first.target.size))
    found = extended(origin._replace(tokenizer=plain, model=network), first, larger)
    for name, weight in network.state_dict().items():
        if weight.shape != found[name].shape:
            torch.testing.assert_close(found[name][-1], weight.mean(0))


def test_the_tag_of_a_new_language_begins_as_that_of_a_language_that_it_is_like(tokenizer):
    """The old model has directions from French, whose tag it lacks: this tag isn't that of a new language."""
    new = tokenizer.extended(["fa"], 0, ["de", "it", "fr", "pt_BR"])
    old_size = tokenizer.target.size
    networks = [build(replace(MODEL, vocab_size=each)) for each in (old_size, new.target.size)]
    config = RunConfig(data=DataConfig(directions=("fr-de", "de-en")))
    origin = model_folder.Bundle(Path(), config, tokenizer, networks[0])
    tags = tokenizer.target.tags
    found = extended(origin, new, networks[1], "en")
    [weight] = [each for name, each in found.items() if len(each) == new.target.size]
    likened = weight[tags[">>en<<"]]
    mean = weight[[tags[">>de<<"], tags[">>en<<"]]].mean(0)
    for code, expected in (("it", likened), ("pt_BR", likened), ("fr", mean)):
        torch.testing.assert_close(weight[new.target.tags[f">>{code}<<"]], expected)


def test_a_piece_of_an_imported_vocabulary_begins_as_the_mean_of_its_parts(tokenizer):
    """A character that the vocabulary lacks counts as its base letter, or not at all."""
    vocabulary = tokenizer.target
    listed = [piece for piece in vocabulary.all_pieces() if not piece.startswith("<0x")]
    old = Tokenizer(ImportedVocabulary(vocabulary.model, listed))
    parts = {
        "ǩ": ["k"],
        "zuka": ["zu", "ka"],
        "▁zuka": ["▁zu", "ka"],
        "▁ǩaž": ["▁ka", "z"],
        "zжж": ["z"],
        "ж": [*listed],
        "<<it>>": [*old.target.tags],
    }
    new = Tokenizer(ImportedVocabulary(vocabulary.model, [*listed, *parts]))
    networks = [build(replace(MODEL, vocab_size=each.target.size)) for each in (old, new)]
    origin = model_folder.Bundle(Path(), RunConfig(), old, networks[0])
    found = extended(origin, new, networks[1])
    [weight] = [each for each in found.values() if len(each) == new.target.size]
    for row, pieces in zip(weight[len(listed) :], parts.values(), strict=True):
        torch.testing.assert_close(row, weight[[*map(listed.index, pieces)]].mean(0))
