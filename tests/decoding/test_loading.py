"""Which models are loaded, with which options, and what is refused."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

import transduce
from corpora import reverse_texts
from models import SIZES, make_model, publish_model
from transduce.config.parse import configure
from transduce.config.schema import DataConfig
from transduce.decoding import loading
from transduce.decoding.confidence import Confidence
from transduce.decoding.loading import (
    _confidence,
    _fallback,
    check_directions,
    decode_config,
    describe_models,
    export_engine,
    load,
    load_models,
    refuse_parser,
    scores_of,
    shared_tokenizer,
)
from transduce.decoding.registry import ENGINES
from transduce.decoding.types import Refusal
from transduce.model.build import build
from transduce.model_folder import CONFIDENCE
from transduce.model_folder import load as load_model
from transduce.system.errors import DamagedError, Hint, UnusableModelError, UserError
from transduce.system.files import write_folder
from transduce.text.languages import Direction
from transduce.tokens.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"decode.beam_size": 3, "data.max_length": 77}
    return make_model(tmp_path_factory.mktemp("loading") / "model", options, updates=1)


def test_a_translator_has_the_options_of_its_model(model, tmp_path):
    translator = load(model, {"decode.max_extra_tokens": 5}, engine="torch", threads=1)
    assert (translator.config.beam_size, translator.config.max_extra_tokens) == (3, 5)
    assert translator.max_length == 77 and translator.directions == [Direction("en", "de")]
    assert not translator.has_tags and translator.fallback is None and translator.confidence is None
    assert translator.engine.name == "torch" and translator.scores.quality == {}
    other = make_model(tmp_path / "other", {"decode.beam_size": 5}, updates=0)
    both = load([model, str(other)], engine="torch")
    assert both.config.beam_size == 3, "that of the first"
    assert len(both.engine.models) == 2
    [bundle, _] = load_models([model, model])
    assert bundle.config == describe_models([model], {}).config
    assert transduce.load(model, engine="torch").translate(["ka lo"]) == load(
        str(model), engine="torch"
    ).translate(["ka lo"])


def test_one_model_alone_has_a_confidence(model, monkeypatch):
    monkeypatch.setattr(loading, "_confidence", lambda folder: folder)
    assert load(model, engine="torch").confidence == model
    assert load([model, model], engine="torch").confidence is None


def test_what_can_not_be_loaded_is_named(model, tmp_path):
    for given, options, said in (
        ([], {}, "There is no model to load"),
        (model, {"threads": -1}, "threads must be at least 0, not -1"),
        (model, {"engine": "none"}, "There is no engine 'none'. Choose one of auto,"),
        (model, {"engine": "blockwise"}, "The engine blockwise can't run"),
        (model, {"options": {"data.holdout": 1}}, "data.holdout can't be set for a trained model"),
        (
            model,
            {"options": {"model.d_model": 1}},
            "model.d_model can't be set for a trained model",
        ),
        (model, {"options": {"train.steps": 1}}, "train.steps can't be set for a trained model"),
        (tmp_path / "none", {}, "none"),
    ):
        with pytest.raises(UserError) as error:
            load(given, **options)
        assert said in str(error.value)
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "encoder.onnx").touch()
    assert export_engine(tmp_path) is None
    if export_engine(tmp_path / "export"):
        with pytest.raises(UserError, match="An export can't be part of an ensemble"):
            load([model, tmp_path / "export"])
        with pytest.raises(UserError, match="An export has its own engine"):
            load(tmp_path / "export", engine="torch")


def test_an_export_is_described_by_its_own_files(model, tmp_path):
    if not export_engine_is_known(tmp_path):
        pytest.skip("no engine of exports is installed")
    with write_folder(tmp_path / "export") as aside:
        for name in ("config.toml", "tokenizer.model"):
            shutil.copy(model / name, aside / name)
        (aside / "encoder.onnx").write_text("e")
        (aside / "README.md").write_text("a card")
    described = describe_models([tmp_path / "export"], {"decode.beam_size": 9})
    assert described.descriptions == [] and described.folders == [tmp_path / "export"]
    assert (described.config.decode.beam_size, described.config.data.max_length) == (9, 77)
    (tmp_path / "export" / "README.md").write_text("another card")
    assert describe_models([tmp_path / "export"], {}).config == load_model(model).config
    (tmp_path / "export" / "encoder.onnx").write_text("d")
    with pytest.raises(DamagedError, match=r"encoder\.onnx is damaged"):
        describe_models([tmp_path / "export"], {})


def export_engine_is_known(folder: Path) -> bool:
    (folder / "encoder.onnx").touch()
    return bool(export_engine(folder))


def test_torch_translates_for_another_engine_while_the_model_is_the_same(
    model, tmp_path, monkeypatch
):
    shutil.copytree(model, tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    described = describe_models([Path("copy")], {})._replace(device="a GPU")
    fallback = _fallback(described)
    monkeypatch.chdir("/")
    engine = fallback.engine
    assert engine.name == "torch" and str(engine.device) == "cpu"
    manifest = tmp_path / "copy" / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    monkeypatch.chdir(tmp_path)
    again = _fallback(described)
    manifest.write_text(manifest.read_text() + " ")
    with pytest.raises(UnusableModelError, match="copy has changed since it was loaded"):
        again.engine  # noqa: B018
    manifest.unlink()
    with pytest.raises(UnusableModelError, match="copy has changed since it was loaded"):
        again.engine  # noqa: B018
    assert fallback.engine is engine, "it stays open"


def test_options_of_the_search_may_change(model):
    config = describe_models([model], {"decode.beam_size": 7}).config
    assert config.decode.beam_size == 7
    assert decode_config(config, {}).beam_size == 7
    assert decode_config(config, {"decode.beam_size": 2}).beam_size == 2


def test_a_parser_is_not_loaded_as_a_translator(tmp_path):
    marks = " ".join(f"{number})" for number in range(32))
    sources, trees = reverse_texts(30, seed=1)[0], [f"(S NN {marks} )"] * 30
    tokenizer = Tokenizer.train(sources, trees, vocab_size=280, joint=False, symbols=True)
    refused = r"is a parser\. Use `transduce parse`, or `transduce evaluate`"
    with pytest.raises(UserError, match=refused):
        refuse_parser(tokenizer, tmp_path)
    refuse_parser(
        Tokenizer.train(sources, ["(S )"], vocab_size=280, joint=False, symbols=True), tmp_path
    )
    options = {
        **SIZES,
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": tokenizer.source.size,
        "data.joint": False,
        "data.symbols": True,
    }
    config = configure(options)
    publish_model(tmp_path / "parser", config, tokenizer, build(config.model).state_dict(), {})
    with pytest.raises(UserError, match=refused):
        load(tmp_path / "parser", engine="torch")


def test_models_of_an_ensemble_have_one_vocabulary_and_the_same_directions(tmp_path):
    one, other = (Tokenizer.train(["a b"] * 9, [text] * 9, vocab_size=280) for text in ("c", "d"))
    folders = [tmp_path / name for name in "xyz"]
    assert shared_tokenizer([one, one], folders[:2]) is one
    with pytest.raises(UserError, match=r"z has another vocabulary than .*x"):
        shared_tokenizer([one, one, other], folders)
    german = DataConfig(source="en", target="de")
    several = DataConfig(directions=("en-de", "de-en"))
    check_directions([german, DataConfig(), german], folders)
    check_directions([several, DataConfig(directions=("de-en", "en-de"))], folders[:2])
    with pytest.raises(UserError, match=r"z translates en to fr, and .*y translates en to de"):
        check_directions([DataConfig(), german, DataConfig(source="en", target="fr")], folders)
    with pytest.raises(UserError, match=r"y translates en-de, de-en, and .*x translates en to de"):
        check_directions([german, several], folders[:2])


def test_the_scores_of_directions_are_those_of_the_finished_model(tmp_path):
    assert scores_of(tmp_path) == ({}, {})
    routes = {"de-fr": {"direct": 1.0, "en": 2.0}}
    metrics = {
        "directions": {"en-de": {"validation": {"chrf": 50.0}}, "de-en": {}},
        "routes": routes,
    }
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    assert scores_of(tmp_path) == ({}, {}), "it is not finished"
    for name, content, expected in (
        ("measured", metrics, ({"en-de": 50.0}, routes)),
        ("one direction", {}, ({}, {})),
        ("none", None, ({}, {})),
    ):
        with write_folder(tmp_path / name) as aside:
            if content is not None:
                (aside / "metrics.json").write_text(json.dumps(content))
        assert scores_of(tmp_path / name) == expected


def test_engines_are_asked_in_their_order_and_with_the_settings(model, monkeypatch):
    asked = []

    def refuse(function, described):
        asked.append((function, described.required, described.device, described.threads))
        return Refusal(f"no {len(asked)}", Hint("Do that."))

    monkeypatch.setattr(loading, "open_engine", refuse)
    with pytest.raises(UserError, match=rf"The engine torch can't run {model}: no 1\. Do that\."):
        load(model, engine="torch", device="cpu", threads=3)
    assert asked == [(ENGINES["torch"], True, "cpu", 3)]
    asked.clear()
    with pytest.raises(UserError, match=rf"The engine torch can't run {model}: no 2\. Do that\."):
        load(model)
    assert asked == [(ENGINES[name], False, None, 0) for name in ("ctranslate2", "torch")]


def test_blockwise_decoding_is_greedy_by_default(tmp_path):
    blocks = make_model(tmp_path / "model", {"model.block_size": 2}, updates=0)
    assert load(blocks, engine="torch").config.beam_size == 4
    assert load(blocks, engine="blockwise").config.beam_size == 1
    with pytest.raises(UserError, match="blockwise"):
        load(blocks, {"decode.beam_size": 2}, engine="blockwise")


def test_a_model_with_one_target_language_needs_no_choice(tmp_path):
    sources, targets = reverse_texts(30, seed=1)
    names = ("en-de", "fr-de", "de-en")
    tokenizer = Tokenizer.train(sources, targets, vocab_size=290, languages=("de", "en"))
    metrics = {"directions": {"en-de": {"validation": {"chrf": 50.0}}}}
    for count in (2, 3):
        options = {**SIZES, "model.vocab_size": tokenizer.target.size}
        config = configure({**options, "data.directions": names[:count]})
        weights = build(config.model).state_dict()
        publish_model(tmp_path / str(count), config, tokenizer, weights, metrics)
    german, several = (load(tmp_path / name, engine="torch") for name in "23")
    assert german.has_tags and german.scores.quality == {"en-de": 50.0}
    assert german.direction == Direction("en", "de") and german.tokenizer.tags
    assert several.direction is None and not several.tokenizer.tags
    for chosen in ({"source": "fr"}, {"source": "fr", "target": "de"}):
        found = load(tmp_path / "3", engine="torch", **chosen)
        assert found.direction == Direction("fr", "de")
    assert load(tmp_path / "3", engine="torch", target="en").direction == Direction("de", "en")


def test_without_its_confidence_a_model_translates_with_a_warning(model, tmp_path, capsys):
    made = load_model(model)
    fitted = {"means": (0.0,) * 3, "scales": (1.0,) * 3, "weights": (1.0,) * 3, "bias": 0.0}
    confidence = Confidence(
        **fitted, pairs=9, area=0.9, calibration_error=0.1, min_chrf=50, min_log_prob=-1
    )
    more = {CONFIDENCE: confidence.to_json()}
    weights = made.model.state_dict()
    publish_model(tmp_path / "model", made.config, made.tokenizer, weights, {}, more=more)
    assert load(tmp_path / "model", engine="torch").confidence == confidence
    assert "Warning" not in capsys.readouterr().err
    (tmp_path / "model" / "README.md").write_text("damaged")
    assert _confidence(tmp_path / "model") == confidence, "no other file matters"
    other = dataclasses.replace(confidence, min_chrf=51)
    (tmp_path / "model" / CONFIDENCE).write_text(other.to_json())
    assert load(tmp_path / "model", engine="torch").confidence is None
    said = " ".join(capsys.readouterr().err.split())
    assert "confidence.json is damaged" in said
    assert "The model can be used, but translations have no confidence." in said
    (tmp_path / "model" / "manifest.json").unlink()
    assert _confidence(tmp_path / "model") == other, "nothing says what it was"


def test_models_with_other_directions_form_no_ensemble(model, tmp_path):
    made = load_model(model)
    data = dataclasses.replace(made.config.data, source="fr")
    config = dataclasses.replace(made.config, data=data)
    publish_model(tmp_path / "other", config, made.tokenizer, made.model.state_dict(), {})
    for read in (load, load_models, lambda folders: describe_models(folders, {})):
        with pytest.raises(
            UserError, match=r"other translates fr to de, and .*model translates en"
        ):
            read([model, tmp_path / "other"])
    with pytest.raises(UserError, match="There is no model folder"):
        load([model, tmp_path / "none"])
