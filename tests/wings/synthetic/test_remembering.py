"""Other text that a fine-tuning repeats: pairs, or a text that the model translates first."""

import json
from pathlib import Path

import numpy as np
import pytest

import transduce
from command_line import run
from corpora import TINY, reverse_texts, spelt, write_texts
from models import make_model
from transduce import model_folder
from transduce.config.settings import CALLER, Settings
from transduce.preparation.prepared import open_prepared
from transduce.system.errors import UserError
from transduce.wings.synthetic import remembering
from transduce.wings.synthetic.remembering import with_remembered

OPTIONS = {"train.steps": 4, "train.save_every": 2, "train.validate_every": 2, "data.holdout": 20}
OPTIONS |= {name: value for name, value in TINY.items() if name.startswith("train.")}
COUNT = 150  # lines of the other text
OPTIONS |= {"data.max_tokens": 256, "train.select_by": "chrf"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remembering")
    make_model(folder / "model", {})
    write_texts(folder, "new", 200, seed=8, longest=3)
    sources, targets = reverse_texts(COUNT, seed=9)
    (folder / "general.txt").write_text(
        "\n".join([*sources[:60], "", *sources[:60], *sources[60:]])
    )
    (folder / "general.tsv").write_text(
        "".join(f"{one}\t{two}\n" for one, two in zip(sources, targets, strict=True))
    )
    (folder / "general.en").write_text("".join(f"{line}\n" for line in sources))
    (folder / "general.de").write_text("".join(f"{line}\n" for line in targets))
    return folder


def settings_of(place: Path, **more: object) -> Settings:
    files = [str(place / "new.src"), str(place / "new.tgt")]
    return Settings(CALLER, {"data.corpora": [{"files": files}], **OPTIONS, **more})


def remembered(place: Path, out: Path, *files: str) -> tuple[Settings, list[tuple[str, str]]]:
    """The options, and all pairs to repeat."""
    settings = with_remembered(
        settings_of(place), out, place / "model", [str(place / file) for file in files]
    )
    prepared = open_prepared(Path(settings["data.remember"]))
    pairs = [(pair.source, pair.target) for pair in prepared.valid()]
    rows = np.arange(len(prepared.mixture))
    sides = (
        (prepared.mixture.sources, prepared.tokenizer.source),
        (
            prepared.mixture.targets,
            prepared.tokenizer.target,
        ),
    )
    texts = [vocabulary.decode([row.tolist() for row in side(rows)]) for side, vocabulary in sides]
    return settings, [*pairs, *zip(*texts, strict=True)]


def test_a_text_is_repeated_with_the_translations_of_the_model(place, tmp_path):
    settings, pairs = remembered(place, tmp_path / "out", "general.txt")
    sources = reverse_texts(COUNT, seed=9)[0]
    translator = transduce.load(place / "model")
    expected = {
        (source, each.text)
        for source, each in zip(sources, translator.translate(sources), strict=True)
        if each.text and not {"cut", "loop"} & {*each.flags}
    }
    assert len(expected) > 20 and {*pairs} == expected
    assert settings["train.max_forgotten"] == remembering.MAX_CHANGED
    assert Path(settings["data.remember"]) == (tmp_path / "out/remembered/data").resolve()


@pytest.mark.parametrize("files", [("general.tsv",), ("general.en", "general.de")])
def test_pairs_are_repeated_as_they_are(place, tmp_path, files):
    settings, pairs = remembered(place, tmp_path / "out", *files)
    assert {*pairs} == {*zip(*reverse_texts(COUNT, seed=9), strict=True)}
    assert "train.max_forgotten" not in settings, "these are real translations"


def test_a_text_in_the_target_language_is_not_taken_for_a_source(place, tmp_path):
    with pytest.raises(UserError, match="text to repeat in 'de'"):
        with_remembered(
            settings_of(place), tmp_path / "out", place / "model", [str(place / "general.de")]
        )


def test_few_lines_of_a_long_text_are_translated(place, tmp_path, monkeypatch):
    monkeypatch.setattr(remembering, "MIN_TRANSLATED", 10)
    monkeypatch.setattr(remembering, "read_corpus", lambda *_: range(17))
    remembered(place, tmp_path / "out", "general.en")
    records = (tmp_path / "out/remembered/en-de.jsonl").read_text().splitlines()
    sources = [json.loads(record)["source"] for record in records]
    lines = reverse_texts(COUNT, seed=9)[0]
    some = [lines[COUNT * number // 17] for number in range(17)]
    assert sources == [each for each in some if each in sources], "at equal distances"


def test_an_interrupted_call_goes_on(place, tmp_path, monkeypatch):
    whole = remembered(place, tmp_path / "whole", "general.en")[1]
    stop = remembering.prepare
    monkeypatch.setattr(remembering, "prepare", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        remembered(place, tmp_path / "out", "general.en")
    monkeypatch.setattr(remembering, "prepare", stop)
    journal = tmp_path / "out/remembered/en-de.translations.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:30]))
    assert remembered(place, tmp_path / "out", "general.en")[1] == whole
    assert journal.read_bytes().splitlines(keepends=True)[:30] == lines[:30]
    with pytest.raises(UserError, match="another model, engine, text or options"):
        remembered(place, tmp_path / "out", "new.src")


def test_the_command_repeats_a_text_and_resumes(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["train", "--init", place / "model", "--train", place / "new.src", place / "new.tgt"]
    command += ["--remember", place / "general.tsv", *spelt(OPTIONS)]
    status, _, said = run(capsys, *command, "--out", "tuned", "train.max_forgotten=0.5")
    assert status == 0
    metrics = model_folder.read_metrics(Path("tuned"))
    assert None not in metrics["tuning"]["before"].values()
    assert "\nBefore the fine-tuning: validation perplexity" in said
    card = (tmp_path / "tuned/README.md").read_text()
    assert card.count("| fine-tuning | chrF ") == 2 and "on other text" in card
    status, _, said = run(capsys, *command, "--out", "tuned", "train.max_forgotten=0.5")
    assert status == 0 and "is finished" in said


@pytest.mark.parametrize("more", [["--forget"], ["--keep-optimizer"]])
def test_contradictions_are_refused(place, tmp_path, capsys, more):
    command = ["train", "--init", place / "model", "--train", place / "new.src", place / "new.tgt"]
    command += ["--remember", place / "general.tsv", "--out", tmp_path / "out", *more]
    status, _, said = run(capsys, *command)
    assert status == 2 and "repeats other text only if" in said and "--remember" in said


def test_nothing_can_be_forgotten_from_scratch(place, tmp_path, capsys):
    command = ["train", "--train", place / "new.src", place / "new.tgt", "--out", tmp_path / "out"]
    status, _, said = run(capsys, *command, "--forget")
    assert status == 2 and "Only the fine-tuning" in said and "--forget" in said


def test_without_a_corpus_the_user_is_warned(place, tmp_path, capsys):
    command = ["train", "--init", place / "model", "--train", place / "new.src", place / "new.tgt"]
    status, _, said = run(capsys, *command, "--out", tmp_path / "out", *spelt(OPTIONS))
    assert status == 0 and "has no corpus to repeat" in said and "--remember" in said
    assert model_folder.read_metrics(tmp_path / "out")["tuning"]["after"]["general"] is None


def test_too_few_pairs_to_measure_are_named(place, tmp_path, capsys):
    (tmp_path / "few.tsv").write_text("ka lo\tfe zu\nmi nu\tpo ga\n")
    with_remembered(
        settings_of(place), tmp_path / "out", place / "model", [str(tmp_path / "few.tsv")]
    )
    assert "too few to measure" in capsys.readouterr().err


def test_unusable_files_are_refused(place, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    for file, message in (("empty.txt", "no line has text"), ("missing.txt", "missing.txt")):
        with pytest.raises(UserError, match=message):
            with_remembered(
                settings_of(place), tmp_path / "out", place / "model", [str(tmp_path / file)]
            )
