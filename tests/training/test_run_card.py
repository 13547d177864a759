"""run.json: each input with its hash, and what ran the training; nothing depends on it."""

import hashlib
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from command_line import run
from corpora import TINY, changed, spelt, write_texts
from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import DataConfig
from transduce.config.settings import Settings
from transduce.system.files import read_manifest, verify
from transduce.system.machine import processor
from transduce.system.revision import code_hash, revision
from transduce.training import distributed
from transduce.training.distributed import Ranks
from transduce.training.run import train
from transduce.training.run_card import (
    RunCard,
    Session,
    add_session,
    asked_vocabulary_size,
    begin_run_card,
    current_session,
    fingerprint,
    read_run_card,
    warn_of_changed_test,
    warn_of_changed_text,
)

OPTIONS = changed(
    TINY, train__steps=4, train__warmup=4, train__save_every=2, train__validate_every=2
)
SETS = {"train": 60, "valid": 10, "test": 8}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """The working directory, with texts to train, validate and test on."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, count) in enumerate(SETS.items()):
        write_texts(Path(), name, count, seed)
    return tmp_path


def command(out: str, *more: str, **changes: object) -> list[str]:
    files = [argument for name in SETS for argument in (f"--{name}", f"{name}.src", f"{name}.tgt")]
    return ["train", "--out", out, *files, *more, *spelt(changed(OPTIONS, **changes))]


def options(**changes: object) -> dict[str, object]:
    corpus = {
        "data.corpora": [{"files": ["train.src", "train.tgt"]}],
        "data.valid": ("valid.src", "valid.tgt"),
    }
    return changed(OPTIONS | corpus, **changes)


def run_json(folder: str) -> Any:
    return json.loads((Path(folder) / "run.json").read_text())


def sha256(file: str | Path) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def test_every_input_is_listed_with_its_hash(place, capsys):
    assert run(capsys, *command("old"))[0] == 0
    texts = {
        f"data.{option}": {f"{name}.{side}": sha256(f"{name}.{side}") for side in ("src", "tgt")}
        for option, name in {"corpora": "train", "valid": "valid", "test": "test"}.items()
    }
    assert run_json("old")["inputs"] == texts
    assert run(capsys, *command("tuned", "--init", "old"))[0] == 0
    weights = sha256("old/model.safetensors")
    corpus = {"old/data": sha256("old/data/manifest.json")}
    assert run_json("tuned")["inputs"] == texts | {
        "init": {"old": weights},
        "data.remember": corpus,
    }
    assert (
        run(
            capsys,
            "prepare",
            "--train",
            "train.src",
            "train.tgt",
            "--out",
            "prepared",
            "data.vocab_size=300",
        )[0]
        == 0
    )
    train({**OPTIONS, "data.corpora": [{"files": ["prepared"]}]}, "third")
    assert run_json("third")["inputs"] == {
        "data.corpora": {"prepared": sha256("prepared/manifest.json")}
    }
    for folder in ("old", "tuned", "third"):
        assert str(place) not in (place / folder / "run.json").read_text(), "nobody typed this path"


@pytest.mark.usefixtures("place")
def test_the_size_that_the_corpus_could_not_fill_is_the_size_of_the_vocabulary(capsys):
    command = ["train", "--out", "small", "--train", "train.src", "train.tgt"]
    wanted = {**OPTIONS, "data.vocab_size": 5_000}
    assert run(capsys, *command, *spelt(wanted))[0] == 0
    assert run(capsys, *command, *spelt(wanted))[0] == 0
    status, _, said = run(capsys, *command, *spelt({**wanted, "data.vocab_size": 6_000}))
    assert status == 2 and "Leave data.vocab_size out." in said


def test_the_model_and_the_corpus_to_which_languages_are_added_are_inputs(place, capsys):
    for name, file in (("src", "a.en"), ("tgt", "a.de")):
        shutil.copy(f"train.{name}", file)
    write_texts(place, "b", 60, 7)
    labelled = Path("b.tsv")
    labelled.write_text(
        "".join(f"{source}\té{source}\n" for source in Path("b.src").read_text().splitlines())
    )
    assert run(capsys, "train", "--out", "old", "--train", "a.en", "a.de", *spelt(OPTIONS))[0] == 0
    more = [
        "--init",
        "old",
        "--train",
        "en,fr=b.tsv",
        "--test",
        "en,fr=b.tsv",
        *spelt({"train.steps": 2}),
    ]
    status, _, said = run(capsys, "train", "--out", "added", *more)
    assert status == 0, said
    assert run_json("added")["inputs"] == {
        "data.corpora": {"b.tsv": sha256("b.tsv")},
        "data.test": {"b.tsv": sha256("b.tsv")},
        "data.replay": {"old/data": sha256("old/data/manifest.json")},
        "init": {"old": sha256("old/model.safetensors")},
    }
    assert str(place) not in Path("added/run.json").read_text()


def test_a_folder_of_texts_is_hashed_by_what_is_read(tmp_path):
    for name in ("a/x.tsv", "b.tsv", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    first = fingerprint(str(tmp_path))
    assert (
        first
        == hashlib.sha256(
            f"{sha256(tmp_path / 'a/x.tsv')}  a/x.tsv\n{sha256(tmp_path / 'b.tsv')}  b.tsv\n".encode()
        ).hexdigest()
    )
    for name in ("notes.md", ".hidden.tsv"):
        (tmp_path / name).write_text("other")
    assert fingerprint(str(tmp_path)) == first
    found = {first}
    for change in (
        lambda: (tmp_path / "b.tsv").rename(tmp_path / "c.tsv"),
        lambda: (tmp_path / "d.tsv").touch(),
    ):
        change()
        found.add(fingerprint(str(tmp_path)))
    assert len(found) == 3
    assert fingerprint(str(tmp_path / "gone")) is fingerprint("/dev/null") is None


def test_session_records_command_code_and_versions(capsys):
    arguments = command("out")
    assert run(capsys, *arguments)[0] == 0
    (session,) = run_json("out")["sessions"]
    assert session["command"] == ["transduce", *arguments]
    assert (session["code"], session["revision"], session["step"]) == (code_hash(), revision(), 0)
    assert set(session["versions"]) == {"python", "torch", "numpy", "sentencepiece"}
    machine = session["machine"]
    assert processor() in machine["processor"] and (machine["device"], machine["processes"]) == (
        "cpu",
        1,
    )
    assert (machine["precision"], machine["threads"]) == ("float32", 1)
    train(options(), "python")
    assert run_json("python")["sessions"][0]["command"] is None
    assert sha256("out/run.json") == read_manifest("out")["run.json"].sha256
    assert f"| trained by | transduce {revision()}, torch {session['versions']['torch']} |" in (
        Path("out/README.md").read_text()
    )
    assert f"transduce {revision()}, torch" in run(capsys, "info", "out")[1]


def test_a_session_is_added_only_if_something_changed(capsys):
    stops = iter([False, True, True])
    for _ in range(2):  # the second call makes no update, like the one that a signal ends at once
        assert train(options(), "out", stop=lambda: next(stops)).reason == "interrupted"
    train(options(), "out")
    (first,) = run_json("out")["sessions"]
    train(options(train__steps=6), "out")
    assert [session["changes"] for session in run_json("out")["sessions"]] == [
        {},
        {"train.steps": [4, 6]},
    ]
    assert run(capsys, *command("out", train__steps=8, model__dropout=0.1))[0] == 0
    sessions = run_json("out")["sessions"]
    assert [session["step"] for session in sessions] == [0, 4, 6] and sessions[0] == first
    assert sessions[2]["changes"] == {
        "train.steps": [6, 8],
        "model.dropout": [0.3, 0.1],
        "data.test": [[], ["test.src", "test.tgt"]],
    }
    assert run_json("out")["inputs"]["data.test"] == {
        f"test.{side}": sha256(f"test.{side}") for side in ("src", "tgt")
    }
    verify("out", hashes=True)
    for side in ("src", "tgt"):
        with Path(f"test.{side}").open("a") as file:
            file.write("ka lo\n")
    said = run(capsys, *command("out", train__steps=10, model__dropout=0.1))[2]
    assert "test.src and test.tgt changed. The model will be tested on the present text." in said
    assert run_json("out")["inputs"]["data.test"] == {
        f"test.{side}": sha256(f"test.{side}") for side in ("src", "tgt")
    }


def test_a_training_that_resumes_continues_from_no_other_model(capfd):
    train(options(), "out", stop=lambda: True)
    train(options(), "out", keep_optimizer=True)
    for _ in range(2):  # the second call finds the finished model
        assert (
            "out has its own checkpoints, so the model to continue from is ignored."
            in capfd.readouterr().err
        )
        train(options(), "out", keep_optimizer=True)


def test_changed_code_starts_another_session():
    train(options(), "out", stop=lambda: True)
    content = run_json("out")
    content["sessions"][0] |= {"code": "0123456789abcdef", "revision": "0.0 (older)"}
    Path("out/run.json").write_text(json.dumps(content))
    train(options(), "out")
    assert [session["code"] for session in run_json("out")["sessions"]] == [
        "0123456789abcdef",
        code_hash(),
    ]
    assert f"transduce 0.0 (older) and {revision()}, torch" in Path("out/README.md").read_text()


@pytest.mark.parametrize(
    "damage", [None, b"", b"[]", b"{}", b'{"sessions": [1]}', b"\xff", b"[" * 100_000]
)
def test_training_resumes_without_its_run_card(damage, capfd):
    train(options(), "straight")
    train(options(), "out", stop=iter([False, True]).__next__)
    file = Path("out/run.json")
    file.unlink() if damage is None else file.write_bytes(damage)
    train(options(), "out")
    said = capfd.readouterr().err
    assert ("Warning: out/run.json is damaged" in said) == (damage is not None)
    assert sha256("out/model.safetensors") == sha256("straight/model.safetensors")
    assert (
        "run.json" not in read_manifest("out")
        and "trained by" not in Path("out/README.md").read_text()
    )
    assert file.exists() == (damage is not None) and read_run_card(Path("out")) is None


def test_failed_start_leaves_no_run_card():
    with pytest.raises(ValueError, match="no time"):
        train(options(), "out", fit=fails)
    assert not Path("out/run.json").exists()
    train(options(), "out")
    assert model_folder.describe("out").finished and len(run_json("out")["sessions"]) == 1


def fails(_: float) -> dict[str, int]:
    raise ValueError("no time")


def write_card(out: Path, inputs: dict[str, dict[str, str | None]], **changes: Any) -> Path:
    """A folder with a run card only."""
    out.mkdir(exist_ok=True)
    card = RunCard(inputs, False, None, [])._replace(**changes)
    (out / "run.json").write_text(card.to_json())
    return out


@pytest.mark.usefixtures("place")
def test_changed_files_are_named_and_missing_or_prepared_ones_are_not(capsys):
    for name in ("prepared", "damaged"):
        Path(name).mkdir()
    Path("prepared/preparation.json").write_text("{}")
    Path("damaged/config.toml").write_text("")
    files = dict.fromkeys(("train.src", "train.tgt", "gone", "prepared", "damaged"), "0")
    valid: dict[str, str | None] = {"valid.src": sha256("valid.src"), "valid.tgt": None}
    out = write_card(Path("out"), {"data.corpora": files, "data.valid": valid, "data.test": files})
    warn_of_changed_text(out)
    names = "train.src and train.tgt and valid.tgt"
    assert f"Warning: {names} changed after this training began." in capsys.readouterr().err
    warn_of_changed_test(out)
    said = capsys.readouterr().err
    assert said.startswith("Warning: train.src and train.tgt changed. The model will be tested")
    same = {"data.valid": {"valid.src": valid["valid.src"]}}
    for quiet in (write_card(out, same), Path("no card")):
        warn_of_changed_text(quiet)
        warn_of_changed_test(quiet)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("place")
def test_a_session_is_added_for_other_code_machines_or_options():
    first = Session("code", "1", ["a"], {"torch": "2"}, {"cores": 2}, {}, 3, "2026-01-01")
    data, out = DataConfig(test=("test.src",)), write_card(Path("out"), {})
    sessions = [first]
    add_session(out, first, data)
    inode = (out / "run.json").stat().st_ino
    add_session(out, first._replace(step=5, date="2026-01-02"), data)
    assert (out / "run.json").stat().st_ino == inode, "nothing is written"
    for change in (
        {"code": "other"},
        {"revision": "2"},
        {"command": None},
        {"versions": {"torch": "3"}},
        {"machine": {"cores": 3}},
        {"changes": {"train.steps": [1, 2]}},
        {"changes": {"train.steps": [1, 2]}},
    ):
        sessions.append(sessions[-1]._replace(changes={})._replace(**change))
        add_session(out, sessions[-1], data)
    card = read_run_card(out)
    assert card and card.sessions == sessions and card.inputs == {}
    add_session(out, first._replace(changes={"data.test": [[], ["test.src"]]}), data)
    card = read_run_card(out)
    assert card and card.inputs == {"data.test": {"test.src": sha256("test.src")}}
    Path("test.src").write_text("other")
    add_session(out, card.sessions[-1], data)
    card = read_run_card(out)
    assert card and card.inputs == {"data.test": {"test.src": sha256("test.src")}}
    add_session(Path("no card"), first, data)
    assert not Path("no card").exists()


def test_the_size_that_was_asked_for_is_known_from_the_run_card(tmp_path):
    for size, known in ((500, 500), (None, 0)):
        assert asked_vocabulary_size(write_card(tmp_path / "out", {}, vocab_size=size)) == known
    assert asked_vocabulary_size(tmp_path / "no card") == 0


def test_a_session_names_the_gpu_and_the_processes(monkeypatch):
    monkeypatch.setattr(distributed, "cores", lambda: 8)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    config = configure({"train.precision": "bfloat16", "train.threads": 0})
    ranks = Ranks(0, 4, 0, 2)
    changes = {"train.steps": (1, 2)}
    session = current_session(config, torch.device("cuda", 1), ranks, changes, 7)
    expected = {"device": "GPU 1", "precision": "bfloat16", "threads": 4, "processes": 4}
    assert session.machine.items() >= expected.items()
    assert (session.changes, session.step) == ({"train.steps": [1, 2]}, 7)
    assert datetime.fromisoformat(session.date).utcoffset() == timedelta(0)
    assert current_session(config, torch.device("cpu"), ranks).machine["device"] == "cpu"


def test_the_corpus_of_a_model_is_named_as_the_model_is(place):
    """data.replay is an absolute path, but the path to the model is what the user typed."""
    for folder in ("old/data", "other"):
        Path(folder).mkdir(parents=True)
        Path(folder, "a.tsv").write_text("")
    for replay, known in (
        (place / "old/data", "old/data"),
        (place / "other", str(place / "other")),
    ):
        settings = Settings.of({"data.replay": str(replay), "data.vocab_size": 5})
        begin_run_card(Path(), settings, Path("old"), True)
        card = read_run_card(Path())
        assert card == RunCard(
            {"data.replay": {known: fingerprint(known)}, "init": {"old": fingerprint("old")}},
            True,
            5,
            [],
        )
    begin_run_card(Path(), Settings.of({}), None, False)
    assert read_run_card(Path()) == RunCard({}, False, None, [])
