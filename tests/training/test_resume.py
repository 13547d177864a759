"""A training is a function of its inputs: whatever interrupts it, the same command ends with the same bits."""

import contextlib
import hashlib
import os
import platform
import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

import transduce
from corpora import TINY, changed, reverse_rows, reverse_texts, spelt, write_texts
from forked import COMMAND, Forked, killed
from small_trainings import MODEL, TRAIN, perplexities, same, training, weights, written
from transduce import cli, model_folder
from transduce.config.parse import configure
from transduce.config.schema import CorpusConfig, DataConfig, RunConfig, flatten
from transduce.config.settings import Settings
from transduce.model.build import build, count_parameters
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import Event, read_events
from transduce.training.announce import device_name
from transduce.training.distributed import Ranks
from transduce.training.resume import (
    Continued,
    _log_start,
    _place,
    check_shared,
    continued,
    is_harmless,
    load_newest,
    open_data,
)
from transduce.training.run import train
from transduce.training.start import start
from transduce.training.update import make_optimizer
from variants import slow
from waiting import PATIENCE, wait_for

OPTIONS = {
    **TINY,
    "data.max_tokens": 128,
    "model.dropout": 0.1,
    "train.steps": 120,
    "train.warmup": 40,
    "train.accumulate": 2,
    "train.save_every": 3,
    "train.validate_every": 50,
    "train.patience": 0,
    "train.keep_last": 3,
    "train.average": 3,
}
RANDOM = {"data__augment": "default", "train__sample_source": 0.1, "train__sample_target": 0.1}
RANDOM |= {"train__word_dropout": 0.1, "train__ema": 0.9, "train__select_by": "chrf"}
LEARNT = (
    "step",
    "epoch",
    "loss",
    "nll",
    "accuracy",
    "rate",
    "gradient_norm",
    "tokens_seen",
    "perplexity",
    "bleu",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> list[str]:
    """The command-line arguments of a small corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    train_files, valid = (
        write_texts(folder, "train", 300, seed=1),
        write_texts(folder, "valid", 20, seed=2),
    )
    return ["--train", *train_files, "--valid", *valid]


def arguments(corpus: list[str], out: Path, **changes: object) -> list[str]:
    """What stands behind `transduce`; a change is written train__steps=10."""
    return ["train", *corpus, "--out", str(out), *spelt(changed(OPTIONS, **changes))]


def begin(command: list[str]) -> Forked:
    """A command in a process of its own."""
    return Forked(COMMAND, *command)


def run(capsys: pytest.CaptureFixture[str], command: list[str]) -> tuple[int, str]:
    """Exit status and standard error of a command in this process."""
    capsys.readouterr()
    try:
        cli.main(command)
    except SystemExit as error:
        return int(error.code or 0), capsys.readouterr().err.replace("\nhint: ", " ")
    return 0, capsys.readouterr().err


def learnt(out: Path) -> list[Event]:
    """The journal's updates and validations, without times."""
    events = [
        event
        for event in read_events(out / "journal.jsonl")
        if event["event"] in ("update", "validation")
    ]
    return [{name: event[name] for name in ("event", *LEARNT) if name in event} for event in events]


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of the model, and of all that its checkpoints hold but the clock."""
    files = [out / "model.safetensors", *sorted(out.glob("checkpoints/step-*/*.safetensors"))]
    return {
        str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }


def moments(out: Path, count: int, chance: random.Random) -> Iterator[tuple[str, int]]:
    """When to kill, from the first start to the publishing of the model: what is there, and how many changes later."""
    yield ".data.aside-*", 5
    yield "checkpoints", 1  # there is no configuration yet
    for number in range(count - 3):
        newest = max((int(path.name[-8:]) for path in out.glob("checkpoints/step-*")), default=0)
        wanted = newest + 3 * chance.randint(1, 2)
        name = f".step-{wanted:08d}.aside-*" if number % 3 == 0 else f"step-{wanted:08d}"
        yield f"checkpoints/{name}", chance.randint(1, 8)
    yield f".{out.name}.aside-*", 2


@pytest.mark.parametrize("kills", [4, slow(20)])
def test_killed_many_times_a_training_ends_with_the_same_bits(kills, corpus, tmp_path):
    straight, out, saving = tmp_path / "straight", tmp_path / "killed", 0
    cli.main(arguments(corpus, straight, **RANDOM))
    for number, (pattern, change) in enumerate(moments(out, kills, random.Random(1))):
        status = killed(change, arguments(corpus, out, **RANDOM), out, pattern)
        assert status == -signal.SIGKILL, f"start {number} ended before it was killed"
        saving += any(out.glob("checkpoints/.step-*.aside-*"))
    assert saving >= max(1, kills // 6)
    assert not (out / "manifest.json").exists()
    last = begin(arguments(corpus, out, **RANDOM))
    assert last.wait(PATIENCE) == 0 and "Resuming at step 120 of 120" in last.said
    verify(out, hashes=True)
    assert learnt(out) == learnt(straight)
    assert [event["step"] for event in learnt(out) if event["event"] == "update"] == [
        *range(10, 121, 10)
    ]
    assert digests(out) == digests(straight)
    (out / ".killed.aside-1").mkdir()  # as if it had been killed when the model was complete
    cli.main(arguments(corpus, out, **RANDOM))
    assert not [path for folder in (out, out / "checkpoints") for path in folder.glob(".*")]
    assert not [*out.glob("checkpoints/damaged-*")]


def test_signals_save_a_checkpoint_and_the_same_command_resumes(corpus, tmp_path, capsys):
    out, steps = tmp_path / "out", 0
    for number in (signal.SIGINT, signal.SIGTERM):
        process = begin(arguments(corpus, out, train__steps=50_000))
        before = set(out.glob("checkpoints/step-*"))

        def some_saved(before: set[Path] = before) -> bool:
            return len(set(out.glob("checkpoints/step-*")) - before) > 2

        wait_for(some_saved, lambda process=process: process.poll() is not None)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 130, process.said
        said = process.said
        assert "Traceback" not in said
        assert (f"Resuming at step {steps}" in said) == bool(steps)
        steps = max(int(path.name[-8:]) for path in out.glob("checkpoints/step-*"))
        assert f"Saved; run the same command to resume (step {steps:,})." in said
        assert not (out / "manifest.json").exists()
    steps += 7
    status, said = run(capsys, arguments(corpus, out, train__steps=steps))
    assert (status, f"Changed: train.steps is {steps}, was 50000.\n" in said) == (0, True)
    cli.main(arguments(corpus, tmp_path / "straight", train__steps=steps))
    assert learnt(out) == learnt(tmp_path / "straight")
    assert digests(out) == digests(tmp_path / "straight")


def test_another_process_does_not_train_in_the_same_folder(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    busy = f"transduce: Another process trains in {out}. Wait until it ends, or choose another folder.\n"
    process = begin(arguments(corpus, out, train__steps=50_000))
    try:
        for moment in ((out / ".lock").exists, lambda: any(out.glob("checkpoints/step-*3"))):
            wait_for(moment, lambda: process.poll() is not None)
            assert run(capsys, arguments(corpus, out, train__steps=50_000)) == (2, busy)
    finally:
        process.kill()
    process.wait(PATIENCE)
    assert "Traceback" not in process.said
    steps = max(int(path.name[-8:]) for path in out.glob("checkpoints/step-*")) + 1
    assert run(capsys, arguments(corpus, out, train__steps=steps))[0] == 0
    assert not [*out.glob(".*")]


def test_names_of_files_do_not_rename_the_languages_of_a_training(corpus, tmp_path, capsys):
    files = [
        str(shutil.copy(file, tmp_path / name))
        for file, name in zip(corpus[1:3], ("a.en", "a.de"), strict=True)
    ]
    command = arguments(["--train", *files], tmp_path / "out", train__steps=3)
    assert run(capsys, [*command, "--from", "eng", "--to", "deu"])[0] == 0
    assert run(capsys, command)[0] == 0
    assert model_folder.read_config(tmp_path / "out").data.source == "eng"


def test_a_training_that_cannot_begin_leaves_nothing(tmp_path, capsys):
    missing = str(tmp_path / "missing")
    status, said = run(capsys, arguments(["--train", missing, missing], tmp_path / "new/out"))
    assert (status, "missing" in said) == (2, True)
    assert not (tmp_path / "new").exists()


def test_a_corpus_that_changed_since_the_training_began_is_named(corpus, tmp_path, capsys):
    files = [shutil.copy(file, tmp_path) for file in corpus[1:3]]
    command = arguments(["--train", *files, *corpus[3:]], tmp_path / "out", train__steps=2)
    assert run(capsys, command)[0] == 0
    assert "changed after this training began" not in run(capsys, command)[1]
    with Path(files[0]).open("a") as source, Path(files[1]).open("a") as target:
        source.write("ka lo\n"), target.write("fe zu\n")
    status, said = run(capsys, command)
    assert status == 0 and f"{files[0]} and {files[1]} changed after this training began" in said


def test_training_resumes_when_its_corpus_folder_is_emptied(tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.tsv").write_text(
        "".join(f"{s}\t{t}\n" for s, t in zip(*reverse_texts(200, 1), strict=True))
    )
    command = ["--train", str(folder), "data.holdout=20"]
    assert run(capsys, arguments(command, tmp_path / "out", train__steps=2))[0] == 0
    (folder / "a.tsv").unlink()
    assert run(capsys, arguments(command, tmp_path / "out", train__steps=4))[0] == 0


@pytest.mark.parametrize("precision", [slow("float32"), "bfloat16"])
def test_extending_a_finished_training_equals_one_long_training(
    precision, corpus, tmp_path, capsys
):
    for steps in (9, 18):
        command = arguments(
            corpus, tmp_path / "out", train__steps=steps, train__precision=precision
        )
        assert run(capsys, command)[0] == 0
        status, said = run(capsys, command)
        assert status == 0
        assert (
            f"out is finished at {steps} updates. To train it further, raise train.steps.\n" in said
        )
        for other in {"train__minutes": 5}, {"decode__beam_size": 2}, {"train__steps": steps - 1}:
            more = {"train__steps": steps, "train__precision": precision} | other
            status, said = run(capsys, arguments(corpus, tmp_path / "out", **more))
            assert (
                status == 2
                and "is finished at" in said
                and model_folder.describe(tmp_path / "out").finished
            )
    cli.main(arguments(corpus, tmp_path / "straight", train__steps=18, train__precision=precision))
    assert learnt(tmp_path / "out") == learnt(tmp_path / "straight")
    assert digests(tmp_path / "out") == digests(tmp_path / "straight")


def test_a_training_of_packed_rows_resumes_with_the_same_bits(corpus, tmp_path, capsys):
    packed = RANDOM | {"data__pack": 32}
    for steps in (9, 18):
        status, said = run(
            capsys, arguments(corpus, tmp_path / "out", train__steps=steps, **packed)
        )
        assert status == 0, said
    cli.main(arguments(corpus, tmp_path / "straight", train__steps=18, **packed))
    assert learnt(tmp_path / "out") == learnt(tmp_path / "straight")
    assert digests(tmp_path / "out") == digests(tmp_path / "straight")


def test_model_is_usable_while_its_training_continues(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(capsys, arguments(corpus, out, train__steps=9))[0] == 0
    assert model_folder.describe(out).finished
    process = begin(arguments(corpus, out, train__steps=50_000))
    wait_for(
        lambda: any(int(path.name[-8:]) > 9 for path in out.glob("checkpoints/step-*")),
        lambda: process.poll() is not None,
    )
    process.terminate()
    assert process.wait(PATIENCE) == 130, process.said
    assert not model_folder.describe(out).finished
    transduce.load(out).translate(["ka lo"])


def test_training_does_not_resume_with_other_text(corpus, tmp_path, capsys, monkeypatch):
    out, other = tmp_path / "out", write_texts(tmp_path, "other", 50, seed=5)
    assert run(capsys, arguments(corpus, out, train__steps=6))[0] == 0
    before = digests(out)
    for more, named in (
        (["--train", *other], "data.corpora"),
        (["--valid", *other], "data.valid"),
        (["--to", "fr"], "data.target"),
    ):
        status, said = run(capsys, arguments(more, out, train__steps=9))
        assert status == 2 and f"other text ({named})." in said
        assert said.endswith(
            "To learn from other text, continue from the model in a new folder (--init).\n"
        )
    status, said = run(capsys, arguments(corpus, out, train__steps=3))
    assert status == 2 and "is finished at 6 updates" in said
    status, said = run(capsys, [*arguments(corpus, out, train__steps=9), "--init", str(out)])
    assert (
        status == 2
        and "can't be both the model to continue from and the output folder." in said
        and "Choose another output folder (--out)" in said in said
    )
    assert digests(out) == before, "nothing of it has changed"
    monkeypatch.chdir(tmp_path)
    elsewhere = [os.path.relpath(word) if Path(word).is_file() else word for word in corpus]
    assert run(capsys, arguments(elsewhere, out, train__steps=12))[0] == 0


def test_training_resumes_without_its_test_set(corpus, tmp_path, capsys):
    out, test = tmp_path / "out", write_texts(tmp_path, "test", 5, seed=5)
    first = arguments([*corpus, "--test", *test], out, train__steps=4, train__minutes=10)
    assert run(capsys, first)[0] == 0
    Path(test[0]).unlink()
    status, said = run(capsys, arguments([], out, train__steps=6, train__minutes=20))
    assert (
        status == 0
        and "Warning: the model will not be tested" in said
        and "still ends at 6 updates" in said
    )
    assert run(capsys, arguments(["--test", *test], out, train__steps=8))[0] == 2


@pytest.mark.parametrize("gone", ["data", "checkpoints"])
def test_finished_model_stays_usable_when_it_can_not_be_extended(gone, corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(capsys, arguments(corpus, out, train__steps=6))[0] == 0
    shutil.rmtree(out / gone)
    before = digests(out)
    status, said = run(capsys, arguments(corpus, out, train__steps=9))
    assert status == 2 and "Train a new model that continues from this one (--init)." in said
    assert digests(out) == before and model_folder.describe(out).finished


def test_fewer_updates_than_already_made_are_refused(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(capsys, arguments(corpus, out, train__steps=6))[0] == 0
    (out / "manifest.json").unlink()  # as if it had been stopped there
    status, said = run(capsys, arguments(corpus, out, train__steps=3))
    assert status == 2 and "has made 6 updates, so train.steps can't be 3." in said
    assert model_folder.read_config(out).train.steps == 6


def test_changing_steps_with_a_cooldown_affects_the_training(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(capsys, arguments(corpus, out, train__steps=6, train__cooldown=3))[0] == 0
    said = run(capsys, arguments(corpus, out, train__steps=9, train__cooldown=3))[1]
    assert "Changed: train.steps is 9, was 6; this affects what the training learns." in said


def test_a_prepared_corpus_may_move(corpus, tmp_path, capsys, monkeypatch):
    assert (
        run(capsys, ["prepare", *corpus, "--out", str(tmp_path / "data"), "data.vocab_size=300"])[0]
        == 0
    )
    out, moved = tmp_path / "out", tmp_path / "moved"
    assert run(capsys, arguments(["--train", str(tmp_path / "data")], out, train__steps=6))[0] == 0
    (tmp_path / "data").rename(moved)
    monkeypatch.chdir(tmp_path)
    status, said = run(capsys, arguments([], out, train__steps=9))
    assert (
        status == 2
        and "If you have moved it, name its new folder as the corpus. If not: Train a new" in said
    )
    status, said = run(capsys, arguments(["--train", "moved"], out, train__steps=9))
    assert status == 0
    other = write_texts(tmp_path, "other", 200, seed=9)
    prepare = [
        "prepare",
        "--train",
        *other,
        "--vocabulary",
        "moved",
        "--out",
        "rebuilt",
        "data.holdout=12",
    ]
    assert run(capsys, prepare)[0] == 0
    status, said = run(capsys, arguments(["--train", "rebuilt"], out, train__steps=12))
    assert status == 2 and "rebuilt is not the corpus with which the training of" in said
    assert (
        run(capsys, ["prepare", *corpus, "--out", str(tmp_path / "data"), "data.vocab_size=290"])[0]
        == 0
    )
    status, said = run(capsys, arguments(["--train", str(tmp_path / "data")], out, train__steps=12))
    assert (
        status == 2 and f"The vocabulary of {tmp_path / 'data'} differs from that of {out}" in said
    )


def test_changes_are_named_with_what_they_mean(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(capsys, arguments(corpus, out, train__steps=6))[0] == 0
    for change, was in (
        ({"model__d_model": 32}, 16),
        ({"data__max_tokens": 256}, 128),
        ({"train__seed": 2}, 1),
    ):
        ((name, value),) = change.items()
        status, said = run(capsys, arguments(corpus, out, train__steps=12, **change))
        assert status == 2
        assert said == (
            f"transduce: {out} was started with {name.replace('__', '.')} = {was}, which can't change to "
            f"{value}. Leave {name.replace('__', '.')} out, or train into a new folder.\n"
        )
    has_vocabulary = "has a vocabulary of 300 tokens already. Leave data.vocab_size out."
    for size in (270, 400):
        status, said = run(capsys, arguments(corpus, out, train__steps=12, data__vocab_size=size))
        assert status == 2 and has_vocabulary in said
        other = [*arguments(corpus, tmp_path / "other", data__vocab_size=size), "--init", str(out)]
        status, said = run(capsys, other)
        assert status == 2 and has_vocabulary in said
    changes = {
        "train__steps": 9,
        "train__keep_last": 4,
        "train__label_smoothing": 0.2,
        "model__dropout": 0.2,
    }
    status, said = run(capsys, arguments(corpus, out, **changes))
    assert status == 0
    lines = said.splitlines()
    other = "; this affects what the training learns."
    assert {line for line in lines if line.startswith("Changed: ")} == {
        "Changed: train.steps is 9, was 6.",
        "Changed: train.keep_last is 4, was 3.",
        f"Changed: train.label_smoothing is 0.2, was 0.1{other}",
        f"Changed: model.dropout is 0.2, was 0.1{other}",
    }
    status, said = run(capsys, ["train", "--out", str(out), "train.steps=12"])  # the rest is known
    assert status == 0 and "Resuming at step 9 of 12" in said


def test_automatic_options_may_stay_automatic_on_resume(corpus, tmp_path, capsys):
    open_ones = {
        "train__accumulate": 0,
        "train__save_every": 0,
        "train__validate_every": 0,
        "train__threads": 0,
    }
    for steps in (3, 6):
        status, said = run(
            capsys, arguments(corpus, tmp_path / "out", train__steps=steps, **open_ones)
        )
        assert status == 0
        assert "Changed: " not in said.replace("Changed: train.steps", "")
    config = model_folder.read_config(tmp_path / "out")
    started = {
        "pairs": 300,
        "parameters": count_parameters(config.model),
        "device": device_name(config, torch.device("cpu")),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    events = [{**event} for event in read_events(tmp_path / "out/journal.jsonl")]
    assert [event for event in events if event.pop("time") and event["event"] == "start"] == [
        {"event": "start", "step": step, "steps": step + 3} | started for step in (0, 3)
    ]


def given(corpus: list[str], **changes: object) -> dict[str, object]:
    """The same as `arguments`, for Python."""
    files = {"data.corpora": [{"files": corpus[1:3]}], "data.valid": tuple(corpus[4:6])}
    return changed(OPTIONS | files, **changes)


def test_events_before_the_first_checkpoint_are_not_repeated(corpus, tmp_path):
    options = given(corpus, train__steps=30, train__save_every=30)
    train(options, tmp_path / "straight")
    start(Settings.of(options), tmp_path / "out", None, False, torch.device("cpu"))
    noted = (tmp_path / "straight/journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out/journal.jsonl").write_bytes(b"".join(noted[:3]))  # killed after update 20
    train(options, tmp_path / "out")
    assert learnt(tmp_path / "out") == learnt(tmp_path / "straight")


@pytest.mark.parametrize("gone", [["config.toml"], ["config.toml", "tokenizer.model"]])
def test_start_without_a_configuration_is_made_again(gone, corpus, tmp_path):
    start(
        Settings.of(given(corpus, train__seed=5)),
        tmp_path / "out",
        None,
        False,
        torch.device("cpu"),
    )
    for name in gone:
        (tmp_path / "out" / name).unlink()
    for out in (tmp_path / "out", tmp_path / "straight"):
        train(given(corpus, train__steps=6), out)
    assert digests(tmp_path / "out") == digests(tmp_path / "straight")


def test_back_translations_may_move_with_their_training() -> None:
    name = model_folder.BACK_TRANSLATION
    assert _place(f"/a/b/{name}/pairs.jsonl") == Path(name, "pairs.jsonl")
    assert _place("/a/b/pairs.jsonl") == Path("/a/b/pairs.jsonl")


CHOSEN = {  # by a first start, if they are at their defaults
    "train.accumulate": 4,
    "train.save_every": 50,
    "train.validate_every": 60,
    "train.threads": 3,
    "train.precision": "bfloat16",
    "data.placeholders": "masked",
}


def begun(out: Path, **options: object) -> Path:
    """The folder of a training that has begun, with its options only."""
    out.mkdir()
    known = {
        "data.corpora": [{"files": ["/a/b.en", "/a/b.de"], "weight": 2.0}],
        "data.valid": ["/a/v.tsv"],
        "data.source": "en",
        "model.vocab_size": 300,
        "model.source_vocab_size": 200,
    }
    settings = Settings.of(changed(known | CHOSEN, **options))
    model_folder.write_config(out, settings.config())
    return out


def going(out: Path, **options: object) -> Continued:
    return continued(Settings("recipe", changed({}, **options)), out)


def test_what_the_first_start_chose_stays(tmp_path):
    out = begun(tmp_path / "out")
    old = model_folder.read_config(out)
    defaults = {name.replace(".", "__"): flatten(RunConfig())[name] for name in CHOSEN}
    of_tokenizer = {"model__vocab_size": 9, "model__source_vocab_size": 8, "data__vocab_size": 200}
    for options in ({}, defaults, of_tokenizer, {"data__target": "tgt"}):
        found = going(out, **options)
        assert found.config == old and not found.changes
        assert found.config.sources == old.sources
    changes = {"train__save_every": 7, "train__threads": 5, "train__precision": "float32"}
    changes |= {"train__validate_every": 8, "model__attention_dropout": 0.3}
    found = going(out, **changes, data__test=["t.tsv"], model__dropout=0.2, decode__beam_size=9)
    assert found.changes == {
        "train.save_every": (50, 7),
        "train.validate_every": (60, 8),
        "train.threads": (3, 5),
        "train.precision": ("bfloat16", "float32"),
        "model.attention_dropout": (0.0, 0.3),
        "data.test": ((), ("t.tsv",)),
        "model.dropout": (0.1, 0.2),
        "decode.beam_size": (4, 9),
    }
    assert found.config.sources["train.threads"] == "recipe"
    assert found.config.sources["train.accumulate"] == "calling program"
    assert (found.config.train.save_every, found.config.data.test) == (7, ("t.tsv",))
    (out / "sources.json").write_text("damaged")
    assert going(out, **changes).config.sources is None


@pytest.mark.parametrize(
    ("change", "was"),
    [
        ({"train__accumulate": 2}, 4),
        ({"train__seed": 2}, 1),
        ({"train__sample_target": 0.5}, 0.0),
        ({"train__select_by": "bleu"}, "perplexity"),
        ({"model__d_ff": 8}, 2048),
        ({"data__placeholders": "kept"}, "masked"),
        ({"data__max_length": 9}, 256),
    ],
)
def test_what_a_training_began_with_is_fixed(change, was, tmp_path):
    out = begun(tmp_path / "out")
    ((name, value),) = change.items()
    name = name.replace("__", ".")
    with pytest.raises(UserError) as refused:
        going(out, **change)
    assert refused.value.cause == (
        f"{out} was started with {name} = {was}, which can't change to {value}."
    )
    with pytest.raises(UserError, match="has a vocabulary of 200 tokens already"):
        going(out, data__vocab_size=300)


def test_a_training_resumes_with_its_own_text_only(tmp_path, monkeypatch):
    out = begun(tmp_path / "out")
    same: dict[str, object] = {"files": ["/a/b.en", "/a/../a/b.de"], "weight": 2.0}
    assert going(out, data__corpora=[same], data__source="en").text.corpora[0].weight == 2.0
    monkeypatch.chdir("/")
    going(out, data__corpora=[same | {"files": ["a/b.en", "a/b.de"]}], data__valid=["a/v.tsv"])
    for options, named in (
        ({"data__corpora": [same | {"weight": 1.0}]}, "data.corpora"),
        ({"data__corpora": [same | {"files": ["/a/b.de", "/a/b.en"]}]}, "data.corpora"),
        ({"data__corpora": [same, same]}, "data.corpora"),
        ({"data__valid": ["/a/w.tsv"]}, "data.valid"),
        ({"data__source": "fr", "data__target": "it"}, "data.source and data.target"),
        ({"data__directions": ["en-de"]}, "data.directions"),
    ):
        with pytest.raises(UserError) as refused:
            going(out, **options)
        assert f"started with other text ({named})." in str(refused.value)
        assert refused.value.hint and refused.value.hint.options == ("init",)
    # A prepared corpus may have moved, unless it lies in the folder of the training.
    (tmp_path / "data").mkdir()
    (tmp_path / "data/preparation.json").write_text("{}")
    moved = [{"files": [str(tmp_path / "data")]}]
    assert going(out, data__corpora=moved).text.corpora[0].files == (str(tmp_path / "data"),)
    with pytest.raises(UserError, match=r"other text \(data\.valid\)"):
        going(out, data__corpora=moved, data__valid=["/a/w.tsv"])
    (out / "data").mkdir()
    with pytest.raises(UserError, match=r"other text \(data\.corpora\)"):
        going(out, data__corpora=moved)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("train.steps", {}, True),
        ("train.minutes", {}, True),
        ("train.steps", {"train.cooldown": 3}, False),
        ("train.minutes", {"train.risk_steps": 3}, False),
        ("train.patience", {"train.cooldown": 3, "train.risk_steps": 3}, True),
        ("decode.beam_size", {"train.cooldown": 3}, True),
        ("train.keep_last", {}, True),
        ("train.shard", {}, True),
        ("data.test", {}, True),
        ("train.threads", {}, False),
        ("model.dropout", {}, False),
    ],
)
def test_some_changes_do_not_affect_what_is_learnt(name, options, expected):
    assert is_harmless(name, configure(options)) is expected


@pytest.mark.parametrize(
    ("own", "first", "is_same"),
    [
        (b"", b"", True),
        (b"x", b"x", True),
        (b"y", b"x", False),
        (b"", b"x", False),
        (b"x", b"", False),
    ],
)
def test_all_ranks_see_the_same_folder(own, first, is_same, tmp_path, rank_0_says):
    rank_0_says.append(digest_of(first) if first else "")
    if own:
        (tmp_path / "manifest.json").write_bytes(own)
    said = "is not the folder that rank 0 uses"
    with contextlib.nullcontext() if is_same else pytest.raises(UserError, match=said):
        check_shared(tmp_path, Ranks(1, 2))
    assert not rank_0_says


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_every_rank_loads_the_checkpoint_that_rank_0_chose(tmp_path, rank_0_says):
    written(tmp_path, range(1, 4), float)
    second = tmp_path / "step-00000002"
    rank_0_says += [second.name, digest_of((second / "manifest.json").read_bytes())]
    model = build(MODEL)
    optimizer = make_optimizer(model.parameters(), TRAIN)
    assert load_newest(tmp_path, model, optimizer, Ranks(1, 2)).step == 2 and not rank_0_says
    assert same(weights(model), load_file(second / "model.safetensors"))


@pytest.mark.parametrize("finished", [False, True])
def test_a_training_that_can_not_resume_says_what_is_possible(finished, tmp_path):
    out = begun(tmp_path / "out")
    if finished:
        (out / "manifest.json").write_text("{}")
    remedy = (
        "Train a new model that continues from this one."
        if finished
        else "Train into a new folder."
    )
    model = build(MODEL)
    with pytest.raises(UserError) as refused:
        load_newest(out / "checkpoints", model, make_optimizer(model.parameters(), TRAIN))
    assert str(refused.value) == f"{out / 'checkpoints'} holds no intact checkpoint. {remedy}"
    assert refused.value.hint and refused.value.hint.options == (("init",) if finished else ())
    data = DataConfig(corpora=(CorpusConfig(("gone",)),))
    with pytest.raises(UserError) as refused:
        open_data(data, DataConfig(), out, hashes=True)
    assert str(refused.value) == (
        f"The prepared corpus of {out} is neither in {out / 'data'} nor in gone. If you have moved it, name its new "
        f"folder as the corpus. If not: {remedy}"
    )


def test_a_training_has_the_threads_of_its_options(corpus, tmp_path):
    seen: list[int] = []

    def stop() -> bool:
        seen.append(torch.get_num_threads())
        return True

    torch.set_num_threads(2)
    possible = torch.get_num_threads()  # 1 in a process that forked after torch had computed
    torch.set_num_threads(1)
    train(given(corpus, train__threads=2), tmp_path / "out", stop=stop)
    assert seen == [possible] and torch.get_num_threads() == 1


@pytest.mark.parametrize(("world", "is_warned"), [(2, False), (3, True)])
def test_processes_without_micro_batches_are_reported(world, is_warned, tmp_path, capsys):
    task = training(
        tmp_path, reverse_rows(9, 1), MODEL, replace(TRAIN, accumulate=2), perplexities()
    )
    task.ranks = Ranks(0, world)
    _log_start(task, SimpleNamespace(facts=SimpleNamespace(pairs=9)))
    said = " ".join(capsys.readouterr().err.split())
    warning = (
        "Warning: an update has 2 micro-batches (train.accumulate), so some of 3 processes have no work. "
        "Resume with fewer processes, or start a new training."
    )
    assert said == (warning if is_warned else "")


def test_tags_that_the_vocabulary_lacks_are_refused(corpus, tmp_path):
    with pytest.raises(UserError, match=r"model\.target_tag is for models that were imported"):
        train(given(corpus, model__target_tag=True), tmp_path / "out")
