"""`transduce compare`: tables of trainings that add up, and their verdicts."""

import json
import shutil

import pytest

from command_line import run
from corpora import spelt
from transduce.training.run_card import read_run_card
from transduce_lab.comparing import outcomes

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import ROWS, TRAINED, command


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


@pytest.mark.slow
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


def test_missing_arguments_are_named(files, tmp_path, capsys):
    (tmp_path / "table.toml").write_text(ROWS)
    asked = ["compare", tmp_path / "table.toml", "--out", tmp_path / "out"]
    assert (
        "training, validation and test files. Name these files (--train)" in run(capsys, *asked)[2]
    )
    assert (
        "table.toml can't be read"
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


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.slow
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


@pytest.mark.slow
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
