"""Table 4: the trainings on parts of a treebank, and the trees that EVALB leaves out."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.pairs import Pair
from transduce.training.schedule import learning_rate
from transduce.wings.phrasebook.examples import examples
from transduce_lab.comparing.definition import read
from transduce_lab.comparing.outcomes import EvaluationText, Judge, Outcome
from transduce_lab.paper import table4
from transduce_lab.parsing.trees import parse_trees

PEAK = 0.7 / math.sqrt(256 * 1000)


def peak(options: dict) -> float:
    """The highest learning rate of a training."""
    config = configure(
        {name: value for name, value in options.items() if not name.startswith("data.")}
    )
    return max(
        learning_rate(step, config.train, config.model.d_model)
        for step in range(1, config.train.steps + 1)
    )


@pytest.fixture
def treebank(tmp_path: Path) -> dict[str, object]:
    """The options for a treebank of 40 trees, three of them for validation."""
    trees = [f"{example.tree}\n" for example in examples("train", 40)]
    (tmp_path / "some.mrg").write_text("".join(trees))
    (tmp_path / "few.mrg").write_text("".join(trees[:3]))
    return {
        "data.corpora": [{"files": [str(tmp_path / "some.mrg")]}],
        "data.valid": (str(tmp_path / "few.mrg"),),
    }


def planned(own: dict, tmp_path: Path) -> list:
    (_, table) = table4.comparisons(own, tmp_path / "out")  # without the phrasebook
    return [table.experiment(row, tmp_path) for row in table.rows]


def test_every_share_has_the_options_of_the_recipe_or_of_the_user(treebank, tmp_path, monkeypatch):
    monkeypatch.setattr(table4, "TRAIN_TREES", 40)
    runs = planned(treebank, tmp_path)
    assert len({run.options["data.corpora"][0]["files"][0] for run in runs}) == 4
    assert {run.options["model.positions"] for run in runs} == {"sinusoidal"}, "the paper's layers"
    assert {run.options["train.steps"] for run in runs} == {
        read_recipe(*read_text("craft-parsing"))["train.steps"]
    }
    own = planned({**treebank, "train.learning_rate": 0.1, "train.steps": 40}, tmp_path)
    assert {(run.options["train.learning_rate"], run.options["train.steps"]) for run in own} == {
        (0.1, 40)
    }


def test_a_tiny_treebank_has_no_two_equal_rows(treebank, tmp_path):
    (tmp_path / "some.mrg").write_text((tmp_path / "few.mrg").read_text())
    assert [run.name for run in planned(treebank, tmp_path)] == [
        "parsing/some-3",
        "parsing/some-2",
        "parsing/some-1",
    ]


@pytest.mark.parametrize("name", ["craft-parsing", "gum-parsing", "ptb-sample-parsing"])
def test_recipes_for_small_treebanks_share_a_peak_rate(name):
    assert peak(read_recipe(*read_text(name))) == pytest.approx(PEAK, rel=0.002)


GOLD = [
    "(S (NP (PRP It)) (VP (VBZ is) (NP (NN art))) (. .))",
    "(S (NP (PRP She)) (VP (VBZ sees) (NP (PRP him))) (. .))",
]
PARSES = [
    GOLD[0].replace("(VBZ is) (NP (NN art))", "(VBZ is) (NN art)"),  # lacks one of four brackets
    GOLD[1].replace("(PRP him)", "(. him)"),  # a word as punctuation: EVALB leaves the tree out
]


def test_parses_are_judged_over_all_trees():
    trees = [tree for tree, _ in parse_trees(GOLD)]
    pairs = [Pair(" ".join(tree.words()), "", 1) for tree in trees]
    text = EvaluationText(("gold.mrg",), pairs, Direction("en", "tree"), "none", trees)
    row = Judge(text, per_word=False).row(
        [Outcome([-3.0, -2.0], [4, 4], PARSES), Outcome([-3.0, -2.0], [4, 4], GOLD)]
    )
    assert row.scores["F1"] == pytest.approx([100 * 2 * 7 / (7 + 8), 100.0])
    assert row.length_ratio == pytest.approx((7 / 8 + 1) / 2)
    assert row.scores["perplexity"] == pytest.approx([5 / 8] * 2), "the logarithm"


def test_the_trees_that_evalb_leaves_out_are_in_the_table(tmp_path, monkeypatch):
    trees = [tree for tree, _ in parse_trees(GOLD)]
    standings = SimpleNamespace(text=SimpleNamespace(trees=trees))
    monkeypatch.setattr(table4, "outcome", lambda *_: Outcome([], [], PARSES))
    runs = [SimpleNamespace(folder=tmp_path)]
    columns = table4._evalb(SimpleNamespace(runs=runs), standings)
    assert columns == [f"{100 * 2 * 3 / 7:.2f}", f"{100 * 2 * 3 / 7:.2f}", "0.00", "1 of 2"]
    assert table4._evalb(SimpleNamespace(runs=[]), standings) == [""] * 4


def test_parsers_have_no_bleu(tmp_path):
    (tmp_path / "t.toml").write_text("judge = 'BLEU'\n[rows]\na = ''\nb = 'train.warmup=10'\n")
    with pytest.raises(UserError, match="judge must be one of perplexity, F1"):
        read(tmp_path / "t.toml", {"data.test": ("gold.mrg",)})
    assert read(tmp_path / "t.toml", {"data.test": ("a.tsv",)}).judge == "BLEU"
