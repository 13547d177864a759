"""`transduce reproduce --check`: a training that runs again has the same weights, or the command says why not."""

import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from command_line import run
from corpora import TINY, changed, spelt, write_texts
from models import publish_model
from transduce import model_folder
from transduce.system.files import digest
from transduce.system.journal import read_events
from transduce.training import loop
from transduce.training.run import train
from transduce_lab.paper.check import mark
from variants import slow
from waiting import wait_for

OPTIONS = changed(
    TINY, train__steps=9, train__warmup=4, train__save_every=3, train__validate_every=3
)
SETS = {"train": 120, "valid": 12, "test": 8}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """The working directory, with texts to train, validate and test on."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, count) in enumerate(SETS.items()):
        write_texts(Path(), name, count, seed)
    return tmp_path


def options(**changes: object) -> dict[str, object]:
    corpus = {
        "data.corpora": [{"files": ["train.src", "train.tgt"]}],
        "data.valid": ("valid.src", "valid.tgt"),
    }
    return changed(OPTIONS | corpus, **changes)


def model(out: str = "model", **changes: object) -> Path:
    train(options(**changes), out)
    return Path(out)


def edit(folder: Path, name: str, value: object) -> None:
    """Change the last session of a run card, as if another machine or other code had written it."""
    content = json.loads((folder / "run.json").read_text())
    session = content["sessions"][-1]
    next(its for its in (session, session["versions"], session["machine"]) if name in its)[name] = (
        value
    )
    (folder / "run.json").write_text(json.dumps(content))


def disturb(folder: Path) -> None:
    """Publish the model again with one changed weight."""
    bundle, weights = model_folder.load(folder), load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] += 1
    metrics, card = (
        model_folder.describe(folder).metrics,
        {"run.json": (folder / "run.json").read_text()},
    )
    publish_model(folder, bundle.config, bundle.tokenizer, weights, metrics, "", card)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """For time limits: an update takes 0.05 seconds on every machine, and a validation as long."""

    def seconds(pace: loop.Pace) -> float:
        pace.calls = getattr(pace, "calls", 0) + 1
        # Private: the seconds before this start, which count, too.
        return pace._first[1] + 0.05 * pace.calls

    monkeypatch.setattr(loop.Pace, "seconds", seconds)


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    return run(capsys, "reproduce", "--check", *arguments)


# -- the same weights --------------------------------------------------------------------------------------

RANDOM = {
    "data__augment": "default",
    "train__sample_source": 0.1,
    "train__sample_target": 0.1,
    "model__dropout": 0.3,
}
KINDS: dict[str, dict[str, Any]] = {
    "random": {**RANDOM, "train__word_dropout": 0.1, "train__ema": 0.9, "train__select_by": "chrf"},
    "two vocabularies, larger than the corpus allows": {
        "data__joint": False,
        "data__vocab_size": 1500,
    },
    "unigram, larger than the corpus allows": {
        "data__tokenizer": "unigram",
        "data__vocab_size": 1500,
    },
    "patience": {
        "train__steps": 90,
        "train__patience": 1,
        "train__learning_rate": 40.0,
        "train__validate_every": 1,
    },
    "time limit during the cool-down": {
        "train__steps": 10**6,
        "train__cooldown": 10**6 - 5,
        "train__minutes": 0.01,
    },
    "measured micro-batches": {"data__max_tokens": 8192},
    "held-out pairs": {"data__valid": (), "data__holdout": 12},
    "no validation": {"data__valid": (), "data__holdout": 0},
    "another family": {"model__kind": "recurrent"},
}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("kind", KINDS)
def test_repeated_training_has_the_same_weights(kind, place, capsys):
    folder = model(**KINDS[kind])
    status, said, err = check(capsys, folder)
    assert (status, said) == (
        0,
        f"{place / 'model.check'} has the same weights as model, bit by bit.\n",
    ), err
    assert "may give other weights" not in err
    was, now = (model_folder.describe(each).metrics for each in (folder, Path("model.check")))
    for name in ("averaged_steps", "validation"):
        assert was.get(name) == now.get(name)
    assert was["training"]["reason"] == now["training"]["reason"]
    if kind.startswith("time"):
        assert was["training"]["reason"] == "minutes"
        events = [event["event"] for event in read_events(folder / "journal.jsonl")]
        assert "cooldown" in events, "the cool-down has begun"


def test_options_that_the_size_of_the_corpus_chooses_are_chosen_again(place, capsys):
    write_texts(place, "large", 300, 5)
    few = {"train.steps": 3, "model.d_model": 16, "model.num_heads": 2, "model.d_ff": 16}
    train(
        few | {"data.corpora": [{"files": ["large.src", "large.tgt"]}], "data.holdout": 20}, "model"
    )
    assert check(capsys, "model")[:2] == (
        0,
        f"{place / 'model.check'} has the same weights as model, bit by bit.\n",
    )


@pytest.mark.parametrize("keep_optimizer", [False, True])
def test_a_fine_tuning_starts_from_the_same_model(keep_optimizer, capsys):
    first = model("first")
    train(options(train__seed=3), "model", init=first, keep_optimizer=keep_optimizer)
    status, said, err = check(capsys, "model")
    assert status == 0 and "the same weights" in said, err
    model("first", train__steps=12)
    status, said, err = check(capsys, "model", "--out", "again")
    assert (status, said) == (1, "") and err.startswith("first has changed since the training.")
    assert not Path("again").exists()


@pytest.mark.slow
def test_prepared_added_and_minimum_risk_trainings_run_again(capsys):
    for name, file in (
        ("train.src", "a.en"),
        ("train.tgt", "a.de"),
        ("valid.src", "b.en"),
        ("valid.src", "b.fr"),
    ):
        shutil.copy(name, file)
    assert (
        run(
            capsys, "prepare", "--train", "a.en", "a.de", "--out", "prepared", "data.vocab_size=300"
        )[0]
        == 0
    )
    few = spelt(changed(OPTIONS, train__steps=3))
    given = {
        "from-prepared": ["--train", "prepared", *few],
        "old": ["--train", "a.en", "a.de", "data.holdout=20", *few],
        "added": ["--init", "old", "--train", "b.en", "b.fr", "data.holdout=2", "train.steps=3"],
        "mrt": [
            "--init",
            "old",
            "--train",
            "a.en",
            "a.de",
            "data.holdout=20",
            "train.risk_steps=2",
        ],
    }
    for name, arguments in given.items():
        status, _, err = run(capsys, "train", "--out", name, *arguments)
        assert status == 0, err
        status, said, err = check(capsys, name)
        assert status == 0 and f"the same weights as {name}, bit by bit" in said, (name, err)
    assert "directions" in model_folder.describe("added").metrics


@pytest.mark.slow
def test_interrupted_check_resumes(capsys):
    folder = model(train__steps=60, **RANDOM)

    def interrupt() -> None:
        wait_for(lambda: Path("again/checkpoints/step-00000003").is_dir())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    status, said, err = check(capsys, folder, "--out", "again")
    thread.join()
    assert (status, said) == (130, "") and "run the same command to resume" in err
    status, said, err = check(capsys, folder, "--out", "again")
    assert (status, said) == (0, "again has the same weights as model, bit by bit.\n")
    assert "Resuming at step " in err


@pytest.mark.usefixtures("clock")
def test_interrupted_check_of_a_time_limited_training_resumes(capsys):
    folder = model(train__steps=10**6, train__minutes=0.02)
    steps = model_folder.describe(folder).metrics["training"]["steps"]
    assert steps > 6
    mark(Path("again"), digest(folder / "config.toml"))
    train(options(train__steps=10**6), "again", stop=iter([False] * 5 + [True]).__next__)
    status, said, err = check(capsys, folder, "--out", "again")
    assert (status, said) == (0, "again has the same weights as model, bit by bit.\n"), err
    assert (
        "Resuming at step 5 of 1,000,000" in err
        and f"by its time limit, after {steps:,} updates." in err
    )
    assert check(capsys, folder, "--out", "again")[:2] == (0, said), (
        "a finished check only compares"
    )


# -- other inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train.tgt", "valid.src", "test.tgt"])
def test_changed_file_is_named_before_training(name, capsys):
    folder = model(data__test=("test.src", "test.tgt"))
    Path(name).write_text(Path(name).read_text().replace("zu", "uz").replace("ka", "ak"))
    status, said, err = check(capsys, folder)
    assert (status, said) == (1, "")
    assert (
        err
        == f"{name} has changed since the training. Put back the file that the model was trained on.\n"
    )
    assert not Path("model.check").exists()


def test_another_training_is_not_taken_for_a_check(place, capsys):
    folder = model()
    train(options(train__steps=50), "other", stop=iter([False] * 3 + [True]).__next__)
    status, said, err = check(capsys, folder, "--out", "other")
    assert (status, said) == (2, "") and "other holds another training" in err
    assert model_folder.read_config(place / "other").train.steps == 50


def test_a_missing_corpus_is_replaced_by_its_prepared_copy(place, capsys):
    folder = model(data__test=("test.src", "test.tgt"), **RANDOM)
    for name in ("train.src", "valid.tgt"):
        Path(name).rename(f"moved-{name}")
    status, said, err = check(capsys, folder)
    assert (status, said) == (
        0,
        f"{place / 'model.check'} has the same weights as model, bit by bit.\n",
    )
    assert (
        "train.src is missing. The check uses the prepared corpus in model/data, and does not repeat"
        in err
    )
    Path("train.tgt").write_text("other\n" * 120)
    assert check(capsys, folder)[2].startswith("train.tgt has changed")
    shutil.copytree(folder, "without")
    shutil.rmtree("without/data")
    status, said, err = check(capsys, "without")
    assert (status, said) == (1, "") and err.startswith(
        "train.src is missing. Put it back, or run this command where"
    )
    Path("moved-train.src").rename("train.src")
    Path("test.src").unlink()
    Path("train.tgt").unlink()
    assert check(capsys, folder)[::2] == (
        1,
        "test.src is missing. Put it back, or run this command where the training was started.\n",
    )


# -- other weights -----------------------------------------------------------------------------------------


def test_other_weights_without_a_reason_are_a_failure(capsys):
    folder = model(data__test=("test.src", "test.tgt"))
    disturb(folder)
    status, said, err = check(capsys, folder)
    assert status == 1 and said.startswith("The weights differ.\n"), err
    for name in ("validation log perplexity", "test BLEU"):
        assert re.search(rf"\n{name}: (\d+\.\d{{4}}), again \1 \(\+0\.0000\)\n", said), said
    assert said.endswith(
        "Code, versions, machine and threads were the same, so the weights should be the same, too.\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("code", "0123456789abcdef", "different code (0.1 (old), code 0123456789abcdef, "),
        slow("torch", "1.0", "different torch (1.0, "),
        slow("processor", "Z80", "different processor (Z80, "),
        ("threads", 7, "different threads (7, 1)"),
        slow("processes", 2, "different processes (2, 1)"),
        ("device", "NVIDIA H100", "a GPU adds numbers in no fixed order"),
    ],
)
def test_reason_for_other_weights_is_reported_before_and_after(name, value, told, capsys):
    folder = model()
    edit(folder, name, value)
    if name == "code":
        edit(folder, "revision", "0.1 (old)")
    status, said, err = check(capsys, folder)
    assert (
        status == 0
        and "the same weights" in said
        and f"The training may give other weights: {told}" in err
    )
    disturb(folder)
    status, said, err = check(capsys, folder)
    assert status == 0 and f"A possible reason: {told}" in said and "should be the same" not in said


def test_an_option_that_changed_during_the_training_is_a_reason(capsys):
    folder = model(train__steps=6)
    model(train__steps=9, model__dropout=0.1)
    status, said, err = check(capsys, folder)
    assert status == 0 and "The weights differ." in said
    assert (
        said.count("A possible reason: ") == 1
        and "model.dropout was changed during the training" in said
    )
    assert "may give other weights: model.dropout was changed" in err


def test_other_revisions_and_commands_with_the_same_code_are_no_reason(capsys):
    folder = model()
    edit(folder, "revision", "another commit, of documents")
    edit(folder, "command", ["transduce", "train", "--out", "elsewhere"])
    assert "may give other weights" not in check(capsys, folder)[2]


# -- mistakes ----------------------------------------------------------------------------------------------


def test_uncheckable_models_are_refused(capsys, monkeypatch):
    folder = model()
    train(options(), "unfinished", stop=iter([False, True]).__next__)
    shutil.copytree(folder, "old")
    Path("old/run.json").unlink()
    for arguments, told in {
        ("/",): "/ is not a model folder",
        ("missing",): "There is no model folder missing.",
        ("unfinished",): "unfinished can't be checked: its training is not finished.",
        ("old",): "old can't be checked: it has no intact run.json.",
        (
            folder,
            "--out",
            folder,
        ): "model can't be trained again in itself. Choose another folder (--out).",
        (folder, "--out", "valid.src"): "valid.src can't be written: File exists.",
        (folder, "train.steps=3"): "--check takes all options from the model's folder.",
        (folder, "--seeds", "2"): "--check takes all options from the model's folder.",
        (folder, "--budget", "2"): "--check takes all options from the model's folder.",
    }.items():
        status, said, err = check(capsys, *arguments)
        assert (status, said) == (2, "") and told in err and "Traceback" not in err, (
            arguments,
            err,
        )
    for arguments in ([], ["--out", "paper"]):
        status, _, err = run(capsys, "reproduce", *arguments)
        assert (
            status == 2
            and "Name what to compute: table1, table2, table3, figures or parsing. Or use --check"
            in err
        )
    assert run(capsys, "reproduce", "table1", "--check", folder)[0] == 2
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert "Start transduce reproduce without torchrun" in check(capsys, folder)[2]
