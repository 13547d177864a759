"""Tests of transduce_lab/comparing/runs.py."""

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import run
from transduce import model_folder
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.text.languages import Direction
from transduce.training import run_card
from transduce_lab.comparing import report, runs
from transduce_lab.comparing.command import train_rows
from transduce_lab.comparing.definition import TUNING_SEED
from transduce_lab.comparing.outcomes import EvaluationText
from transduce_lab.comparing.runs import Experiment
from transduce_lab.comparing.standings import Standings

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import ROWS, command, definition


def all_runs(rows: list[Experiment], seeds: list[int]) -> list[runs.Run]:
    return [(row, seed) for seed in seeds for row in rows]


def test_an_ensemble_of_rows_pairs_their_seeds(given, tmp_path):
    table = definition(tmp_path, ROWS, given)
    standings = train_rows(table, tmp_path, 0)
    made = {seed: runs.Result(Path(), "", "", seed, 1.0, 1.0, 1, 1) for seed in (1, 2, 3)}
    groups = standings._groups([[made[1], made[2]], [made[2], made[3]]])
    assert [[run.seed for run in group] for group in groups] == [[2, 2]]


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
    with pytest.raises(UserError, match=r"no\.src can't be read"):
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
