"""What `transduce distill` passes on: to the teachers, and to the preparation."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import run
from corpora import reverse_texts
from models import make_model
from small_corpus import SHORT
from transduce import load, model_folder
from transduce.config.schema import DecodeConfig
from transduce.decoding import loading
from transduce.decoding.directions import Scores
from transduce.decoding.translator import Translator
from transduce.preparation.prepared import open_prepared
from transduce.system.machine import cores
from transduce.text.languages import Direction
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.synthetic import command
from transduce.wings.synthetic import distill as distilling


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("teacher") / "model", {}, updates=0)


@pytest.fixture
def called(monkeypatch):
    """What a teacher that knows German to English and English to French is called with."""
    called = SimpleNamespace(directions=[Direction("de", "en"), Direction("en", "fr")])

    def load(folders, options, **which):
        called.loaded = folders, options, which
        return Translator(
            SimpleNamespace(name="quick"),
            Tokenizer.load(folders[0]),
            DecodeConfig(),
            directions=called.directions,
            scores=Scores({}, {"de-en": {"direct": 20.0, "fr": 50.0}}),
        )

    def distill(translators, folders, data, out, **options):
        called.distilled = translators, folders, data, out, options
        return "prepared"

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(distilling, "distill", distill)
    monkeypatch.setattr(command, "print_prepared", lambda prepared: print(prepared))
    return called


def test_options_of_the_search_and_of_the_corpus(teacher, called, tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("ka\tzu\n")
    (tmp_path / "b.tsv").write_text("lo\tdu\n")
    files = "--train", tmp_path / "a.tsv", "--valid", tmp_path / "b.tsv"
    given = *files, "--out", tmp_path / "out", "--from", "de", "--to", "en"
    changed = "data.max_length=30", "decode.beam_size=7"
    status, printed, said = run(capsys, "distill", teacher, *given, "--engine", "torch", *changed)
    assert (status, printed) == (0, "prepared\n") and "Engine: quick" in said
    assert called.loaded == ([teacher], {"decode.beam_size": 7}, {"engine": "torch"})
    translators, folders, data, out, options = called.distilled
    assert {name: each.direction for name, each in translators.items()} == {
        "": Direction("de", "en")
    }
    assert not translators[""].hops, "although the pivot was better"
    assert (folders, out) == ([teacher], tmp_path / "out")
    assert options == {
        "own_vocabulary": False,
        "vocab_size": 0,
        "keep_original": False,
        "texts": {},
        "threads": cores(),
    }
    assert (data.source, data.target, data.max_length) == ("de", "en", 30)
    assert [corpus.files for corpus in data.corpora] == [(str(tmp_path / "a.tsv"),)]
    assert (data.valid, data.test) == ((str(tmp_path / "b.tsv"),), ())


def test_an_ensemble_teaches_and_originals_are_kept(teacher, called, tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("ka\tzu\n")
    called.directions = [Direction("src", "tgt")]  # those of a model without languages
    given = "--train", tmp_path / "a.tsv", "--out", tmp_path / "out", "--keep-original"
    second = make_model(tmp_path / "second", {"data.licence": "cc-by-nc-4.0"}, updates=0)
    assert run(capsys, "distill", teacher, *given, "--ensemble", second)[0] == 0
    _, folders, data, _, options = called.distilled
    assert folders == called.loaded[0] == [teacher, second]
    assert options["keep_original"]
    assert (data.source, data.target, data.licence) == ("src", "tgt", "cc-by-nc-4.0")
    assert data.tokenizer == "bpe"


def test_a_teacher_translates_directly(teacher, called, tmp_path, capsys):
    for name in ("a.de", "a.en", "a.fr"):
        (tmp_path / name).write_text("ka\n")
    given = "--out", tmp_path / "out", "--train"
    three = [tmp_path / name for name in ("a.de", "a.en", "a.fr")]
    status, _, said = run(capsys, "distill", teacher, *given, *three)
    assert status == 2 and "has no direction en-de" in said and "one of de-en, en-fr" in said
    status, _, said = run(capsys, "distill", teacher, *given, three[0], three[2])
    assert status == 2 and "has no direction de-fr" in said, "although there is a pivot"
    # The names of the files say what the teacher must translate.
    status, _, said = run(capsys, "distill", teacher, *given, three[1], three[0])
    assert status == 2 and "has no direction en-de" in said
    assert not hasattr(called, "distilled")
    assert run(capsys, "distill", teacher, *given, *three, "--from", "de", "--to", "en")[0] == 0
    [corpus] = called.distilled[2].corpora
    assert corpus.files == tuple(map(str, three[:2]))
    status, _, said = run(capsys, "distill", teacher, "--out", tmp_path / "out", "--to", "it")
    assert status == 2 and "does not translate to it" in said


def test_several_directions_have_a_translator_each(teacher, called, tmp_path, capsys):
    for name in ("a.de", "a.en", "a.fr"):
        (tmp_path / name).write_text("ka\n")
    given = "--out", tmp_path / "out", "--train", *tmp_path.glob("a.*"), "data.vocab_size=270"
    wanted = "--from", "de,en", "--to", "en,fr"
    status, _, said = run(capsys, "distill", teacher, *given, *wanted, "--own-vocabulary")
    assert status == 2 and "has no direction de-fr" in said
    called.directions.append(Direction("de", "fr"))
    assert run(capsys, "distill", teacher, *given, *wanted, "--own-vocabulary")[0] == 0
    translators, _, data, _, options = called.distilled
    assert {*data.directions} == {*translators} == {"de-en", "en-fr", "de-fr"}
    assert all(name == str(each.direction) for name, each in translators.items())
    assert (options["own_vocabulary"], options["vocab_size"]) == (True, 270)
    status, _, said = run(capsys, "distill", teacher, *given, *wanted)
    assert status == 2 and "has a vocabulary of" in said, "the teacher's is the default"
    both = "--own-vocabulary", "--teacher-vocabulary"
    status, _, said = run(capsys, "distill", teacher, *given, *wanted, *both)
    assert status == 2 and "one vocabulary" in said


def test_texts_are_translated_from_their_language(teacher, called, tmp_path, capsys):
    for name in ("a.de", "a.en", "a.fr"):
        (tmp_path / name).write_text("ka\n")
    (tmp_path / "more.de").write_text("Das ist ein langer deutscher Satz über das Wetter.\n" * 40)
    (tmp_path / "more.txt").write_text("ka\n")
    more, unnamed = tmp_path / "more.de", tmp_path / "more.txt"
    given = "distill", teacher, "--out", tmp_path / "out", "--train", *tmp_path.glob("a.*")
    two = *given, "--from", "de,en", "--to", "en,fr"
    called.directions += [Direction("de", "fr"), Direction("en", "de")]
    assert run(capsys, *two, "--texts", more)[0] == 0
    assert called.distilled[4]["texts"] == {str(more): "de"}
    for text, why in (
        (unnamed, "has none of the source languages de, en"),
        (tmp_path / "a.fr", "has none of the source languages"),
        (tmp_path / "nowhere.de", "nowhere.de does not exist"),
        (tmp_path / "memory.tsv", "is not plain text"),
        ("-", "can't be read several times"),
    ):
        status, _, said = run(capsys, *two, "--texts", text)
        assert status == 2 and why in said, said
    assert run(capsys, *given, "--from", "en", "--to", "de", "--texts", unnamed, more)[0] == 0
    assert called.distilled[4]["texts"] == dict.fromkeys([str(unnamed), str(more)], "en")
    status, _, said = run(capsys, *given, "--from", "en", "--to", "de", "--texts", more)
    assert "100% of the lines of" in said and "look like de, not en" in said


def test_the_student_of_an_imported_teacher_has_its_own_vocabulary(imported, tmp_path, capsys):
    rows = zip(*reverse_texts(40, seed=5), strict=True)
    (tmp_path / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    files = "--train", f"en,de={tmp_path}/a.tsv", "--from", "en,de", "--to", "en,de"
    given = "distill", imported, *files, "--engine", "torch", "--out", tmp_path / "data"
    status, _, said = run(capsys, *given, "--teacher-vocabulary")
    assert status == 2 and "tags for the languages of both texts" in said
    assert run(capsys, *given, "data.vocab_size=300", "data.holdout=0")[0] == 0
    found = open_prepared(tmp_path / "data")
    assert not found.tokenizer.is_imported and found.tokenizer.target.size <= 300
    assert found.facts.options["data.licence"] == "cc-by-nc-4.0"
    assert found.facts.directions == ["en-de", "de-en"]


@pytest.mark.slow
def test_a_student_of_an_imported_teacher_is_trained_exported_and_names_the_licence(
    imported, tmp_path, capsys
):
    rows = zip(*reverse_texts(300, seed=5), strict=True)
    (tmp_path / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    files = "--train", f"en,de={tmp_path}/a.tsv", "--from", "en,de", "--to", "en,de"
    data, student = tmp_path / "data", tmp_path / "student"
    commands = (
        ("distill", imported, *files, "--engine", "torch", "--out", data, "data.vocab_size=300"),
        ("train", "--train", data, "--out", student, *SHORT[1:]),
        ("export", student, "--to", "ctranslate2", "--out", tmp_path / "export"),
        ("train", "--init", student, "--train", data, "--out", tmp_path / "tuned", *SHORT[8:]),
    )
    for each in commands:
        status, _, said = run(capsys, *each)
        assert status == 0, said
    for folder in (student, tmp_path / "tuned"):
        assert model_folder.read_config(folder).data.licence == "cc-by-nc-4.0"
        assert "cc-by-nc-4.0: not for commercial use" in (folder / "README.md").read_text()
    translator = load(student, engine="torch")
    assert translator.has_tags and not translator.tokenizer.has_own_tags
    assert translator.toward("de", "en").translate(["zu fe"])[0].text is not None
