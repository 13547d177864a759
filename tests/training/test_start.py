"""The options that a training chooses at its start, and what an interrupted start leaves, by hand."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.settings import CORPUS, FROM_SIZES, MACHINE, MODEL, TRIAL, Settings
from transduce.preparation.prepared import Facts
from transduce.system.errors import UserError
from transduce.training.autobatch import Trial, has_fast_bfloat16
from transduce.training.distributed import ALONE
from transduce.training.start import (
    clear,
    leftovers,
    with_known_languages,
    with_length,
    with_machine,
    with_sizes,
)

TRIAL_OF_100 = Trial(3, 100, 0.0, 0.1)  # 100 updates of a tenth of a second in an epoch


def corpus(pairs: int = 5_000, held_out: int = 250) -> Any:
    """A prepared corpus, as far as options depend on it."""
    facts = SimpleNamespace(pairs=pairs, held_out=held_out)
    return SimpleNamespace(facts=facts, mixture=SimpleNamespace(pairs_per_epoch=pairs))


def lengths(
    options: dict[str, Any], *, held_out: int = 250, fine_tuning: bool = False, **trial: Any
) -> dict[str, Any]:
    """The options of training on 5,000 pairs that are chosen, by their names without train."""
    prepared = corpus(held_out=held_out)
    settings = with_sizes(Settings.of(options), prepared)
    made = TRIAL_OF_100._replace(**trial)
    found = with_length(settings, prepared, made, fine_tuning=fine_tuning)
    return {
        name.removeprefix("train."): value
        for name, value in found.items()
        if name.startswith("train.") and name not in options
    }


PLANNED = {
    "steps": 5_000,
    "warmup": 400,
    "cooldown": 1_666,
    "learning_rate": 0.48,  # 1.5e-3 at its peak, with d_model 256: 1.5e-3 * sqrt(256 * 400)
    "patience": 0,
    "ema": 0.998,
    "select_by": "chrf",
    "label_smoothing": 0.3,
    "word_dropout": 0.1,
    "accumulate": 3,
    "save_every": 100,
    "validate_every": 100,
}
FINE_TUNED = {
    name: value
    for name, value in PLANNED.items()
    if name not in ("label_smoothing", "word_dropout")
} | {"steps": 1_500, "warmup": 375, "cooldown": 500, "learning_rate": 0.155}
UNPLANNED = {
    name: value
    for name, value in (PLANNED | {"cooldown": 0, "patience": 10}).items()
    if name not in ("ema", "select_by", "label_smoothing", "word_dropout")
}


@pytest.mark.parametrize(
    ("options", "more", "expected"),
    [
        ({}, {}, PLANNED),
        # A third of the rate: 0.5e-3 * sqrt(256 * 400).
        (
            {},
            {"fine_tuning": True},
            FINE_TUNED,
        ),
        # One pair of 20 is validated: 4 epochs of 5,000 pairs for 1,000.
        (
            {"train.max_forgotten": 0.5},
            {"fine_tuning": True},
            FINE_TUNED | {"patience": 7},  # half of 15 validations
        ),
        ({}, {"held_out": 1_000}, PLANNED | {"validate_every": 400}),
        ({"train.learning_rate": 1.0}, {"held_out": 1_000}, UNPLANNED),
        ({"train.learning_rate": 1.0, "train.steps": 40}, {}, UNPLANNED),
        ({"data.symbols": True, "data.joint": False}, {"held_out": 1_000}, UNPLANNED),
        # 1,500 updates: 1,000 pairs are validated after 150.
        (
            {"train.steps": 1_500},
            {"held_out": 1_000},
            PLANNED
            | {"warmup": 375, "cooldown": 500, "validate_every": 150}
            | {"learning_rate": 0.465},
        ),
        # At most 200 updates, or a fifth of the training.
        (
            {"train.steps": 500},
            {"updates_per_epoch": 300},
            PLANNED
            | {"warmup": 125, "cooldown": 166, "save_every": 200, "validate_every": 200}
            | {"learning_rate": 0.268},
        ),
        (
            {"train.steps": 2_000},
            {"updates_per_epoch": 900},
            PLANNED | {"cooldown": 666, "save_every": 400, "validate_every": 400},
        ),
        (
            {"train.save_every": 7, "train.validate_every": 9, "train.warmup": 100},
            {},
            PLANNED | {"learning_rate": 0.24},
        ),
        # 600 updates in a minute, of which 85 % are planned.
        (
            {"train.minutes": 1.0},
            {},
            PLANNED | {"steps": 510, "warmup": 127, "cooldown": 170, "learning_rate": 0.27},
        ),
        # Minimum-risk training alone: it has 3 validations, and a full rate.
        (
            {"train.steps": 90, "train.risk_steps": 90},
            {"fine_tuning": True},
            UNPLANNED
            | {"warmup": 22, "learning_rate": 0.113, "save_every": 30, "validate_every": 30},
        ),
        # With a new language, it is not alone.
        (
            {"train.steps": 90, "train.risk_steps": 90},
            {},
            PLANNED | {"warmup": 22, "cooldown": 30, "learning_rate": 0.113},
        ),
        (
            {"train.steps": 91, "train.risk_steps": 90, "data.symbols": True, "data.joint": False},
            {"fine_tuning": True},
            UNPLANNED | {"warmup": 1, "learning_rate": 0.008, "patience": 0},
        ),
        # The first 600 of 1,000 updates have a warm-up and a cool-down.
        (
            {"train.steps": 1_000, "train.risk_steps": 400},
            {},
            PLANNED | {"warmup": 150, "cooldown": 200, "learning_rate": 0.294},
        ),
        (
            {
                "train.steps": 1_000,
                "train.risk_steps": 1_001,
                "data.symbols": True,
                "data.joint": False,
            },
            {},
            UNPLANNED | {"warmup": 250, "learning_rate": 0.379},
        ),
    ],
)
def test_the_length_of_a_training_follows_from_its_corpus(options, more, expected):
    known = {name.removeprefix("train.") for name in options}
    assert lengths(options, **more) == {
        name: value for name, value in expected.items() if name not in known
    }


def test_chosen_options_have_their_sources():
    found = with_length(Settings.of({}), corpus(), TRIAL_OF_100, fine_tuning=False)
    sources = {name: found.source(f"train.{name}") for name in ("accumulate", "steps", "patience")}
    assert sources == {"accumulate": TRIAL, "steps": FROM_SIZES, "patience": FROM_SIZES}
    sized = with_sizes(Settings.of({"model.activation": "swiglu", "model.d_model": 8}), corpus())
    assert (sized["model.d_ff"], sized["model.d_model"]) == (683, 8)
    assert sized.source("model.d_ff") == FROM_SIZES


def test_the_machine_chooses_the_threads_and_the_precision():
    cpu, several = torch.device("cpu"), ALONE._replace(world=8, local_world=2)
    fast = "bfloat16" if has_fast_bfloat16(cpu) else "float32"
    slow = "float32" if fast == "bfloat16" else "bfloat16"
    found = with_machine(Settings.of({}), 3, cpu, several)
    assert (found["train.threads"], found["train.precision"]) == (6, fast)
    assert found.source("train.threads") == MACHINE
    given = Settings.of({"train.threads": 5, "train.precision": slow})
    found = with_machine(given, 3, cpu, several)
    assert (found["train.threads"], found["train.precision"]) == (5, slow)


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


STARTED = (
    "checkpoints/step-00000000/state.json",
    "checkpoints/.hidden",
    "sources.json",
    "run.json",
    "tokenizer.model",
    "tokenizer.normalization.json",
    "data/preparation.json",
    "back-translation/pairs.jsonl",
    ".lock",
)


def test_only_what_an_interrupted_start_left_is_deleted(tmp_path):
    out = tmp_path / "out"
    assert leftovers(out) == set()
    clear(out)
    assert not out.exists()
    write(out, *STARTED)
    (out / ".out.aside-1").mkdir()
    assert leftovers(out) == {name.partition("/")[0] for name in STARTED} - {".lock"}
    clear(out)
    assert {path.name for path in out.iterdir()} == {"data", "back-translation", ".lock"}
    assert leftovers(out) == {"data", "back-translation"}


@pytest.mark.parametrize(
    "names",
    [
        (*STARTED, "notes.txt"),
        (*STARTED, "checkpoints/step-00000001/state.json"),
        (*STARTED, "config.toml"),
        ("run.json",),
        ("data/train.tsv",),
    ],
)
def test_other_files_are_never_deleted(names, tmp_path):
    write(tmp_path / "out", *names)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="exists and is not a training run") as refused:
        clear(tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before
    assert refused.value.hint and refused.value.hint.options == ("out",)
    with pytest.raises(UserError, match="exists and is not a training run"):
        leftovers(tmp_path / "out" / names[0])


def test_the_languages_of_a_prepared_corpus_and_of_a_model_are_known(tmp_path):
    facts = Facts("en", "de", {"data.directions": ["en-de"]}, [], [], [], 1, 0, 0, {}, 1, 1, 1.0)
    write(tmp_path, "data/preparation.json")
    (tmp_path / "data/preparation.json").write_text(json.dumps(asdict(facts)))
    (tmp_path / "model").mkdir()
    languages = {"data.source": "fr", "data.target": "it", "data.directions": ("fr-it", "it-fr")}
    model_folder.write_config(tmp_path / "model", configure(languages))
    of_text = Settings.of({"data.corpora": [{"files": ["a", "b"]}]})
    of_corpus = Settings.of({"data.corpora": [{"files": [str(tmp_path / "data")]}]})

    def known(settings: Settings, init: str = "") -> tuple[object, ...]:
        found = with_known_languages(settings, tmp_path / init if init else None)
        names = ("data.source", "data.target", "data.directions")
        return (*(found.get(name) for name in names), found.source("data.source"))

    assert known(of_text) == (None, None, None, "default")
    assert known(of_corpus) == ("en", "de", ["en-de"], CORPUS)
    assert known(of_text, "model") == (*languages.values(), MODEL)
    assert known(of_corpus, "model") == ("en", "de", ["en-de"], CORPUS)
    assert known(of_text, "gone") == (None, None, None, "default")
    chosen = of_corpus.over("command line", {"data.source": "ru"})
    assert known(chosen)[0] == "ru"
