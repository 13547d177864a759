"""The demo: its length for the pace of the machine, and what it leaves."""

import math
from pathlib import Path

import pytest

from command_line import run
from transduce import model_folder
from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.config.settings import COMMAND_LINE, RECIPE
from transduce.training.schedule import learning_rate
from transduce.wings.demo.command import MIN_UPDATES, PACE, TRAINING_SECONDS, fitted
from transduce.wings.phrasebook.examples import examples

OPTIONS = read_recipe(*read_text("phrasebook"))
LENGTH = {name: OPTIONS[name] for name in PACE}
STEPS = LENGTH["train.steps"]
TINY = [
    "model.d_model=16",
    "model.d_ff=16",
    "model.num_heads=2",
    "train.threads=1",
    "decode.beam_size=1",
]
TINY += ["model.num_encoder_layers=1", "model.num_decoder_layers=1", "decode.max_extra_tokens=2"]


def test_a_fast_machine_makes_the_updates_of_the_recipe() -> None:
    assert fitted(LENGTH, 1e-4) == fitted(LENGTH, TRAINING_SECONDS / STEPS) == LENGTH


def test_a_slower_machine_makes_as_many_updates_as_fit(capsys: pytest.CaptureFixture[str]) -> None:
    for updates in range(MIN_UPDATES, STEPS, 50):
        assert fitted(LENGTH, TRAINING_SECONDS / (updates + 0.2))["train.steps"] == updates
        assert f"so the demo makes {updates:,} updates" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", [1.0, 1e6, math.inf])
def test_slow_machines_still_make_the_minimum_of_updates(seconds: float) -> None:
    assert fitted(LENGTH, seconds)["train.steps"] == MIN_UPDATES


def test_a_shorter_training_has_the_same_schedule_in_proportion() -> None:
    short, d_model = fitted(LENGTH, math.inf), OPTIONS["model.d_model"]
    share = MIN_UPDATES / STEPS
    for name in set(PACE) - {"train.learning_rate"}:
        assert short[name] == pytest.approx(LENGTH[name] * share, abs=0.5)
    for at in (0.1, 0.2, 0.4, 0.9):
        rates = [learning_rate(round(at * options["train.steps"]), configure(options).train, d_model)
                 for options in (LENGTH, short)]  # fmt: skip
        assert rates[0] == pytest.approx(rates[1], rel=0.02)


@pytest.mark.parametrize("option", ["data.test=", "data.directions=en-de"])
def test_the_text_of_the_demo_is_its_own(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, said = run(capsys, "demo", "--out", tmp_path / "demo", option)
    assert (
        status == 2
        and "Leave out data.test and data.directions" in said
        and not (tmp_path / "demo").exists()
    )


@pytest.mark.slow
def test_the_demo_leaves_text_a_model_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With updates that the user chose, which stay as they are."""
    status, printed, said = run(capsys, "demo", "--out", tmp_path / "demo", "train.steps=1", *TINY)
    assert status == 0, said
    assert "on 500 sentences" in printed and (tmp_path / "demo/report.html").is_file()
    for part in ("train", "valid", "test"):
        for language, code in (("english", "en"), ("german", "de")):
            expected = "".join(f"{getattr(example, language)}\n" for example in examples(part))
            assert (tmp_path / f"demo/text/{part}.{code}").read_text(encoding="utf-8") == expected
    config = model_folder.read_config(tmp_path / "demo/model")
    assert (config.train.steps, config.train.warmup) == (1, LENGTH["train.warmup"])
    assert config.sources and config.sources["train.steps"] == COMMAND_LINE
    assert config.sources["train.warmup"] == RECIPE
