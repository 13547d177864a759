"""Tests of the names of the code that runs."""

import shutil

from transduce.system import revision


def test_the_revision_and_the_hash_stay_those_of_the_code_that_was_loaded(tmp_path, monkeypatch):
    loaded = revision.revision(), revision.code_hash()
    monkeypatch.setattr(revision, "SOURCE_FOLDER", tmp_path)
    assert (revision.revision(), revision.code_hash()) == loaded and loaded[0].startswith("0.")


def test_the_hash_is_that_of_the_python_files_and_recipes(tmp_path, monkeypatch):
    copy = tmp_path / "package"
    shutil.copytree(revision.SOURCE_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    original = revision.code_hash()
    monkeypatch.setattr(revision, "SOURCE_FOLDER", copy)
    hash_of = revision.code_hash.__wrapped__
    assert hash_of() == original
    (copy / "notes.md").write_text("no code")
    assert hash_of() == original
    (copy / "recipes/multi30k-en-de.toml").write_text("")
    assert (changed := hash_of()) != original
    (copy / "cli.py").rename(copy / "command.py")
    assert hash_of() not in (original, changed)
