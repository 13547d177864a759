"""`transduce compare`: tables of trainings that add up, and their verdicts."""

import itertools
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import run
from corpora import spelt, write_texts
from transduce import model_folder
from transduce.evaluation.scores import score
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.training import run_card
from transduce.training.run_card import read_run_card
from transduce_lab.comparing import outcomes, report, runs
from transduce_lab.comparing.command import train_rows
from transduce_lab.comparing.definition import TUNING_SEED, Definition, read
from transduce_lab.comparing.operations import updates_for
from transduce_lab.comparing.outcomes import EvaluationText, Judge, Outcome
from transduce_lab.comparing.runs import Experiment
from transduce_lab.comparing.standings import Standings
from transduce_lab.comparing.statistics import Difference

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")

ROOT = Path(__file__).parents[3]
TABLES = sorted((ROOT / "benchmarks/tables").glob("*.toml"))
GUIDE = ROOT / "docs/guides/compare.md"
COUNTS = {"train": 60, "valid": 10, "test": 12}
TRAINED = {
    "data.vocab_size": 300,
    "data.max_tokens": 256,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 16,
    "model.num_heads": 2,
    "train.threads": 1,
    "train.precision": "float32",
    "decode.beam_size": 1,
    "decode.max_extra_tokens": 2,
}
ROWS = '[rows]\nbase = ""\nslow = "train.learning_rate=0.001"\n'


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("texts")
    return {
        name: write_texts(folder, name, count, seed)
        for seed, (name, count) in enumerate(COUNTS.items())
    }


@pytest.fixture(scope="module")
def given(files) -> dict[str, Any]:
    """Options that name a small corpus, and make every run a matter of a second."""
    named = {"data.valid": files["valid"], "data.test": files["test"]}
    return {"data.corpora": [{"files": list(files["train"])}], **named, **TRAINED}


def all_runs(rows: list[Experiment], seeds: list[int]) -> list[runs.Run]:
    return [(row, seed) for seed in seeds for row in rows]


def definition(tmp_path: Path, text: str, own: dict[str, Any]) -> Definition:
    path = tmp_path / "table.toml"
    path.write_text(text)
    return read(path, own)


def command(
    tmp_path: Path, files: dict[str, tuple[str, str]], text: str, *more: object
) -> list[object]:
    (tmp_path / "table.toml").write_text(text)
    named = [argument for name, pair in files.items() for argument in (f"--{name}", *pair)]
    return [
        "compare",
        tmp_path / "table.toml",
        "--out",
        tmp_path / "out",
        *named,
        *spelt(TRAINED),
        *more,
    ]


# -- the whole command ---------------------------------------------------------------------------------------


def test_rows_are_trained_tested_and_shown_again(files, tmp_path, capsys):
    text = (
        'title = "Rates"\nseeds = 2\noptions.train.steps = 6\n'
        + ROWS
        + 'both = { ensemble = ["base", "slow"] }\n'
    )
    asked = command(tmp_path, files, text)
    status, printed, said = run(capsys, *asked, "--budget", "5")
    assert status == 0 and "0 of 4 runs are finished" in said, said
    facts = json.loads((tmp_path / "out/table.json").read_text())
    assert [row["row"] for row in facts] == ["base", "slow", "both"]
    assert [len(row["scores"]["BLEU"]) for row in facts] == [2, 2, 2]
    assert facts[1]["differences"]["log_perplexity"]["value"] > 0, "it hardly learns"
    page = (tmp_path / "out/table.md").read_text()
    assert page.startswith("# Rates") and "| slow | 2 |" in page and "seed-2" in page
    assert all(
        (tmp_path / "out" / name).stat().st_size > 1000
        for name in ("table.png", "table-curves.png")
    )
    assert run(capsys, *asked)[:2] == (0, printed), "from what is there, without training"
    assert "Translating" not in run(capsys, *asked)[2]
    other = command(
        tmp_path,
        files,
        'seeds = 2\noptions.train.steps = 6\n[rows]\none = "model.dropout=0.1"\ntwo = "model.dropout=0.2"\n',
    )
    status, _, said = run(capsys, *other, "--budget", "5")
    assert (
        status == 2
        and "out holds another table" in said
        and json.loads((tmp_path / "out/table.json").read_text())
    )
    assert (tmp_path / "out/table.md").read_text() == page and not (tmp_path / "out/one").exists()


def test_a_prepared_corpus_has_its_validation_text_and_languages(
    files, tmp_path, capsys, monkeypatch
):
    asked_for, metrics = list[tuple[str, str]](), outcomes.metrics
    monkeypatch.setattr(
        outcomes, "metrics", lambda *given: asked_for.append(given) or metrics(*given)
    )
    prepared, test = tmp_path / "prepared", files["test"]
    texts = "--from", "en", "--to", "zh", "--train", *files["train"], "--valid", *files["valid"]
    assert run(capsys, "prepare", *texts, "--out", prepared, "data.vocab_size=300")[0] == 0
    (tmp_path / "t.toml").write_text("seeds = 1\noptions.train.steps = 2\n" + ROWS)
    options = {name: value for name, value in TRAINED.items() if not name.startswith("data.")}
    asked = (
        "compare",
        tmp_path / "t.toml",
        "--out",
        tmp_path / "out",
        "--train",
        prepared,
        "--test",
        *test,
    )
    status, _, said = run(capsys, *asked, "--budget", "5", *spelt(options))
    assert status == 0 and len(list(tmp_path.glob("out/*/seed-1/manifest.json"))) == 2, said
    assert asked_for == [("auto", "zh")], "the metrics for the language of the prepared corpus"


def test_a_second_stage_continues_each_model_of_a_row(files, tmp_path, capsys):
    stage = 'more = { init = "base", options = "train.steps=3 train.learning_rate=0.01 train.warmup=1" }\n'
    asked = command(tmp_path, files, "seeds = 2\noptions.train.steps = 4\n" + ROWS + stage)
    status, _, said = run(capsys, *asked, "--budget", "5")
    assert status == 0 and "0 of 6 runs are finished" in said, said
    rows = json.loads((tmp_path / "out/table.json").read_text())
    assert rows[2]["init"] == "base" and len(rows[2]["runs"]) == 2
    for seed in (1, 2):
        card = read_run_card(tmp_path / f"out/more/seed-{seed}")
        assert card and str(tmp_path / f"out/base/seed-{seed}") in card.inputs["init"]
    # The guide says that a finished table needs none of these.
    for large in tmp_path.glob("out/*/seed-*/*"):
        if large.name in ("checkpoints", "data"):
            shutil.rmtree(large)
        elif large.suffix in (".safetensors", ".model"):
            large.unlink()
    assert run(capsys, *asked, "--budget", "0")[0] == 0
    shutil.rmtree(tmp_path / "out/base/seed-1")
    for budget in ("5", "0"):
        status, _, said = run(capsys, *asked, "--budget", budget)
        assert (
            status == 2
            and f"{tmp_path}/out/more/seed-1 continues the model {tmp_path}/out/base/seed-1" in said
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rows]\nbase = ''\n", "two or more rows"),
        ("rows = 3\n", "rows has the wrong type"),
        ("[rows\n", "not valid TOML"),
        ("o = " + "{o= " * 2000, "not valid TOML"),
        ("[options." + "a." * 500 + "b]", "more than 100 dots"),
        ("colour = 1\n" + ROWS, "there is no key 'colour'"),
        (ROWS + "other = 'model.dropuot=0'\n", "model.dropuot"),
        (ROWS + "other = 'train.learning_rate=0.001'\n", "the rows 'slow' and 'other' are equal"),
        (
            ROWS + "other = 'train.warmup=9'\n[options.train]\nwarmup = 9\n",
            "the rows 'base' and 'other' are equal",
        ),
        (ROWS + "other = 3\n", "the row 'other' must be options"),
        (ROWS + "other = { ensemble = ['nobody'] }\n", "names 'nobody'"),
        (ROWS + "other = { ensemble = ['slow', 'slow'] }\n", "names a row twice"),
        (ROWS + "other = { ensemble = [] }\n", "the row 'other' must be options"),
        (ROWS + "other = { init = 'nobody', options = 'train.steps=3' }\n", "continues 'nobody'"),
        (ROWS + "other = { init = 'other', options = 'train.steps=3' }\n", "continues 'other'"),
        (ROWS + "other = { init = 'base' }\n", "the row 'other' must be options"),
        (ROWS + "'slow!' = 'train.warmup=7'\n", "differ only in punctuation"),
        ("seeds = 'many'\n" + ROWS, "seeds has the wrong type"),
        ("grid = 'x'\n" + ROWS, "grid has the wrong type"),
        (ROWS + "'table.md' = 'train.warmup=7'\n", "a row can't be named"),
        (ROWS + f"'{'n' * 200}' = 'train.warmup=7'\n", "a row can't be named"),
        (
            ROWS + "other = 'data.joint=false'\nboth = { ensemble = ['base', 'other'] }\n",
            "different vocabularies",
        ),
        (
            ROWS + "[grid]\n'data.joint' = [true, false]\n",
            "perplexity does not compare vocabularies",
        ),
        ("base = 'nobody'\n" + ROWS, "the base 'nobody'"),
        ("judge = 'beauty'\n" + ROWS, "judge must be one of"),
        ("seeds = 0\n" + ROWS, "seeds must be"),
        ("seeds = true\n" + ROWS, "seeds has the wrong type"),
        (ROWS + "other = 'train.warmup=7 hello'\n", "table.toml, row 'other': "),
        (ROWS + f"'{'名' * 60}' = 'train.warmup=7'\n", "a row can't be named"),
        ("notes = 5\n" + ROWS, "notes has the wrong type"),
        (ROWS + "[grid]\n'train.learning_rate' = [1, 2]\n", "which the grid tries"),
        (ROWS + "[grid]\n'train.warmup' = [1]\n", "with different values"),
        (ROWS + "[grid]\n'train.warmup' = [1, 1]\n", "with different values"),
        (
            ROWS + "[grid]\n'model.expert_layers' = [[1], ['x']]\n",
            "must be a list, not",
        ),
        (ROWS + "other = 'train.seed=4'\n", "Leave out train.seed"),
        (ROWS + "[options.model]\nheight = 1\n", "height"),
        (ROWS + "other = 'model.num_heads=5'\n", "num_heads"),
    ],
)
def test_a_bad_table_is_refused_before_anything_is_trained(files, tmp_path, capsys, text, message):
    status, _, said = run(capsys, *command(tmp_path, files, text, "--budget", "5"))
    assert status == 2 and message in said and said.count("\n") == 1, said
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_each_table_of_the_benchmarks_can_be_read(path):
    assert len(read(path, {}).trained) > 1


def test_the_tables_of_the_guide_can_be_read(tmp_path):
    tables = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert tables and all(definition(tmp_path, text, {}).trained for text in tables)


@pytest.mark.parametrize(("name", "total"), [("modern", 1.5e13), ("separable", 1e14)])
def test_rows_of_equal_cost_have_their_number_of_updates(name, total):
    (path,) = [path for path in TABLES if path.stem == name]
    table = read(path, {})
    for row in table.rows:
        options = {**table.options, **row.options}
        assert options["train.steps"] == updates_for(total, options)


def test_missing_arguments_are_named(files, tmp_path, capsys):
    (tmp_path / "table.toml").write_text(ROWS)
    asked = ["compare", tmp_path / "table.toml", "--out", tmp_path / "out"]
    assert (
        "training, validation and test files. Name these files (--train)" in run(capsys, *asked)[2]
    )
    assert (
        "table.toml cannot be read"
        in run(capsys, "compare", tmp_path / "no/table.toml", "--out", tmp_path)[2]
    )
    assert run(capsys, *command(tmp_path, files, ROWS, "train.learning_rate=1"))[0] == 2
    assert run(capsys, *command(tmp_path, files, ROWS, "--budget", "-1"))[0] == 2


def test_a_grid_chooses_by_no_validation_text_that_is_not_there(files, tmp_path, capsys):
    prepared = tmp_path / "prepared"
    asked = "--train", *files["train"], "--out", prepared, "data.vocab_size=300", "data.holdout=0"
    assert run(capsys, "prepare", *asked)[0] == 0
    named = f"[[options.data.corpora]]\nfiles = ['{prepared}']\n"  # in the table, not with --train
    (tmp_path / "table.toml").write_text("[grid]\n'train.warmup' = [1, 2]\n" + ROWS + named)
    asked = "compare", tmp_path / "table.toml", "--out", tmp_path / "out", "--test", *files["test"]
    status, _, said = run(capsys, *asked)
    assert (
        status == 2
        and "a grid needs a validation set, and" in said
        and not (tmp_path / "out").exists()
    )


def test_corpora_names_in_other_scripts_and_strings_in_a_grid(files, tmp_path, capsys):
    text = f"""
        notes = "One sentence."
        seeds = 1
        options.train.steps = 3
        [options.data]
        corpora = [{{ files = {list(files["train"])} }}]
        valid = {list(files["valid"])}
        test = {list(files["test"])}
        [grid]
        "model.norm" = ["post", "pre"]
        [rows]
        "базовый" = ""
        "без" = "train.learning_rate=2"
    """
    (tmp_path / "table.toml").write_text(text, encoding="utf-8")
    asked = [
        "compare",
        tmp_path / "table.toml",
        "--out",
        tmp_path / "out",
        *spelt(TRAINED),
        "--budget",
        "5",
    ]
    status, printed, said = run(capsys, *asked)
    assert status == 0 and "One sentence." in printed and ("post" in printed or "pre" in printed), (
        said
    )
    assert "only 12 sentences" in printed
    assert (tmp_path / "out/базовый/seed-1/manifest.json").exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1, "+10.5 % [-100.0, > 10^6]"), (-800.0, "-100.0 %"), (5000.0, "> 10^6 %")],
)
def test_large_differences_fit_the_table(value, shown):
    assert report._difference("perplexity", Difference(value, 90.0, 3.0, 0.5)).startswith(shown)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_row_that_diverges_is_not_tested(files, tmp_path, capsys):
    rows = "[rows]\nbase = ''\nhuge = 'train.learning_rate=3000 train.warmup=1'\n"
    asked = command(tmp_path, files, "seeds = 2\noptions.train.steps = 12\n" + rows, "--budget", 9)
    status, shown, said = run(capsys, *asked)
    assert status == 0 and "> 10^6" in shown, said
    assert (tmp_path / "out/table.md").read_text().count("| huge | 2 | > 10^6 |  |") == 1
    base, huge = json.loads((tmp_path / "out/table.json").read_text())
    assert huge["verdict"] == "diverged" and not huge["differences"] and huge["runs"][0]["diverged"]
    assert len(base["runs"]) == len(huge["runs"]) == 2
    assert not base["runs"][0]["diverged"] and not base["verdict"]
    assert "The training diverged: train again with a lower train.learning_rate." in said


def test_a_model_without_numbers_is_not_asked_for_translations(files, tmp_path, capsys):
    rows = "[rows]\nbase = ''\nbad = 'train.learning_rate=1e30 train.warmup=2'\nboth = { ensemble = ['base', 'bad'] }\n"
    status, _, said = run(
        capsys,
        *command(tmp_path, files, "seeds = 1\noptions.train.steps = 4\n" + rows, "--budget", 9),
    )
    assert status == 0 and (tmp_path / "out/table.md").exists(), said
    base, bad, both = json.loads((tmp_path / "out/table.json").read_text())
    assert (
        bad["verdict"] == "diverged"
        and not bad["differences"]
        and not both["differences"]
        and not base["verdict"]
    )
    assert "train.learning_rate" in said


def test_an_ensemble_of_rows_pairs_their_seeds(given, tmp_path):
    table = definition(tmp_path, ROWS, given)
    standings = train_rows(table, tmp_path, 0)
    made = {seed: runs.Result(Path(), "", "", seed, 1.0, 1.0, 1, 1) for seed in (1, 2, 3)}
    groups = standings._groups([[made[1], made[2]], [made[2], made[3]]])
    assert [[run.seed for run in group] for group in groups] == [[2, 2]]


# -- the plan ------------------------------------------------------------------------------------------------


def test_the_grid_is_tried_for_every_row_and_chooses_on_the_validation_text(given, tmp_path):
    text = "seeds = 1\noptions.train.steps = 6\n[grid]\n'train.warmup' = [1, 1000]\n" + ROWS
    table = definition(tmp_path, text, given)
    planned = list(itertools.islice(table.planned_runs(tmp_path), 4))
    assert [seed for _, seed in planned] == [TUNING_SEED] * 4 and len(
        {each.name for each, _ in planned}
    ) == 4
    assert TUNING_SEED < 1, "no row has this seed"
    assert runs.carry_out(table.planned_runs(tmp_path), tmp_path, math.inf)
    for row in table.trained:
        tried = table.costs(row, tmp_path)
        chosen = table.experiment(row, tmp_path)
        assert chosen and chosen.options["train.warmup"] == (1, 1000)[tried.index(min(tried))]
        (trained,) = runs.results(chosen, tmp_path)
        assert trained.seed == 1, "the run of the grid is not counted"


def test_a_point_of_a_grid_that_fails_is_not_chosen(given, tmp_path, capfd):
    rows = "[rows]\nbase = ''\nother = 'train.warmup=9'\n"
    table = definition(
        tmp_path,
        "seeds = 1\noptions.train.steps = 12\n[grid]\n'train.learning_rate' = [1e30, 1]\n" + rows,
        given,
    )
    standings = Standings(table, tmp_path, EvaluationText((), [], Direction("en", "de"), "13a"))
    assert runs.carry_out(table.planned_runs(tmp_path), tmp_path, math.inf)
    for row in table.trained:
        failed, tried = table.costs(row, tmp_path)
        chosen = table.experiment(row, tmp_path)
        assert tried < failed == math.inf and chosen and chosen.options["train.learning_rate"] == 1
    first, second = report.failure_notes(standings)
    assert (
        "base/tuning/learning_rate=1e30/seed-0 diverged. The loss " in first
        and "other/tun" in second
    )
    (tmp_path / "other/tuning/learning_rate=1e30/seed-0/.failed").unlink()
    (unfinished, _) = report.failure_notes(standings)
    assert unfinished == "Not all values of the grid are tried yet for 'other'."
    (tmp_path / "other/tuning/learning_rate=1e30/seed-0/.failed").touch()
    capfd.readouterr()
    assert (
        runs.carry_out(table.planned_runs(tmp_path), tmp_path, math.inf)
        and not capfd.readouterr().err
    )


def fails(folder: str, real=runs.train):
    """A training that begins, and fails in a folder whose path contains `folder`, as with a full disk."""

    def train(options, out, *, init, stop):
        result = real(options, out, init=init, stop=(lambda: True) if folder in str(out) else stop)
        if folder in str(out):
            raise UserError("The disk is full.")
        return result

    return train


def test_transient_error_does_not_disqualify_a_grid_point(files, tmp_path, capsys, monkeypatch):
    text = "seeds = 1\noptions.train.steps = 3\n[grid]\n'train.warmup' = [1, 2]\n" + ROWS
    asked = command(tmp_path, files, text, "--budget", 9)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "train", fails("tuning"))
        status, shown, said = run(capsys, *asked)
    assert status == 2 and said.count("The disk is full.") == 4, "each value is tried"
    assert "Training failed in" in said.splitlines()[-1]
    page = (tmp_path / "out/table.md").read_text()
    assert (
        "out/base/tuning/warmup=1/seed-0 failed. The disk is full." in page
        and "Not all values" in page
    )
    assert not list(tmp_path.glob("out/*/seed-1"))
    status, shown, said = run(capsys, *asked)
    assert status == 0 and len(list(tmp_path.glob("out/*/tuning/*/seed-0/manifest.json"))) == 4, (
        said
    )
    assert "The disk is full." not in shown


def test_row_that_diverges_for_every_grid_value_is_reported(files, tmp_path, capsys):
    rows = "[rows]\nbase = ''\nbad = 'train.learning_rate=1e30'\nmore = { init = 'bad', options = 'train.steps=2' }\n"
    asked = command(
        tmp_path,
        files,
        "seeds = 1\noptions.train.steps = 12\n[grid]\n'train.warmup' = [1, 2]\n" + rows,
    )
    for attempt in ("first", "second"):
        status, shown, said = run(capsys, *asked, "--budget", 9)
        last = said.splitlines()[-1]
        assert status == 2 and "The row 'bad' diverged with every value of the grid" in last, said
        assert str(tmp_path / "out/bad/tuning") in last and "Add other values to the grid" in last
        assert "Not all values" not in shown and "Some runs are not finished" not in said
        assert ("skipped" in said) == (attempt == "first"), "a divergence is not repeated"
        page = (tmp_path / "out/table.md").read_text()
        assert (
            "The row 'bad' diverged" in page
            and "out/bad/tuning/warmup=1/seed-0 diverged. The loss " in page
        )
    assert (
        len(list(tmp_path.glob("out/base/seed-1/manifest.json"))) == 1
        and not (tmp_path / "out/bad/seed-1").exists()
    )


@pytest.mark.parametrize(
    ("judge", "value", "told"),
    [("perplexity", -1.0, "better"), ("perplexity", 1.0, "worse"), ("BLEU", 1.0, "better")],
)
def test_a_lower_perplexity_and_a_higher_bleu_are_better(given, tmp_path, judge, value, told):
    table = definition(tmp_path, f"judge = '{judge}'\n" + ROWS, given)
    standing = train_rows(table, tmp_path, 0).rows[1]
    difference = Difference(value, 0.1, 9.0, 0.001)
    judged = standing._replace(differences={judge: difference}, p_value=0.004)
    assert report.verdict(judged, table) == f"{told} (p = 0.004)"
    assert report.verdict(judged._replace(p_value=0.2), table) == "not resolved"


def test_a_verdict_counts_the_runs_that_diverged_and_failed(given, tmp_path):
    table, made = definition(tmp_path, ROWS, given), runs.Result(Path(), "", "", 1, 1.0, 1.0, 1, 1)
    standing = train_rows(table, tmp_path, 0).rows[1]
    standing = standing._replace(runs=[made, made._replace(diverged=True)])
    assert report.verdict(standing, table) == "1 of 2 runs diverged"
    standing = standing._replace(failures={Path("seed-3/.failed"): "", Path("seed-4/.error"): ""})
    assert report.verdict(standing, table) == "2 of 4 runs diverged; 1 of 4 runs failed"
    assert (
        report.verdict(standing._replace(runs=[], failures={Path("seed-3/.failed"): ""}), table)
        == "diverged"
    )


# -- runs that add up ----------------------------------------------------------------------------------------


def test_runs_of_several_calls_add_up(given, tmp_path):
    rows = [
        Experiment("a", {**given, "train.steps": 2}),
        Experiment("b", {**given, "train.steps": 3}),
    ]
    assert not runs.carry_out(all_runs(rows, [1, 2]), tmp_path, minutes=0)
    assert runs.carry_out(all_runs(rows, [1]), tmp_path, minutes=math.inf)
    (one,) = runs.results(rows[0], tmp_path)
    assert one.seed == 1 and one.folder == tmp_path / "a/seed-1" and one.target_tokens > 0
    assert one.revision.startswith("0.")
    assert runs.count(all_runs(rows, [1, 2]), tmp_path) == "2 of 4 runs are finished, 0 have begun."
    assert runs.carry_out(all_runs(rows, [1, 2]), tmp_path, minutes=math.inf)
    assert [each.seed for each in runs.results(rows[1], tmp_path)] == [1, 2]
    shutil.copytree(one.folder, tmp_path / "a/seed-1-aside")
    assert len(runs.results(rows[0], tmp_path)) == 2
    shutil.rmtree(one.folder)
    assert [each.seed for each in runs.results(rows[0], tmp_path)] == [2]


def test_processes_share_the_runs_of_a_folder(given, tmp_path, capfd):
    rows = [Experiment(name, {**given, "train.steps": 2}) for name in ("a", "b")]
    with file_lock(tmp_path / "a/seed-1" / runs.RUN_LOCK, ""):  # as another process does
        assert not runs.carry_out(all_runs(rows, [1]), tmp_path, minutes=math.inf)
    assert f"Another process trains {tmp_path / 'a/seed-1'}" in capfd.readouterr().err
    assert not runs.results(rows[0], tmp_path) and len(runs.results(rows[1], tmp_path)) == 1
    assert runs.carry_out(all_runs(rows, [1]), tmp_path, minutes=math.inf)
    assert not list(tmp_path.rglob(runs.RUN_LOCK))


def test_files_are_compared_by_content(given, tmp_path):
    one = Experiment("one", {**given, "train.steps": 2})
    assert runs.carry_out([(one, 1)], tmp_path, minutes=5)
    moved = shutil.copy(given["data.valid"][0], tmp_path / "moved.src")
    again = Experiment(one.name, {**one.options, "data.valid": (moved, given["data.valid"][1])})
    assert len(runs.results(again, tmp_path)) == 1
    (tmp_path / one.name / "seed-1/manifest.json").unlink()  # as if it had been stopped
    assert runs.carry_out([(again, 1)], tmp_path, minutes=math.inf)
    Path(moved).write_text("another text\n" * 10)
    with pytest.raises(UserError, match="was made with other files"):
        runs.results(again, tmp_path)


def test_labelled_files_are_compared_without_labels(files):
    hashes = [
        runs._plain(Experiment("one", {"data.valid": names}))
        for names in (files["valid"], [f"ka,zu={files['valid'][0]}"])
    ]
    assert hashes[1]["data.valid"] == hashes[0]["data.valid"][:1]


def test_a_row_of_different_code_is_refused(given, tmp_path, monkeypatch):
    one = Experiment("one", {**given, "train.steps": 2})
    assert runs.carry_out([(one, 1)], tmp_path, minutes=math.inf)
    real = runs.code_hash
    for module in (runs, run_card):
        monkeypatch.setattr(module, "code_hash", lambda: "another")
    assert runs.carry_out([(one, 1)], tmp_path, minutes=math.inf), "a finished run needs no code"
    assert len(runs.results(one, tmp_path)) == 1
    with pytest.raises(UserError, match=r"seed-1 was made by .*, code .*, and this is .*, code"):
        runs.carry_out([(one, 2)], tmp_path, minutes=math.inf)
    assert not (tmp_path / "one/seed-2/config.toml").exists(), "it is refused before it is trained"
    monkeypatch.setattr(runs, "code_hash", real)
    assert runs.carry_out([(one, 2)], tmp_path, minutes=math.inf)
    with pytest.raises(
        UserError, match=r"Different versions of the code made .*seed-1 and .*seed-2"
    ):
        runs.results(one, tmp_path)
    monkeypatch.setattr(runs, "code_hash", lambda: "another")
    (tmp_path / "one/seed-1/manifest.json").unlink()
    with pytest.raises(UserError, match=r"seed-1 was made by .*, code .*, and this is .*, code"):
        runs.carry_out([(one, 1)], tmp_path, minutes=math.inf)


def test_a_run_that_other_code_continued_is_refused(given, tmp_path, monkeypatch):
    one = Experiment("one", {**given, "train.steps": 4, "train.save_every": 2})
    clock = itertools.count(0, 20).__next__
    assert not runs.carry_out([(one, 1)], tmp_path, 1.0, clock)
    # Only a training by hand does not ask.
    monkeypatch.setattr(run_card, "code_hash", lambda: "another")
    assert runs.carry_out([(one, 1)], tmp_path, minutes=math.inf)
    with pytest.raises(UserError, match=r"Different versions of the code made .*seed-1"):
        runs.results(one, tmp_path)


def test_failed_run_does_not_stop_other_runs(given, tmp_path):
    bad = Experiment("bad", {**given, "train.steps": 2, "model.num_heads": 7})
    good = Experiment("good", {**given, "train.steps": 2})
    with pytest.raises(UserError, match="bad/seed-1"):
        runs.carry_out(all_runs([bad, good], [1, 2]), tmp_path, minutes=math.inf)
    assert len(runs.results(good, tmp_path)) == 2


def test_a_run_that_fails_does_not_keep_the_table_from_being_written(files, tmp_path, capsys):
    text = (
        "seeds = 1\noptions.train.steps = 12\n[rows]\nbase = ''\nbad = 'train.learning_rate=1e30'\n"
    )
    status, shown, said = run(capsys, *command(tmp_path, files, text, "--budget", 9))
    assert status == 2 and "Training failed in" in said and "Written: " in said
    assert "base" in shown and (tmp_path / "out/table.md").exists()
    _, bad = json.loads((tmp_path / "out/table.json").read_text())
    folder, reason = *bad["failures"], *bad["failures"].values()
    assert (
        bad["verdict"] == "diverged"
        and folder.endswith("out/bad/seed-1")
        and "not finite" in reason
    )
    assert f"{folder} diverged. {reason}" in (tmp_path / "out/table.md").read_text()
    status, shown, said = run(capsys, *command(tmp_path, files, text, "--budget", 9))
    assert status == 2 and "bad/seed-1. The reasons are above." in said and "not finite" in shown
    assert "skipped" not in said, "a divergence is not repeated"


def test_a_row_with_a_failed_run_says_so_until_it_is_made(files, tmp_path, capsys, monkeypatch):
    asked = command(tmp_path, files, "seeds = 2\noptions.train.steps = 3\n" + ROWS, "--budget", 9)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "train", fails("slow/seed-2"))
        assert run(capsys, *asked)[0] == 2
    slow = json.loads((tmp_path / "out/table.json").read_text())[1]
    assert slow["verdict"] == "too few runs for a test; 1 of 2 runs failed"
    assert "out/slow/seed-2 failed. The disk is full." in (tmp_path / "out/table.md").read_text()
    assert run(capsys, *asked)[0] == 0
    slow = json.loads((tmp_path / "out/table.json").read_text())[1]
    assert len(slow["runs"]) == 2 and not slow["failures"] and "failed" not in slow["verdict"]
    assert "The disk is full." not in (tmp_path / "out/table.md").read_text()


def test_a_model_that_no_table_made_is_not_taken_for_a_finished_run(given, tmp_path):
    (tmp_path / "one/seed-1").mkdir(parents=True)
    (tmp_path / "one/seed-1/manifest.json").write_text("{}")
    one = Experiment("one", given)
    for lacking in (r"\.experiment\.json", r"config\.toml"):
        with pytest.raises(UserError, match=f"one/seed-1 holds a model without {lacking}"):
            runs.carry_out([(one, 1)], tmp_path, minutes=0)
        with pytest.raises(UserError, match=f"one/seed-1 holds a model without {lacking}"):
            runs.results(one, tmp_path)  # the table would have a run less, without a word
        (tmp_path / "one/seed-1/.experiment.json").write_text("{}")


def test_damage_to_a_finished_run_is_named(given, tmp_path):
    one = Experiment("one", {**given, "train.steps": 2})
    assert runs.carry_out([(one, 1)], tmp_path, minutes=math.inf)
    for name in ("metrics.json", "run.json", ".experiment.json"):
        path = tmp_path / "one/seed-1" / name
        content = path.read_text()
        for damaged in (
            "",
            "[]",
            "\0" * len(content),
            content.replace("options", "option") + " ",
        ):
            path.write_text(damaged)
            with pytest.raises(UserError, match=rf"{name}.* is damaged"):
                runs.results(one, tmp_path)
        path.write_text(content)
    assert len(runs.results(one, tmp_path)) == 1


@pytest.mark.parametrize(
    "damage", [lambda text: text.replace("1.5", "3.5"), lambda _: "[]", lambda _: "\0"]
)
def test_damaged_scores_are_computed_again(damage, tmp_path):
    path, computed = tmp_path / "scores.json", list[int]()

    def compute() -> dict[str, Any]:
        computed.append(1)
        return {"scores": [1.5, 2.0], "unknown": math.nan}

    first = runs.cached(path, [], compute)
    assert str(runs.cached(path, [], compute)) == str(first) and len(computed) == 1
    path.write_text(damage(path.read_text()))
    assert str(runs.cached(path, [], compute)) == str(first) and len(computed) == 2


def test_repeated_errors_are_reported_once_and_can_be_fixed(given, tmp_path, capfd):
    wrong = {**given, "train.steps": 2, "data.valid": ("no.src", "no.tgt")}
    with pytest.raises(UserError, match=r"no\.src cannot be read"):
        runs.carry_out([(Experiment("one", wrong), 1)], tmp_path, minutes=math.inf)
    (tmp_path / "bad.src").write_text("one line\n")
    wrong["data.valid"] = (str(tmp_path / "bad.src"), given["data.valid"][1])
    rows = [Experiment(name, wrong) for name in ("one", "two", "three")]
    with pytest.raises(runs.RunsFailedError):
        runs.carry_out(all_runs(rows, [1, 2]), tmp_path, minutes=math.inf)
    assert capfd.readouterr().err.count("bad.src has 1 line") == 1
    assert runs.carry_out(
        [(Experiment("one", {**given, "train.steps": 2}), 1)], tmp_path, minutes=math.inf
    )


def test_a_run_that_the_budget_cuts_short_goes_on_the_next_time(given, tmp_path, capfd):
    long = Experiment("long", {**given, "train.steps": 100_000, "train.average": 1})
    # A second passes between two looks at it, of which there is one an update.
    clock = itertools.count().__next__
    assert not runs.carry_out([(long, 1)], tmp_path, 0.1, clock)
    assert runs.results(long, tmp_path) == []
    first = checkpoint_of(tmp_path / "long/seed-1")
    assert not runs.carry_out([(long, 1)], tmp_path, 0.1, clock)
    assert checkpoint_of(tmp_path / "long/seed-1") > first > 0
    assert f"Resuming at step {first:,}" in capfd.readouterr().err


def checkpoint_of(run_folder: Path) -> int:
    return model_folder.step_of(model_folder.checkpoints(run_folder)[-1])


def test_a_run_with_other_options_is_not_taken_for_this_one(given, tmp_path):
    one = Experiment("one", {**given, "train.steps": 2, "model.dropout": 0.1})
    assert runs.carry_out([(one, 1)], tmp_path, minutes=5)
    (found,) = runs.results(one, tmp_path)
    other = Experiment("one", {**one.options, "model.dropout": 0.3})
    with pytest.raises(UserError, match=r"seed-1 was made with model.dropout = 0.1, not 0.3"):
        runs.results(other, tmp_path)
    with pytest.raises(UserError, match=r"was made with model.dropout"):
        runs.carry_out([(other, 1)], tmp_path, minutes=math.inf)
    (found.folder / "manifest.json").unlink()
    assert runs.results(one, tmp_path) == [], "a run that is not whole has no figure"


def test_the_runs_of_another_table_are_refused(given, tmp_path):
    out = tmp_path / "out"
    train_rows(
        definition(tmp_path, "seeds = 1\noptions.train.steps = 2\n" + ROWS, given),
        out,
        math.inf,
    )
    with pytest.raises(UserError, match=r"was made with train.steps = 2, not 3"):
        train_rows(
            definition(tmp_path, "seeds = 1\noptions.train.steps = 3\n" + ROWS, given),
            out,
            1.0,
        )
    more = "seeds = 1\noptions.train.steps = 2\n" + ROWS + "third = 'train.warmup=9'\n"
    assert len(train_rows(definition(tmp_path, more, given), out, 0).rows[0].runs) == 1, (
        "rows may be added"
    )


# -- scores --------------------------------------------------------------------------------------------------


def test_scores_of_rows_are_those_of_sacrebleu_and_of_the_perplexity():
    references = ["a b c d e f", "g h i j k", "l m n o p q r"]
    outputs = ["a b c d e x", "g h i y k", "l m n o p q r"]
    text = EvaluationText(
        (),
        [Pair("s", reference, Origin("", 0)) for reference in references],
        Direction("xx", "yy"),
        "13a",
    )
    judge = Judge(text, per_word=False)
    row = judge.row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)])
    assert row.scores["perplexity"] == [pytest.approx(1.0)]
    assert Judge(text, per_word=True).row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)]).scores[
        "perplexity"
    ] == [pytest.approx(10 / (6 + 5 + 7 + 3))]
    by_name = {each.name: each.value for each in score(outputs, references)}
    assert row.scores["BLEU"] == [pytest.approx(by_name["BLEU"])]
    assert row.scores["chrF2"] == [pytest.approx(by_name["chrF2"])]
    assert row.length_ratio == pytest.approx(1.0)
    twice = judge.row([Outcome([-3.0, -2.0, -5.0], [4, 3, 3], outputs)] * 2)
    same = judge.difference("BLEU", twice, twice)
    assert same.value == same.error == 0.0


@pytest.mark.parametrize(
    ("change", "per_word"),
    [("data.vocab_size=90", True), ("data.joint=false", True), ("model.dropout=0.2", False)],
)
def test_rows_with_other_vocabularies_are_compared_per_word(given, tmp_path, change, per_word):
    own = {name: value for name, value in given.items() if name != "data.vocab_size"}
    table = definition(tmp_path, ROWS + f"other = '{change}'\n", own)
    assert train_rows(table, tmp_path, 0).per_word == per_word


def test_sentences_are_resampled_together_for_all_rows():
    """Two rows that differ by the same amount in every sentence differ without uncertainty over the sentences."""
    hard = [1.0, 9.0, 2.0, 30.0, 4.0, 2.5]
    text = EvaluationText(
        (), [Pair("s", "a b", Origin("", 0))] * len(hard), Direction("xx", "yy"), "13a"
    )
    judge = Judge(text, per_word=False)
    base, better = (
        judge.row(
            [Outcome([-each + gain for each in hard], [1] * len(hard), ["a b"] * len(hard))] * 2
        )
        for gain in (0.0, 0.5)
    )
    found = judge.difference("perplexity", better, base)
    assert found.value == pytest.approx(-0.5) and found.error == pytest.approx(0, abs=1e-9)
    assert base.resampled["perplexity"].std() > 1
