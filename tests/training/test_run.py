"""What a training checks before it starts or resumes, and what a finished one says."""

import contextlib
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from transduce.config.parse import configure
from transduce.config.schema import CorpusConfig, DataConfig, RunConfig
from transduce.config.settings import Settings
from transduce.model_folder import write_config
from transduce.system.errors import UserError
from transduce.system.files import publish, to_json
from transduce.training import run
from transduce.training.distributed import ALONE
from transduce.training.loop import Reason
from transduce.training.resume import Continued
from transduce.training.run import (
    REASON_LINES,
    _alone,
    _check_start,
    check_processes,
    finished_result,
    follow,
    lead,
    read_routes,
    read_test,
    read_test_again,
    reopen,
    train,
)
from transduce.training.run_card import RunCard, fingerprint

CPU = torch.device("cpu")


def going(config: RunConfig | None = None, **changes: tuple[object, object]) -> Continued:
    """A training that resumes with changed options; a change is written train__steps=(10, 20)."""
    named = {name.replace("__", "."): both for name, both in changes.items()}
    return Continued(config or RunConfig(), DataConfig(), named)


def test_each_reason_to_end_has_a_line():
    assert REASON_LINES.keys() == {*get_args(Reason)}


@pytest.mark.parametrize(
    ("reason", "changes", "goes_on"),
    [
        ("steps", {"train__steps": (10, 11)}, True),
        ("steps", {"train__steps": (10, 11), "decode__beam_size": (4, 5)}, True),
        ("minutes", {"train__minutes": (2.0, 3.0)}, True),
        ("minutes", {"train__minutes": (2.0, 0)}, True),
        ("patience", {"train__patience": (3, 0)}, True),
        ("steps", {"train__steps": (10, 9)}, False),
        ("minutes", {"train__minutes": (2.0, 1.0)}, False),
        ("minutes", {"train__steps": (10, 11)}, False),
        ("steps", {"train__minutes": (0, 2.0)}, False),
        ("steps", {}, None),
        ("minutes", {}, None),
    ],
)
def test_a_finished_training_goes_on_if_its_limit_is_raised(reason, changes, goes_on, capsys):
    metrics = {"training": {"reason": reason, "steps": 12_345}}
    said = f"out is finished at 12,345 updates. To train it further, raise train.{reason}."
    if goes_on is False:
        with pytest.raises(UserError) as refused:
            finished_result(going(**changes), metrics, Path("out"))
        assert str(refused.value).startswith(f"{said} To test it on other text")
        return
    result = finished_result(going(**changes), metrics, Path("out"))
    assert result == (None if goes_on else (Path("out"), reason, metrics))
    assert capsys.readouterr().err.split() == ([] if goes_on else said.split())


def test_minimum_risk_training_is_not_split():
    risk, two = configure({"train.risk_steps": 5}), ALONE._replace(world=2)
    check_processes(risk, ALONE)
    check_processes(RunConfig(), two)
    with pytest.raises(UserError, match="can't be split among processes"):
        check_processes(risk, two)


def test_only_one_training_runs_at_a_time_and_it_restores_threads_and_random_numbers():
    torch.manual_seed(7)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with pytest.raises(RuntimeError, match="ends"), _alone():
        torch.set_num_threads(threads + 1)
        torch.rand(3)
        with pytest.raises(UserError, match="trains another model already"), _alone():
            pass
        raise RuntimeError("it ends")
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    with _alone():
        others: list[str] = []

        def other() -> None:
            try:
                train({}, "nowhere")
            except UserError as error:
                others.append(error.cause)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert others == ["This process trains another model already."]
    with _alone():
        pass


def test_a_folder_has_a_name_that_safetensors_can_open(tmp_path):
    with pytest.raises(UserError, match="is not UTF-8"):
        train({}, tmp_path / os.fsdecode(b"a\xff"))
    assert not [*tmp_path.iterdir()]


def test_a_model_is_not_continued_in_its_own_folder(tmp_path):
    for init in (tmp_path, tmp_path / "." / "a" / ".."):
        (tmp_path / "a").mkdir(exist_ok=True)
        with pytest.raises(UserError, match="can't be both the model to continue from") as refused:
            lead(Settings.of({}), tmp_path, init, False, CPU, ALONE, False, None, None)
        assert refused.value.hint and refused.value.hint.options == ("out",)


@pytest.mark.parametrize(
    ("was", "now", "is_said"),
    [(0.5, 1.0, True), (0.5, 0.5, False), (1.0, 0.5, False), (0.0, 1.0, False), (0.5, 0.0, False)],
)
def test_more_minutes_alone_allow_no_more_updates(was, now, is_said, tmp_path, capsys):
    for folder in (tmp_path / ".run.json.aside-1", tmp_path / "checkpoints/.step.aside-1"):
        folder.mkdir(parents=True)
    write_config(tmp_path, configure({"train.minutes": was, "train.steps": 1_234}))
    task, metrics = reopen(Settings.of({"train.minutes": now}), tmp_path, has_origin=False)
    assert (task.config.train.minutes, metrics) == (now, {})
    said = "The training still ends at 1,234 updates. For more, raise train.steps, too."
    assert capsys.readouterr().err.split() == (said.split() if is_said else [])
    assert not [*tmp_path.rglob(".*")], "what a killed process left is gone"
    reopen(Settings.of({}), tmp_path, has_origin=True)
    assert "so the model to continue from is ignored." in capsys.readouterr().err


def test_the_corpora_of_an_interrupted_start_are_named_again(tmp_path):
    nothing, out = DataConfig(), tmp_path / "out"
    own = replace(nothing, corpora=(CorpusConfig(("a", "b")),))
    _check_start(nothing, out)
    _check_start(own, out)
    (out / ".data.aside-1").mkdir(parents=True)
    _check_start(own, out)
    with pytest.raises(UserError, match=r"has no checkpoint yet\. Repeat the whole command"):
        _check_start(nothing, out)
    (out / ".data.aside-1").rmdir()
    _check_start(nothing, out)
    translated = out / "back-translation"
    translated.mkdir()
    with pytest.raises(UserError, match="has no checkpoint yet"):
        _check_start(nothing, out)
    with pytest.raises(UserError, match="needs the same monolingual text") as refused:
        _check_start(own, out)
    assert refused.value.hint and refused.value.hint.options == ("monolingual",)
    again = CorpusConfig((str(translated / "pairs.jsonl"),), synthetic=True)
    _check_start(replace(own, corpora=(*own.corpora, again)), out)
    both = CorpusConfig(("a", str(translated / "pairs.jsonl")))
    _check_start(replace(own, corpora=(both,)), out)


def test_a_test_set_has_lines_of_text(tmp_path):
    file = tmp_path / "a.tsv"
    config = configure({"data.test": [str(file)], "data.source": "en", "data.target": "de"})
    assert read_test(RunConfig()) == []
    file.write_text("a\tb\n\t\nc\td\n")
    assert [pair[:2] for pair in read_test(config)] == [("a", "b"), ("", ""), ("c", "d")]
    for name, content, said in (
        ("a.tsv", "", "contain no lines"),
        ("trees.mrg", "(S (NP a) (VP b))\n", "A parser can't be scored while it trains"),
    ):
        (tmp_path / name).write_text(content)
        other = replace(config, data=replace(config.data, test=(str(tmp_path / name),)))
        with pytest.raises(UserError, match=said) as refused:
            read_test(other)
        assert refused.value.hint and refused.value.hint.options == ("data.test",)


def test_a_resumed_training_may_lack_its_test_set(tmp_path, capsys):
    file = tmp_path / "a.tsv"
    options: dict[str, Any] = {"data.test": [str(file)], "data.source": "en", "data.target": "de"}
    task = going(configure(options))
    assert read_test_again(task, Settings.of({}), tmp_path) == []
    assert "Warning: the model will not be tested." in capsys.readouterr().err
    with pytest.raises(UserError, match=r"a\.tsv"):
        read_test_again(task, Settings.of(options), tmp_path)
    file.write_text("a\tb\n")
    inputs = {"data.test": {str(file): fingerprint(str(file))}}
    (tmp_path / "run.json").write_text(RunCard(inputs, False, None, []).to_json())
    assert len(read_test_again(task, Settings.of(options), tmp_path)) == 1
    assert capsys.readouterr().err == ""
    file.write_text("a\tb\nc\td\n")
    changed = going(task.config, data__test=((), (str(file),)))
    assert len(read_test_again(changed, Settings.of(options), tmp_path)) == 2
    assert capsys.readouterr().err == "", "another test set was named"
    read_test_again(task, Settings.of({}), tmp_path)
    said = capsys.readouterr().err
    assert "changed. The model will be tested on the present text." in " ".join(said.split())


def test_routes_are_measured_on_pairs_of_directions_that_a_model_lacks(tmp_path, capsys):
    names = {}
    for one, other in (("en", "de"), ("en", "fr"), ("de", "fr")):
        names[f"{one}-{other}"] = f"{one},{other}={tmp_path / f'{one}-{other}.tsv'}"
        (tmp_path / f"{one}-{other}.tsv").write_text("a\tb\n")
    trained = ("en-de", "de-en", "en-fr", "fr-en")
    config = configure({"data.directions": trained, "data.valid": list(names.values())})
    found = [(pair.direction, *pair[:2]) for pair in read_routes(config)]
    assert sorted(found) == [("de-fr", "a", "b"), ("fr-de", "b", "a")]
    assert read_routes(configure({"data.valid": ["no such file"]})) == [], "one direction"
    assert capsys.readouterr().err == ""
    (tmp_path / "de-fr.tsv").unlink()
    said = "Warning: routes through a third language will not be measured."
    for directions, is_warned in (
        (trained, True),
        ((*trained, "de-fr"), True),
        ((*trained, "de-fr", "fr-de"), False),
        (("en-de", "de-en"), False),
    ):
        gone = replace(config, data=replace(config.data, directions=directions))
        assert read_routes(gone) == []
        assert (said in " ".join(capsys.readouterr().err.split())) is is_warned


def test_other_ranks_need_the_folder_and_the_metrics_of_rank_0(tmp_path, rank_0_says, monkeypatch):
    rank_0_says += ["format = 1\n", "", ""]  # its configuration; twice that the model is finished
    other = ALONE._replace(rank=1, world=2)
    with pytest.raises(UserError, match="is not the folder that rank 0 writes to"):
        follow(Settings.of({}), tmp_path, CPU, other, None)
    metrics = {"training": {"reason": "patience"}}
    with publish(tmp_path) as aside:
        (aside / "metrics.json").write_text(to_json(metrics))
    finished = (tmp_path, "patience", metrics)
    assert follow(Settings.of({}), tmp_path, CPU, other, None) == finished
    # As if both ranks had met.
    monkeypatch.setattr(run, "init_distributed", lambda: contextlib.nullcontext(other))
    assert train({}, tmp_path) == finished and not rank_0_says
    assert not (tmp_path / ".lock").exists()
