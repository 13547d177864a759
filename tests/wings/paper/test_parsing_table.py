"""Table 4: the trainings on parts of a treebank, and the trees that EVALB leaves out."""

import math
from pathlib import Path

import pytest

from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.training.update import learning_rate
from transduce.wings.paper import table4
from transduce.wings.phrasebook.examples import examples

PEAK = 0.7 / math.sqrt(256 * 1000)


def peak(options: dict) -> float:
    """The highest learning rate of a training."""
    config = configure({name: value for name, value in options.items() if not name.startswith("data.")})
    return max(learning_rate(step, config.train, config.model.d_model) for step in range(1, config.train.steps + 1))


@pytest.fixture
def treebank(tmp_path: Path) -> dict[str, object]:
    """The options for a treebank of 40 trees, three of them for validation."""
    trees = [f"{example.tree}\n" for example in examples("train", 40)]
    (tmp_path / "some.mrg").write_text("".join(trees))
    (tmp_path / "few.mrg").write_text("".join(trees[:3]))
    return {"data.corpora": [{"files": [str(tmp_path / "some.mrg")]}], "data.valid": (str(tmp_path / "few.mrg"),)}


def planned(own: dict, tmp_path: Path) -> list:
    return table4.experiments(own, tmp_path / "out")[1:]  # without the phrasebook


def test_every_share_has_the_options_of_the_recipe_or_of_the_user(treebank, tmp_path, monkeypatch):
    monkeypatch.setattr(table4, "TRAIN_TREES", 40)
    runs = planned(treebank, tmp_path)
    assert len({run.options["data.corpora"][0]["files"][0] for run in runs}) == 4
    assert {run.options["model.positions"] for run in runs} == {"sinusoidal"}, "the paper's layers"
    assert {run.options["train.steps"] for run in runs} == {read_recipe(*read_text("craft-parsing"))["train.steps"]}
    own = planned({**treebank, "train.learning_rate": 0.1, "train.steps": 40}, tmp_path)
    assert {(run.options["train.learning_rate"], run.options["train.steps"]) for run in own} == {(0.1, 40)}


def test_a_tiny_treebank_has_no_two_equal_rows(treebank, tmp_path):
    (tmp_path / "some.mrg").write_text((tmp_path / "few.mrg").read_text())
    assert [run.name for run in planned(treebank, tmp_path)] == ["parsing/some-3", "parsing/some-2", "parsing/some-1"]


@pytest.mark.parametrize("name", ["craft-parsing", "gum-parsing", "ptb-sample-parsing"])
def test_recipes_for_small_treebanks_share_a_peak_rate(name):
    assert peak(read_recipe(*read_text(name))) == pytest.approx(PEAK, rel=0.002)


def test_the_trees_that_evalb_leaves_out_are_in_the_table(treebank, tmp_path, monkeypatch):
    monkeypatch.setattr(table4, "TRAIN_TREES", 40)
    (run, *_) = planned(treebank, tmp_path)
    scores = {"trees": 2780, "left_out": 1804, "f1_agreed": 19.95, "f1": 38.66}
    scores |= {"f1_short": 39.1, "complete": 33.0, "changed": 0.843}
    monkeypatch.setattr(table4, "results", lambda *_: [type("Result", (), {"folder": tmp_path})])
    monkeypatch.setattr(table4, "brackets", lambda *_: scores)
    table = table4.table([run], tmp_path)
    row = dict(zip(table.headings, table.rows[-1], strict=True))
    assert row["F1, all trees"] == "19.95" and row["F1 by EVALB"] == "38.66"
    assert row["left out by EVALB"] == "1,804 of 2,780" and row["changed"] == "84.3 %"
