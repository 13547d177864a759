"""What `transduce distill` passes on: to the teachers, and to the preparation."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import run
from models import make_model
from transduce.decoding import loading
from transduce.system.machine import cores
from transduce.text.languages import Direction
from transduce.wings.synthetic import command
from transduce.wings.synthetic import distill as distilling


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("teacher") / "model", {}, updates=0)


@pytest.fixture
def translator(monkeypatch):
    """A teacher that knows German to English and English to French, and what it was called with."""
    called = SimpleNamespace(direction=Direction("de", "en"), pivot="")
    made = SimpleNamespace(
        engine=SimpleNamespace(name="quick"),
        directions=[Direction("de", "en"), Direction("en", "fr")],
        require_direction=lambda: called.direction,
        direct=lambda direction: SimpleNamespace(pivot="", directs=direction),
    )

    def load(folders, options, **which):
        called.loaded = folders, options, which
        made.pivot = called.pivot
        return made

    def distill(translator, folders, data, out, **options):
        called.distilled = translator, folders, data, out, options
        return "prepared"

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(distilling, "distill", distill)
    monkeypatch.setattr(command, "print_prepared", lambda prepared: print(prepared))
    return called


def test_options_of_the_search_and_of_the_corpus(teacher, translator, tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("ka\tzu\n")
    (tmp_path / "b.tsv").write_text("lo\tdu\n")
    files = "--train", tmp_path / "a.tsv", "--valid", tmp_path / "b.tsv"
    given = *files, "--out", tmp_path / "out", "--from", "de", "--to", "en"
    changed = "data.max_length=30", "decode.beam_size=7"
    status, printed, said = run(capsys, "distill", teacher, *given, "--engine", "torch", *changed)
    assert (status, printed) == (0, "prepared\n") and "Engine: quick" in said
    which = {"engine": "torch", "source": "de", "target": "en"}
    assert translator.loaded == ([teacher], {"decode.beam_size": 7}, which)
    found, folders, data, out, options = translator.distilled
    assert found.directs == Direction("de", "en"), "also if the pivot is better"
    assert (folders, out, options) == (
        [teacher],
        tmp_path / "out",
        {"keep_original": False, "threads": cores()},
    )
    assert (data.source, data.target, data.max_length) == ("de", "en", 30)
    assert [corpus.files for corpus in data.corpora] == [(str(tmp_path / "a.tsv"),)]
    assert (data.valid, data.test) == ((str(tmp_path / "b.tsv"),), ())


def test_an_ensemble_teaches_and_originals_are_kept(teacher, translator, tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("ka\tzu\n")
    translator.direction = Direction("xx", "yy")  # unknown, as one of a model without languages
    given = "--train", tmp_path / "a.tsv", "--out", tmp_path / "out", "--keep-original"
    assert run(capsys, "distill", teacher, *given, "--ensemble", tmp_path / "second")[0] == 0
    found, folders, data, _, options = translator.distilled
    assert folders == translator.loaded[0] == [teacher, tmp_path / "second"]
    assert options["keep_original"] and not hasattr(found, "directs")
    assert (data.source, data.target) == ("xx", "yy")
    assert data.tokenizer == "bpe" and translator.loaded[2]["source"] == ""


def test_a_teacher_translates_one_direction_directly(teacher, translator, tmp_path, capsys):
    for name in ("a.de", "a.en", "a.fr"):
        (tmp_path / name).write_text("ka\n")
    given = "--out", tmp_path / "out", "--train"
    three = [tmp_path / name for name in ("a.de", "a.en", "a.fr")]
    status, _, said = run(capsys, "distill", teacher, *given, *three)
    assert status == 2 and "these languages have several: de-en" in said
    assert run(capsys, "distill", teacher, *given, *three, "--from", "de", "--to", "en")[0] == 0
    [corpus] = translator.distilled[2].corpora
    assert corpus.files == tuple(map(str, three[:2]))
    del translator.distilled
    translator.direction, translator.pivot = Direction("de", "fr"), "en"
    status, _, said = run(capsys, "distill", teacher, *given, three[0], three[2])
    assert status == 2 and "has no direction de-fr" in said and "one of de-en, en-fr" in said
    assert not hasattr(translator, "distilled")
