"""From files to a model folder: what a training leaves, what it chooses, and what it says of bad input."""

import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

import transduce
from command_line import run
from corpora import TINY, WORDS, changed, reverse_texts, spelt, write_texts
from models import publish_model
from transduce import model_folder
from transduce.config import size_table
from transduce.config.parse import configure, read_recipe
from transduce.config.schema import RunConfig
from transduce.config.settings import Settings
from transduce.evaluation.evaluate import evaluate, validations
from transduce.evaluation.perplexity import mean_validation
from transduce.model.build import build
from transduce.preparation.prepared import open_prepared
from transduce.system.errors import UserError
from transduce.system.files import read_manifest, verify, write_folder
from transduce.system.journal import read_events
from transduce.text.pairs import read_pairs
from transduce.tokens.tokenizer import Tokenizer
from transduce.training import loop
from transduce.training.announce import time_lines
from transduce.training.autobatch import Trial, has_fast_bfloat16
from transduce.training.checkpoint import TrainState, moving_average, regular
from transduce.training.facts import measured_facts
from transduce.training.run import train
from transduce.training.start import with_length
from transduce.training.update import AVERAGE, Outcome

OPTIONS = changed(
    TINY, train__steps=8, train__warmup=20, train__save_every=4, train__validate_every=4
)
ASSIGNMENTS = spelt(OPTIONS)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with train.src, train.tgt and the same for valid and test."""
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (name, count) in enumerate({"train": 300, "valid": 20, "test": 12}.items()):
        write_texts(folder, name, count, seed)
    return folder


def validation(tokenizer, pairs, config):
    """A function that validates a model, as a training does."""
    validate = validations(tokenizer, pairs, config)
    return lambda model: mean_validation(list(validate(model).values()))


def files(place: Path, name: str) -> tuple[str, str]:
    return str(place / f"{name}.src"), str(place / f"{name}.tgt")


def options(place: Path, **changes: object) -> dict[str, object]:
    """What `train` is given; a change is written train__steps=10."""
    corpora = {
        "data.corpora": [{"files": list(files(place, "train"))}],
        "data.valid": files(place, "valid"),
    }
    return changed(OPTIONS | corpora, **changes)


@pytest.fixture(scope="module")
def model(place, tmp_path_factory) -> Path:
    """A finished training; not to be changed."""
    out = tmp_path_factory.mktemp("models") / "finished"
    shape = {"model__d_model": 32, "model__d_ff": 64, "train__warmup": 60}
    length = {"train__steps": 200, "train__save_every": 100, "train__validate_every": 100}
    names = {"data__test": files(place, "test"), "data__source": "ka", "data__target": "zu"}
    train(options(place, **shape, **length, **names), out)
    return out


def same(first: Path, second: Path) -> bool:
    """Whether two safetensors files hold the same, to the bit."""
    one, other = load_file(first), load_file(second)
    return one.keys() == other.keys() and all(
        torch.equal(weight, other[name]) for name, weight in one.items()
    )


def test_a_model_folder_holds_what_a_model_needs(model):
    verify(model, hashes=True)
    assert set(read_manifest(model)) == {
        "config.toml",
        "sources.json",
        "run.json",
        "tokenizer.model",
        "tokenizer.normalization.json",
        "model.safetensors",
        "metrics.json",
        "README.md",
    }
    assert {path.name for path in model.iterdir()} == {*read_manifest(model), "manifest.json"} | {
        "journal.jsonl",
        "checkpoints",
        "data",
    }
    assert tomllib.loads((model / "config.toml").read_text())["format"] == 1
    for step in ("step-00000100", "step-00000200"):
        verify(model / "checkpoints" / step, hashes=True)
    events = [event["event"] for event in read_events(model / "journal.jsonl")]
    assert events[0] == "start" and events[-1] == "stop"
    assert events.count("validation") == 2
    card = (model / "README.md").read_text()
    assert "# ka → zu" in card and "transduce translate" in card and "| pairs | 300 " in card


def test_the_card_tells_how_far_to_trust_the_confidence():
    [row] = measured_facts({"confidence": {"area": 0.704, "calibration_error": 0.0312}})
    assert row == ("confidence", "area under the ROC curve 0.70, calibration error 0.031")


def test_the_card_and_info_show_the_same_facts(model, capsys):
    status, said, _ = run(capsys, "info", model)
    card = (model / "README.md").read_text()
    facts = dict(measured_facts(model_folder.read_metrics(model)))
    assert status == 0 and {"parameters", "checkpoint", "pairs", "training"} <= facts.keys()
    for name, text in facts.items():
        assert f"| {name} | {text} |" in card.replace("\\|", "|")
        assert re.search(f"^{re.escape(name)} +{re.escape(text)}$", said, re.MULTILINE)


def test_a_model_knows_where_each_value_came_from(place, tmp_path, capsys):
    recipe, out = tmp_path / "mine.toml", tmp_path / "out"
    recipe.write_text("[train]\nsteps = 4\nwarmup = 2\n[model]\nd_ff = 32\n")
    command = ["train", str(recipe), "--train", *files(place, "train"), "--out", out, *ASSIGNMENTS]
    assert run(capsys, *command, "train.steps=6")[0] == 0
    expected = {
        "train.steps": "command line",
        "data.vocab_size": "command line",
        "model.dropout": "table of sizes",
        "train.accumulate": "trial",
        "train.seed": "default",
        "data.corpora": "command line",
    }
    sources = model_folder.read_config(out).sources
    assert {name: sources[name] for name in expected} == expected
    assert model_folder.load(out).config.sources == sources
    status, said, _ = run(capsys, "info", out)
    assert (
        status == 0
        and re.search(r"\nmodel\.dropout +table of sizes +0\.3\n", said)
        and "train.seed" not in said
    )
    status, said, _ = run(capsys, "info", out, "--json")
    assert json.loads(said)["sources"] == sources
    assert run(capsys, "train", "--out", out, "train.steps=8", "train.keep_last=9")[0] == 0
    assert model_folder.read_config(out).sources == {**sources, "train.keep_last": "command line"}
    train(options(place), tmp_path / "tuned", init=out)
    sources = model_folder.read_config(tmp_path / "tuned").sources
    assert (sources["model.norm"], sources["model.d_ff"]) == (
        "inherited from the model",
        "calling program",
    )
    assert sources["model.vocab_size"] == "inherited from the model"


def test_fine_tuning_keeps_the_search(place, tmp_path):
    search = {"decode.beam_size": 6, "decode.length_penalty": 0.3}
    train(options(place) | search | {"train.steps": 2}, tmp_path / "first")
    train(
        options(place) | {"decode.beam_size": 2, "train.steps": 2},
        tmp_path / "second",
        init=tmp_path / "first",
    )
    found = model_folder.read_config(tmp_path / "second").decode
    assert (found.beam_size, found.length_penalty) == (2, 0.3)


def test_values_chosen_from_machine_speed_are_kept_on_resume(place, tmp_path):
    """The caller's choice comes from the trial; an option that is given wins, and a later start keeps both."""
    paces = []

    def fit(seconds: float) -> dict[str, int]:
        paces.append(seconds)
        return {"train.steps": 6, "train.warmup": 3}

    given = {name: value for name, value in options(place).items() if name != "train.steps"}
    assert train(given, tmp_path, fit=fit, stop=lambda: True).reason == "interrupted"
    result = train(given, tmp_path, fit=fit)
    config = model_folder.read_config(tmp_path)
    assert len(paces) == 1 and 0 < paces[0] < math.inf
    assert result.metrics["training"]["steps"] == config.train.steps == 6
    assert (config.train.warmup, config.sources["train.steps"]) == (
        OPTIONS["train.warmup"],
        "trial",
    )


def test_model_without_value_sources_is_read_and_saved(model, place, tmp_path, capsys):
    """As an older transduce wrote it, with NaN in its metrics."""
    old, again = tmp_path / "old", tmp_path / "again"
    loaded, known = model_folder.load(model), model_folder.describe(model).metrics
    config = RunConfig(
        loaded.config.model, loaded.config.data, loaded.config.train, loaded.config.decode
    )
    weights = load_file(model / "model.safetensors")
    with write_folder(old) as staging:
        model_folder.fill(staging, config, loaded.tokenizer, weights, dict(known), "")
        known = known | {"validation": {"perplexity": math.nan}}
        (staging / "metrics.json").write_text(json.dumps(known))
        assert "NaN" in (staging / "metrics.json").read_text()
    description = model_folder.describe(old)
    assert (
        description.config.sources is None
        and description.metrics["validation"]["perplexity"] is None
    )
    status, said, _ = run(capsys, "info", old)
    assert status == 0 and "perplexity not finite" in said
    status, said, _ = run(capsys, "info", old, "--json")
    assert json.loads(said)["sources"] is None
    publish_model(
        again, config, loaded.tokenizer, weights, {"loss": math.nan, "best": math.inf}, ""
    )
    text = (again / "metrics.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"loss": None, "best": None}
    sources = [pair.source for pair in read_pairs(files(place, "test"), ("ka", "zu"))]
    texts = [
        [found.text for found in transduce.load(folder, engine="torch").translate(sources)]
        for folder in (model, old, again)
    ]
    assert texts[0] == texts[1] == texts[2]


def test_model_files_are_readable_and_the_card_is_editable(model, tmp_path):
    umask = os.umask(0)
    os.umask(umask)
    for name in read_manifest(model):
        assert (model / name).stat().st_mode & 0o777 == 0o666 & ~umask, name
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    (copy / "README.md").write_text("Ours.\n")
    assert model_folder.load(copy).folder == copy


def at_once() -> bool:
    """Of a training that ends before its first update."""
    return True


def test_time_limit_shorter_than_the_warm_up_is_reported(place, tmp_path, capfd):
    limits = {"train__minutes": 0.02, "train__steps": 10**6}
    train(options(place, **limits, train__warmup=100_000), tmp_path / "short", stop=at_once)
    said = capfd.readouterr().err
    assert (
        "0.02 min are enough for about " in said
        and "rises over the first 100,000: allow more" in said
    )
    assert "Estimated training time: 1 min" in said
    train(options(place, train__minutes=5.0, train__warmup=2), tmp_path / "long")
    assert "min are enough" not in capfd.readouterr().err
    train(options(place, train__steps=2, train__warmup=9), tmp_path / "few")
    assert (
        "about 2 updates, but the learning rate rises over the first 9: allow more"
        in capfd.readouterr().err
    )


def test_cooldown_longer_than_the_training_is_reported(place, tmp_path, capfd):
    train(options(place, train__steps=5, train__cooldown=9, train__warmup=2), tmp_path / "few")
    assert (
        "There will be 5 updates, but the learning rate falls over the last 9: lower"
        in capfd.readouterr().err
    )
    train(options(place, train__steps=2, train__cooldown=9, train__warmup=9), tmp_path / "fewer")
    said = capfd.readouterr().err
    assert "rises over the first 9" in said and "falls over the last 9" in said


def test_a_corpus_too_small_to_learn_from_is_refused(tmp_path, capfd, monkeypatch):
    def given(pairs: int) -> dict[str, object]:
        corpus = {
            "data.corpora": [{"files": list(write_texts(tmp_path, f"train-{pairs}", pairs, 0))}]
        }
        return TINY | corpus | {"data.holdout": 0}

    with pytest.raises(
        UserError, match=r"The corpus has 2 pairs to train on.* at least 20, .* about 10,000\."
    ):
        train(given(2), tmp_path / "two", stop=at_once)
    assert not (tmp_path / "two" / "config.toml").exists()
    for name, few in {"chosen": given(2) | {"train.steps": 2}, "more": given(300)}.items():
        train(few, tmp_path / name, stop=at_once)
        assert "pairs is too small to learn a language from" in capfd.readouterr().err
    monkeypatch.setattr(size_table, "FEW_PAIRS", 300)
    train(given(300), tmp_path / "enough", stop=at_once)
    assert "too small" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("accumulate", "words"), [(1, "in one micro-batch"), (3, "in 3 micro-batches")]
)
def test_micro_batches_are_shown_at_the_start(accumulate, words, place, tmp_path, capfd):
    train(options(place, train__accumulate=accumulate), tmp_path / "out", stop=at_once)
    assert words in capfd.readouterr().err


@pytest.mark.parametrize(("minutes", "left"), [(0, "0:01:30"), (1, "0:00:50"), (9, "0:01:30")])
def test_the_progress_line_knows_the_remaining_time(minutes, left):
    """10 of 100 updates took 10 seconds, so 90 updates take 90, but no more than train.minutes allows."""
    config = configure({"train.steps": 100, "train.minutes": minutes})
    pace = loop.Pace(TrainState())
    state = TrainState(step=10, seconds=10.0)
    training = SimpleNamespace(config=config, state=state, schedule=config.train)
    line = pace.line(
        training,
        Outcome(loss=20.0, nll=10.0, correct=1.0, num_tokens=10, gradient_norm=1.0, applied=True),
    )
    assert line.startswith(f"10/100 updates  {left} left  loss 2.000  ppl 2.718  1 tok/s  epoch 1")


@pytest.mark.parametrize(("steps", "warned"), [(40, True), (41, False)])
def test_warm_up_of_half_the_training_is_reported(steps, warned, place, tmp_path, capfd):
    train(options(place, train__warmup=20, train__steps=steps), tmp_path / "out", stop=at_once)
    assert ("but the learning rate rises over the first 20:" in capfd.readouterr().err) is warned


def test_reports_are_means_over_their_updates(place, tmp_path, monkeypatch):
    reports = []
    for every in (1, 4):
        monkeypatch.setattr(loop, "REPORT_EVERY", every)
        train(options(place), tmp_path / str(every))
        reports.append(
            [
                event
                for event in read_events(tmp_path / str(every) / "journal.jsonl")
                if "nll" in event
            ]
        )
    seen = [0, *(event["tokens_seen"] for event in reports[0])]
    tokens = [end - begin for begin, end in itertools.pairwise(seen)]
    for first, event in zip(range(0, 8, 4), reports[1], strict=True):
        for name in ("loss", "nll", "accuracy"):
            total = sum(reports[0][i][name] * tokens[i] for i in range(first, first + 4))
            assert event[name] == pytest.approx(total / sum(tokens[first : first + 4]))


@pytest.mark.parametrize(
    ("seconds", "minutes", "offered"), [(1.0, 0, True), (1.0, 300, False), (0.5, 0, False)]
)
def test_long_training_suggests_a_time_limit(seconds, minutes, offered):
    config = configure({"train.steps": 10_000, "train.minutes": minutes})
    lines = time_lines(config, Trial(1, 1_000, 0.1, seconds))
    assert lines[0].startswith("Estimated training time: ") and len(lines) == 1 + offered
    if offered:  # 85 % of the time are for updates
        assert (
            "train.minutes=120" in lines[1]
            and "about 6,120 of the 10,000 updates (61%, 6.1 epochs)" in lines[1]
        )


def test_options_without_effect_are_named(place, tmp_path, capfd):
    nothing = {"data.valid": (), "data.holdout": 0}
    train(options(place, train__patience=2, train__select_by="bleu", **nothing), tmp_path / "out")
    said = capfd.readouterr().err
    assert "Warning     There is no validation set, so train.patience (2) has no effect." in said
    assert "There is no validation set, so train.select_by (bleu) has no effect." in said


def test_precision_is_chosen_once(place, tmp_path):
    out = tmp_path / "out"
    given = {name: value for name, value in options(place).items() if name != "train.precision"}
    train(given, out)
    chosen = model_folder.read_config(out).train.precision
    assert chosen == ("bfloat16" if has_fast_bfloat16(torch.device("cpu")) else "float32")
    train(given | {"train.precision": "auto", "train.steps": 12}, out)
    assert model_folder.read_config(out).train.precision == chosen


def test_metrics_are_those_of_the_model(model, place):
    metrics = json.loads((model / "metrics.json").read_text())
    config, weights = model_folder.read_config(model), load_file(model / "model.safetensors")
    assert metrics["training"]["steps"] == 200 and metrics["training"]["reason"] == "steps"
    assert metrics["averaged_steps"][-1] == 200
    assert metrics["parameters"] == sum(weight.numel() for weight in weights.values())
    facts = open_prepared(model / "data").facts
    told = {name: value for name, value in vars(facts).items() if name in metrics["corpus"]}
    assert metrics["corpus"] == json.loads(json.dumps(told)) and facts.pairs == 300
    assert vars(facts).keys() - told.keys() == {"options", "files", "weights", "dropped"}
    loaded = model_folder.load(model)
    assert loaded.config == config == model_folder.describe(model).config
    pairs = {name: list(read_pairs(files(place, name))) for name in ("valid", "test")}
    again = validation(loaded.tokenizer, pairs["valid"], config)(loaded.model)
    assert metrics["validation"] == {
        "perplexity": pytest.approx(again.perplexity, rel=1e-6),
        "bleu_greedy": pytest.approx(again.bleu),
    }
    tested = evaluate([loaded], pairs["test"], config.decode)
    assert [score["value"] for score in metrics["test"]["scores"]] == [
        score.value for score in tested.scores
    ]
    assert [example["translation"] for example in metrics["test"]["examples"]] == [
        translation.text for translation in tested.translations[:8]
    ]


@pytest.mark.slow
def test_the_model_is_the_average_of_the_last_checkpoints_or_the_last_or_the_best_if_that_is_better(
    place, tmp_path, capfd
):
    noisy = {
        "train__learning_rate": 8.0,
        "train__warmup": 20,
        "train__steps": 70,
        "train__save_every": 10,
    }
    noisy["train__keep_last"] = 8  # more than are averaged
    learning = {
        "train__learning_rate": 1.0,
        "train__warmup": 60,
        "train__steps": 120,
        "train__save_every": 60,
    }
    averages = []
    for name, changes in {"noisy": noisy, "learning": learning}.items():
        out = tmp_path / name
        metrics = train(options(place, **changes, train__patience=0), out).metrics
        found = regular(out / "checkpoints", changes["train__save_every"])
        paths = [path for path in found if model_folder.step_of(path)][-5:]
        events = [
            event for event in read_events(out / "journal.jsonl") if event["event"] == "validation"
        ]
        best = min(events, key=lambda event: event["perplexity"])["step"]
        best_path = out / "checkpoints" / f"step-{best:08d}"
        candidates = [model_folder.average(each) for each in (paths, [best_path], paths[-1:])]
        measure = validation(
            Tokenizer.load(out),
            list(read_pairs(files(place, "valid"))),
            model_folder.read_config(out),
        )
        perplexities = []
        for weights in candidates:
            model = build(model_folder.read_config(out).model)
            model.load_state_dict(weights)
            perplexities.append(measure(model.eval()).perplexity)
        averaged = perplexities[0] == min(perplexities)
        expected = candidates[perplexities.index(min(perplexities))]
        written = load_file(out / "model.safetensors")
        assert all(torch.equal(written[key], weight) for key, weight in expected.items())
        assert len(metrics["averaged_steps"]) == (len(paths) if averaged else 1)
        said = capfd.readouterr().err
        chosen = f"the average of {len(paths)} checkpoints" if averaged else f"checkpoint {best}"
        assert f"The model is {chosen}" in said
        averages.append(averaged)
    assert averages == [True, False], "a test in which one of them always wins shows little"


@pytest.mark.parametrize("text", ["", " ", "two\nlines"])
def test_validation_files_without_usable_pairs_are_refused(place, tmp_path, text):
    valid = tmp_path / "valid.jsonl"
    valid.write_text(json.dumps({"source": "one line", "target": text}))
    with pytest.raises(
        UserError, match=r"No pair of .*valid\.jsonl has one line of text on each side"
    ):
        train(options(place, data__valid=(str(valid),)), tmp_path / "out")


def test_without_averaging_the_best_checkpoint_is_the_model(place, tmp_path):
    changes = {
        "train__average": 1,
        "train__learning_rate": 20.0,
        "train__warmup": 4,
        "train__validate_every": 1,
    }
    result = train(options(place, **changes), tmp_path / "out")
    events = [
        event
        for event in read_events(tmp_path / "out/journal.jsonl")
        if event["event"] == "validation"
    ]
    best = min(events, key=lambda event: event["perplexity"])["step"]
    assert result.metrics["averaged_steps"] == [best]
    assert best % 4, "a test in which the best is a regular checkpoint shows nothing"
    checkpoint = tmp_path / "out/checkpoints" / f"step-{best:08d}"
    assert same(tmp_path / "out/model.safetensors", checkpoint / "model.safetensors")


def test_a_training_that_spoils_its_model_gives_the_best_checkpoint(place, tmp_path):
    changes = {"train__learning_rate": 20.0, "train__warmup": 4, "train__validate_every": 1}
    result = train(options(place, **changes), tmp_path / "out")
    events = [
        event
        for event in read_events(tmp_path / "out/journal.jsonl")
        if event["event"] == "validation"
    ]
    best = min(events, key=lambda event: event["perplexity"])
    assert result.metrics["validation"]["perplexity"] == pytest.approx(best["perplexity"])
    assert result.metrics["averaged_steps"] == [best["step"]]


def test_the_moving_average_is_the_model_if_it_is_better(place, tmp_path):
    common = {"train__ema": 0.95, "train__patience": 0, "train__keep_last": 1, "train__average": 1}
    noisy = {"train__steps": 60, "train__learning_rate": 8.0, "train__warmup": 20}
    learning = {"train__steps": 12, "train__learning_rate": 0.5, "train__warmup": 10}
    chosen = []
    for name, changes in {"noisy": noisy, "learning": learning}.items():
        out = tmp_path / name
        train(options(place, **common, **changes, train__save_every=60), out)
        measure = validation(
            Tokenizer.load(out),
            list(read_pairs(files(place, "valid"))),
            model_folder.read_config(out),
        )
        best, last = model_folder.checkpoints(out)[0], model_folder.checkpoints(out)[-1]
        candidates = [
            *map(moving_average, (best, last)),
            *(load_file(path / "model.safetensors") for path in (last, best)),
        ]
        perplexities = []
        for weights in candidates:
            model = build(model_folder.read_config(out).model)
            model.load_state_dict(weights)
            perplexities.append(measure(model.eval()).perplexity)
        chosen.append(perplexities.index(min(perplexities)))
        written = load_file(out / "model.safetensors")
        assert all(
            torch.equal(written[key], weight) for key, weight in candidates[chosen[-1]].items()
        )
        events = [
            event for event in read_events(out / "journal.jsonl") if event["event"] == "validation"
        ]
        assert events[-1]["perplexity"] == pytest.approx(perplexities[1]), (
            "the moving average is validated"
        )
    assert len({place > 1 for place in chosen}) == 2, (
        "a test in which an average always wins shows little"
    )


def test_without_train_ema_an_old_moving_average_is_forgotten(place, tmp_path):
    given = options(place, train__ema=0.9, train__steps=10)
    train(given, tmp_path / "first")
    train(
        options(place, train__steps=20),
        tmp_path / "tuned",
        init=tmp_path / "first",
        keep_optimizer=True,
    )
    train(given | {"train.ema": 0, "train.steps": 20}, tmp_path / "first")
    for name in ("first", "tuned"):
        state = load_file(model_folder.checkpoints(tmp_path / name)[-1] / "optimizer.safetensors")
        assert state and not any(key.endswith(AVERAGE) for key in state), (
            "validations would measure it"
        )


def test_the_newest_whole_checkpoint_is_the_model_of_an_unfinished_training(model, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(model, out)
    for name in ("manifest.json", "model.safetensors", "metrics.json", "README.md"):
        (out / name).unlink()
    for step in (200, 100):
        checkpoint = out / "checkpoints" / f"step-{step:08d}"
        described, loaded = model_folder.describe(out), model_folder.load(out)
        assert not described.finished and described.weights == checkpoint / "model.safetensors"
        weights = load_file(described.weights)
        assert all(
            torch.equal(weight, weights[name]) for name, weight in loaded.model.state_dict().items()
        )
        (checkpoint / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(
        UserError, match=r"no intact model in .*step-00000200/model\.safetensors is damaged"
    ) as refused:
        model_folder.load(out)
    assert refused.value.hint and "another copy" in refused.value.hint.text


def test_without_held_out_pairs_a_training_ends(place, tmp_path):
    result = train(
        options(place, data__valid=(), data__holdout=0, train__patience=1), tmp_path / "out"
    )
    assert result.reason == "steps"
    assert result.metrics["corpus"]["held_out"] == 0
    model_folder.load(tmp_path / "out")


def test_user_options_override_the_size_table(place, tmp_path):
    chosen = {"model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "data.max_tokens": 128}
    names = ("data.corpora", "data.valid", "train.threads")
    result = train(
        {name: options(place)[name] for name in names}
        | chosen
        | {"train.steps": 8, "model.d_ff": 24},
        tmp_path / "out",
    )
    config, row = model_folder.read_config(result.folder), size_table.sizes_for(300)
    model, run = config.model, config.train
    assert (
        model.num_encoder_layers,
        model.num_decoder_layers,
        model.d_ff,
        config.data.max_tokens,
    ) == (1, 1, 24, 128)
    assert (model.d_model, model.num_heads, model.dropout) == (
        row.d_model,
        row.num_heads,
        row.dropout,
    )
    assert (run.steps, run.cooldown, run.accumulate) == (8, 2, 1)
    assert {
        f"train.{name}": value for name, value in vars(run).items()
    }.items() >= size_table.SMALL.items()
    epoch = open_prepared(result.folder / "data").mixture.plan(
        0, 0, budget=128, accumulate=1, seed=1
    )
    assert run.save_every == run.validate_every == len(epoch)
    assert run.warmup == 2  # a quarter of what was asked for
    assert run.learning_rate / (row.d_model * run.warmup) ** 0.5 == pytest.approx(
        row.peak, rel=0.01
    )
    pieces = model_folder.load(result.folder).tokenizer.target.size
    # The corpus supports fewer.
    assert config.data.vocab_size == model.vocab_size == pieces < row.vocab_size


def dialect(folder: Path) -> tuple[str, str]:
    """A corpus of the same words in which each of them means something else."""
    sources, targets = reverse_texts(200, seed=7)
    shifted = dict(zip(WORDS.values(), [*WORDS.values()][1:] + [*WORDS.values()][:1], strict=True))
    (folder / "other.src").write_text("".join(f"{line}\n" for line in sources))
    (folder / "other.tgt").write_text(
        "".join(" ".join(shifted[word] for word in line.split()) + "\n" for line in targets)
    )
    return str(folder / "other.src"), str(folder / "other.tgt")


@pytest.mark.parametrize("keep_optimizer", [False, True])
def test_training_continues_from_another_model(keep_optimizer, model, tmp_path):
    given = {name: value for name, value in OPTIONS.items() if not name.startswith("model.")}
    given |= {"data.corpora": [{"files": dialect(tmp_path)}], "data.holdout": 15}
    given |= {
        "train.steps": 60,
        "train.learning_rate": 0.3,
        "train.save_every": 20,
        "train.validate_every": 20,
    }
    out = tmp_path / "tuned"
    result = train(given, out, init=model, keep_optimizer=keep_optimizer)
    assert (out / "tokenizer.model").read_bytes() == (model / "tokenizer.model").read_bytes()
    config = model_folder.read_config(out)
    assert config.model == model_folder.read_config(model).model
    first, prepared = out / "checkpoints/step-00000000", open_prepared(out / "data")
    before = validation(prepared.tokenizer, prepared.valid(), config)(
        model_folder.load(model).model
    )
    assert result.metrics["validation"]["perplexity"] < before.perplexity / 2
    if keep_optimizer:
        for name in "model.safetensors", "optimizer.safetensors":
            assert same(first / name, model / "checkpoints/step-00000200" / name)
    else:
        assert same(first / "model.safetensors", model / "model.safetensors")
        assert load_file(first / "optimizer.safetensors") == {}


def test_continuing_from_a_model_of_another_shape_is_refused(model, place, tmp_path):
    for change, was in (
        ({"model__d_model": 16}, 32),
        ({"model__num_heads": 4}, 2),
        ({"model__norm": "pre"}, "post"),
    ):
        ((name, value),) = change.items()
        name = name.replace("__", r"\.")
        given = {"model__d_model": 32, "model__d_ff": 64} | change
        with pytest.raises(
            UserError, match=f"finished has {name} = {was}, which can't change to {value}"
        ):
            train(options(place, **given), tmp_path / "out", init=model)


def test_a_training_that_diverges_says_so(place, tmp_path, capsys):
    rates = {"train.warmup": 4, "train.validate_every": 3}
    with pytest.raises(
        UserError, match=r"10 updates in a row was not finite .* Lower train\.learning_rate"
    ):
        train(
            options(place, **rates, **{"train.steps": 40, "train.learning_rate": 1e30}),
            tmp_path / "infinite",
        )
    events = [
        each
        for each in read_events(tmp_path / "infinite/journal.jsonl")
        if each["event"] == "validation"
    ]
    assert events and all(each["perplexity"] is None and "bleu" not in each for each in events)
    train(
        options(place, **rates, **{"train.steps": 12, "train.learning_rate": 30.0}),
        tmp_path / "finite",
    )
    said = capsys.readouterr().err
    assert re.search(r"validation perplexity \d\.\d\de\+\d+, BLEU", said), said
    assert "validation perplexity inf – the best" not in said
    assert "The training diverged: train again with a lower train.learning_rate." in said


def test_a_prepared_corpus_gives_the_same_model(place, tmp_path, capsys):
    data, corpus = (
        tmp_path / "data",
        ["--train", *files(place, "train"), "--from", "ka", "--to", "zu"],
    )
    text = "data.holdout=20", "data.rules=length,numbers"
    status, said, _ = run(capsys, "prepare", *corpus, "--out", data, "data.vocab_size=300", *text)
    assert status == 0 and said.startswith("280 pairs to train on, 20 held out")
    raw = run(capsys, "train", *corpus, "--out", tmp_path / "raw", *ASSIGNMENTS, *text)
    prepared = run(
        capsys, "train", "--train", data, "--out", tmp_path / "prepared", *ASSIGNMENTS, *text
    )
    assert raw[0] == prepared[0] == 0
    assert (
        "After 8 updates the model can hardly translate text like the validation set. Allow more"
        in raw[2]
    )
    assert same(tmp_path / "raw/model.safetensors", tmp_path / "prepared/model.safetensors")
    status, _, said = run(capsys, "train", "--train", data, "--out", data, *ASSIGNMENTS)
    check_sentence(status, said, "data exists and is not a training run of transduce")
    verify(data, hashes=True)
    assert not (tmp_path / "prepared/data").exists()
    assert model_folder.read_config(tmp_path / "prepared").data.source == "ka"
    # A second start of the same command finds the prepared corpus again.
    status, _, said = run(
        capsys, "train", "--train", data, "--out", tmp_path / "prepared", "train.steps=12"
    )
    assert status == 0 and "Resuming at step 8 of 12" in said


def test_data_left_by_another_start_is_not_trained_on(place, tmp_path, capsys):
    data, out, text = tmp_path / "data", tmp_path / "out", ["--from", "ka", "--to", "zu"]
    assert (
        run(
            capsys,
            "prepare",
            "--train",
            *files(place, "train"),
            *text,
            "--out",
            data,
            "data.vocab_size=300",
        )[0]
        == 0
    )
    other = (
        "prepare",
        "--train",
        *files(place, "test"),
        *text,
        "--out",
        out / "data",
        "data.vocab_size=290",
    )
    assert run(capsys, *other, "data.holdout=2")[0] == 0, (
        "as if a training had ended before its first update"
    )
    assert run(capsys, "train", "--train", data, "--out", out, *ASSIGNMENTS)[0] == 0
    assert not (out / "data").exists() and Tokenizer.load(out).same_pieces(Tokenizer.load(data))


def test_a_damaged_checkpoint_does_not_keep_the_model_from_being_published(place, tmp_path, capfd):
    out = tmp_path / "out"
    train(options(place, train__patience=0), out)
    (out / "manifest.json").unlink()
    damaged = regular(out / "checkpoints", 4)[-2]
    (damaged / "model.safetensors").write_bytes(
        (damaged / "model.safetensors").read_bytes()[:-1] + b"x"
    )
    capfd.readouterr()
    assert (
        model_folder.step_of(damaged)
        not in train(options(place, train__patience=0), out).metrics["averaged_steps"]
    )
    assert f"{damaged.name}" in capfd.readouterr().err


def test_a_prepared_corpus_with_another_vocabulary_is_refused(model, tmp_path, capsys):
    data = tmp_path / "data"
    assert (
        run(capsys, "prepare", "--train", *dialect(tmp_path), "--out", data, "data.vocab_size=290")[
            0
        ]
        == 0
    )
    status, _, said = run(
        capsys, "train", "--train", data, "--out", tmp_path / "out", "--init", model
    )
    assert (
        status,
        said.startswith(f"transduce: {data} has another vocabulary than the model"),
    ) == (2, True)


def test_several_corpora_are_seen_as_often_as_they_weigh(place, tmp_path, capsys):
    corpora = [(files(place, "train"), 0.5), (files(place, "valid"), 3), (files(place, "test"), 0)]
    tables = [
        f"[[data.corpora]]\nfiles = {json.dumps(both)}\nweight = {weight}\n"
        for both, weight in corpora
    ]
    (tmp_path / "recipe.toml").write_text("\n".join(["[data]\nholdout = 0", *tables]))
    status, _, said = run(
        capsys,
        "train",
        tmp_path / "recipe.toml",
        "--out",
        tmp_path / "out",
        *ASSIGNMENTS,
        "train.save_every=0",
    )
    assert status == 0, said
    config = model_folder.read_config(tmp_path / "out")
    assert [(corpus.files, corpus.weight) for corpus in config.data.corpora] == corpora
    prepared = open_prepared(tmp_path / "out/data")
    assert len(prepared.mixture) == 332
    epoch = prepared.mixture.plan(0, 0, budget=256, accumulate=1, seed=1)
    assert len(epoch) == config.train.save_every
    assert sum(len(batch) for (batch,) in epoch) == 150 + 60
    assert prepared.origin(300 + 4) == f"{files(place, 'valid')[0]}:5"
    settings = Settings("the test", {"train.steps": 3000})
    long = (
        with_length(settings, prepared, Trial(1, 5000, 0.0, 1.0), fine_tuning=False).config().train
    )
    assert (long.save_every, long.validate_every) == (600, 600), (
        "an epoch is longer than the training"
    )
    short = with_length(settings, prepared, Trial(1, 8, 0.0, 1.0), fine_tuning=False).config().train
    assert (short.save_every, short.validate_every) == (8, 8)
    no_risk = settings.updated(Settings("the test", {"train.risk_steps": 4000}))
    rates = [
        with_length(each, prepared, Trial(1, 8, 0.0, 1.0), fine_tuning=True)
        .config()
        .train.learning_rate
        for each in (settings, no_risk)
    ]
    assert rates[0] == rates[1], "no update minimises the risk"
    status, _, said = run(
        capsys,
        "train",
        tmp_path / "recipe.toml",
        "--out",
        tmp_path / "out",
        *ASSIGNMENTS,
        "train.save_every=0",
    )
    assert status == 0 and "is finished at 8 updates" in said


def test_corpora_with_no_weight_are_refused(place, tmp_path):
    nothing = [{"files": files(place, "train"), "weight": 0}]
    with pytest.raises(UserError, match="An epoch has no pairs"):
        train(options(place, data__corpora=nothing), tmp_path / "out")
    with pytest.raises(UserError, match="An epoch has no pairs"):
        train(
            options(place, data__augment="default", data__corpora=nothing), tmp_path / "augmented"
        )
    nothing[0]["weight"] = 0.0001
    with pytest.raises(UserError, match="An epoch has no pairs"):
        train(options(place, data__augment="default", data__corpora=nothing), tmp_path / "rounded")


BAD = {
    "a missing file": (
        {},
        ["{}/train.sr", "{}/train.tgt"],
        r"train\.sr does not exist\. Did you mean .*train\.src\?",
    ),
    "an empty corpus": (
        {"a": b"", "b": b""},
        ["{}/a", "{}/b"],
        "corpus is empty: there are no lines in .*/a, .*/b",
    ),
    "blank lines": (
        {"a": b"\n\n", "b": b"\n \n"},
        ["{}/a", "{}/b"],
        "No training pairs are left in .*/a, .*/b. Left out 2 of 2 pairs because of a blank side",
    ),
    "a shorter side": (
        {"a": b"ka lo\n" * 4, "b": b"fe zu\n" * 3},
        ["{}/a", "{}/b"],
        "a has 4 lines and .*/b has 3. Line i of the second file must be",
    ),
    "invalid UTF-8": (
        {"a": b"ka\nlo \xff mi\n", "b": b"zu\nga fe\n"},
        ["{}/a", "{}/b"],
        "a:2: byte 0xFF at offset 3 of the line is not UTF-8",
    ),
    "one column": (
        {"a.tsv": b"ka\tzu\nlo\n"},
        ["{}/a.tsv"],
        r"a\.tsv:2: expected 2 columns, found 1",
    ),
    "an unknown suffix": (
        {"a.doc": b"ka\tzu\n"},
        ["{}/a.doc"],
        r"a\.doc: the suffix does not name a bilingual format",
    ),
    "nothing": ({}, [], "There is nothing to train on. Name two text files"),
}


def check_sentence(status: int, said: str, pattern: str) -> None:
    """One sentence at the end of what was said, exit status 2, no traceback."""
    last = said.splitlines()[-1]
    assert status == 2
    assert re.match(f"transduce: .*{pattern}", last), said
    assert last.endswith(".") or "?" in last
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", BAD)
def test_bad_corpora_are_named_and_can_be_mended(kind, place, tmp_path, capsys):
    contents, names, pattern = BAD[kind]
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    shutil.copy(place / "train.src", tmp_path)
    given = ["--train", *(name.format(tmp_path) for name in names)] if names else []
    status, _, said = run(capsys, "train", *given, "--out", tmp_path / "out", *ASSIGNMENTS)
    check_sentence(status, said, pattern)
    if kind == "a missing file":  # the folder that the mistake may have left is no obstacle
        command = [
            "train",
            "--train",
            *files(place, "train"),
            "--out",
            tmp_path / "out",
            *ASSIGNMENTS,
        ]
        assert run(capsys, *command, "data.holdout=10")[0] == 0


@pytest.mark.parametrize(
    ("assignment", "pattern"),
    [
        (
            "train.learing_rate=1",
            r"Unknown option 'train\.learing_rate'. Did you mean 'train\.learning_rate'\?",
        ),
        ("train.steps=many", r"train\.steps must be a whole number, not 'many'"),
        (
            "train.precision=half",
            r"train\.precision must be one of float32, bfloat16, auto, not 'half'",
        ),
        ("data.bleu_tokenize=foo", "There is no tokenisation 'foo'"),
        (
            "model.num_heads=3",
            r"model\.d_model must be a multiple of model\.num_heads \(3\)",
        ),
        ("train.threads=100000", r"train\.threads must be at least 0 and below 1025, not 100000"),
        ("data.vocab_size=100", r"data\.vocab_size must be above \d+, not 100"),
        (
            "data.max_tokens=8",
            r"A sentence of \d+ tokens does not fit into a micro-batch of 8 tokens. Raise data\.max_tokens",
        ),
    ],
)
def test_bad_options_are_named(assignment, pattern, place, tmp_path, capsys):
    command = ["train", "--train", *files(place, "train"), "--out", tmp_path / "out", *ASSIGNMENTS]
    status, _, said = run(capsys, *command, assignment)
    check_sentence(status, said, pattern)


def test_a_folder_with_other_things_is_left_alone(place, tmp_path, capsys):
    out = tmp_path / "mine"
    (out / "data").mkdir(parents=True)
    for file in files(place, "train"):
        shutil.copy(file, out / "data")
    corpus = ["--train", out / "data/train.src", out / "data/train.tgt"]
    status, _, said = run(capsys, "train", *corpus, "--out", out, *ASSIGNMENTS)
    check_sentence(status, said, "mine exists and is not a training run of transduce")
    assert {path.name for path in (out / "data").iterdir()} == {"train.src", "train.tgt"}
    status, _, said = run(capsys, "train", *corpus, "--out", out / "data/train.src", *ASSIGNMENTS)
    check_sentence(status, said, r"train\.src exists and is not a training run of transduce")


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.model", "model.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_models_are_named(name, damage, model, tmp_path, capsys):
    out = tmp_path / "damaged"
    shutil.copytree(model, out, ignore=shutil.ignore_patterns("checkpoints", "data"))
    if damage == "gone":
        (out / name).unlink()
    else:
        (out / name).write_bytes((out / name).read_bytes()[:-3])
    (tmp_path / "input.txt").write_text("ka lo\n")
    for command in (["translate", out, "--input", tmp_path / "input.txt"], ["info", out]):
        status, output, said = run(capsys, *command)
        check_sentence(status, said, f"{re.escape(str(out / name))}")
        assert output == ""


def test_models_of_a_newer_format_are_refused(model, tmp_path, capsys):
    out = tmp_path / "newer"
    with write_folder(out) as aside:
        for name in read_manifest(model):
            shutil.copyfile(model / name, aside / name)
        text = (model / "config.toml").read_text()
        (aside / "config.toml").write_text(text.replace("format = 1", "format = 99"))
    for command in (["info", out], ["train", "--out", out]):
        status, _, said = run(capsys, *command)
        check_sentence(
            status,
            said,
            r"config\.toml has format 99, but this version reads format 1. Install a newer",
        )
    with pytest.raises(UserError, match="format 99"):
        read_recipe((out / "config.toml").read_text(), "config.toml")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            "d_ff=1000000000",
            r"d_ff 1000000000.* needs at least \d.* TB of memory, and .* are free\. Choose smaller",
        ),
        ("d_model=2000000000 d_ff=2000000000", r"needs at least \d.* EB of memory"),
        ("num_heads=2147483646 d_k=2147483646 d_v=2147483646", r"needs at least \d.* EB of memory"),
        ("kind=convolutional convolutions=1x99999999999999999999x3", r"or is too large"),
        ("block_size=1000000000", r"model\.block_size must be at least 1 and below 100"),
    ],
)
def test_a_model_that_no_memory_holds_is_refused(sizes, message, place, tmp_path, capsys):
    # Sharding saves no memory in a single process.
    shard = "train.shard=true"
    command = ["train", "--train", *files(place, "train"), "--out", tmp_path / "out", *ASSIGNMENTS]
    status, _, said = run(capsys, *command, shard, *(f"model.{size}" for size in sizes.split()))
    check_sentence(status, said, message)


def test_sentences_beyond_learned_positions_are_refused(place, tmp_path, capsys):
    learned = [*ASSIGNMENTS, "model.positions=learned", "train.steps=2"]
    command = ["train", "--train", *files(place, "train"), "--out", tmp_path / "out", *learned]
    valid = ["--valid", *files(place, "valid")]
    status, _, said = run(capsys, *command, "model.max_positions=6")
    check_sentence(
        status,
        said,
        r"train\.src:\d+ has \d+ tokens. Raise model\.max_positions \(6\), or lower data\.max_length to 5",
    )
    status, _, said = run(capsys, *command, *valid, "model.max_positions=6", "data.max_length=5")
    check_sentence(
        status,
        said,
        r"A pair of the validation set has \d+ tokens: '.+'. Raise model\.max_positions \(6\)",
    )
    assert run(capsys, *command, *valid, "model.max_positions=40")[0] == 0
    (tmp_path / "long.txt").write_text("ka lo\n" + "ka " * 50 + "\n")
    status, translated, said = run(
        capsys, "translate", tmp_path / "out", "--input", tmp_path / "long.txt"
    )
    assert status == 0 and translated.count("\n") == 2
    assert "1 text with a sentence that was too long and was translated in parts: line 2" in said


# Train until there is no room; then tell what was said, which checkpoints are there, and that each is whole.
FULL = """
import resource, sys
from pathlib import Path
from transduce import cli
from transduce.system.files import verify
out, limit, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    cli.main(command)
except SystemExit as end:
    print("status", end.code)
for path in sorted((out / "checkpoints").iterdir()):
    verify(path, hashes=True)
    print(path.name)
"""


def check_full(result: subprocess.CompletedProcess[str], out: Path, reason: str) -> list[str]:
    """The message, and that what was saved before is whole; returns the names of these checkpoints."""
    assert result.returncode == 0, result.stderr
    status, *names = result.stdout.splitlines()
    assert status == "status 2"
    last = "\n".join(result.stderr.splitlines()[-2:])
    found = re.fullmatch(
        rf"transduce: There is no room for {out}/checkpoints/(step-\d+): it needs at least ([\d,]+) bytes, "
        rf"{reason}\.",
        last,
    )
    assert found, result.stderr
    assert int(found[2].replace(",", "")) > 100_000
    assert names and found[1] not in names
    assert "Traceback" not in result.stderr
    return names


def command(place: Path, out: Path) -> list[str]:
    return [
        str(out),
        "0",
        "train",
        "--out",
        str(out),
        *ASSIGNMENTS,
        "model.d_model=32",
        "train.steps=100",
        "train.keep_last=50",
        "train.save_every=2",
        "--train",
        *files(place, "train"),
        "--valid",
        *files(place, "valid"),
    ]


def test_a_full_disk_keeps_older_checkpoints(place, tmp_path):
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=1500k none {disk}"
    try:
        subprocess.run([*namespace, "sh", "-c", mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system lets nobody mount a small file system")
    script = [sys.executable, "-c", FULL, *command(place, disk / "out")]
    result = subprocess.run(
        [*namespace, "sh", "-c", f'{mount} && exec "$@"', "sh", *script],
        capture_output=True,
        text=True,
    )
    room = r"[\d,]+ bytes are free \(.*(os error 28|No space left).*\)\.\nhint: Free more space, .*"
    names = check_full(result, disk / "out", room)
    assert len(names) >= 3


@pytest.mark.slow
def test_a_file_size_limit_is_a_full_disk_too(place, tmp_path):
    arguments = command(place, tmp_path / "out")
    # The weights fit below the limit; with the optimiser's state, twice as large, the first save ends.
    arguments[1] = "120000"
    result = subprocess.run(
        [sys.executable, "-c", FULL, *arguments], capture_output=True, text=True
    )
    limited = r"[\d,]+ bytes are free \(.*(os error 27|File too large).*\)\."
    room = rf"{limited}\nhint: Free more space, or raise your limit: .*"
    assert check_full(result, tmp_path / "out", room) == ["step-00000000"]
