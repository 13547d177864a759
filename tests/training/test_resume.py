"""A training is a function of its inputs: whatever interrupts it, the same command ends with the same bits."""

import hashlib
import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import transduce
from corpora import TINY, changed, reverse_texts, spelt, write_texts
from forked import COMMAND, Forked, killed
from transduce import cli, model_folder
from transduce.config.settings import Settings
from transduce.system.files import verify
from transduce.system.journal import Event, read_events
from transduce.training.resume import _place
from transduce.training.run import train
from transduce.training.start import start
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
