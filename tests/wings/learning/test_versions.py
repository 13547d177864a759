"""Tests of transduce/wings/learning/versions.py."""

from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.wings.learning.versions import Versions


def make(path: Path, text: str) -> Path:
    path.mkdir(parents=True)
    (path / "config.toml").write_text(text)
    return path


def added(versions: Versions, text: str) -> int:
    with versions.locked():
        return versions.add(make(versions.folder / "next", text))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make(tmp_path / "model", "one")


def said(model: Path) -> str:
    return (model / "config.toml").read_text()


def test_a_model_is_its_only_version_and_stays_a_folder(model: Path) -> None:
    versions = Versions(model)
    assert (versions.numbers, versions.current, versions.path(1)) == ([1], 1, model)
    versions.switch(1)
    assert not model.is_symlink() and not versions.folder.exists()


def test_a_switch_leads_to_another_version_and_back(model: Path) -> None:
    versions = Versions(model)
    number = added(versions, "two")
    assert (number, versions.current, said(model)) == (2, 1, "one")
    for number, text in ((2, "two"), (1, "one"), (2, "two")):
        versions.switch(number)
        again = Versions(model)
        assert (again.current, again.numbers, said(model)) == (number, [1, 2], text)
        assert said(again.path(number)) == text
    assert added(versions, "three") == 3


def test_versions_move_with_the_model(model: Path, tmp_path: Path) -> None:
    versions = Versions(model)
    added(versions, "two")
    versions.switch(2)
    other = tmp_path / "other"
    other.mkdir()
    model.rename(other / "model")
    versions.folder.rename(other / "model.versions")
    assert said(other / "model") == "two"


def test_a_switch_that_was_interrupted_is_completed(model: Path) -> None:
    versions = Versions(model)
    added(versions, "two")
    model.rename(versions.folder / "1")  # killed before the link was made
    assert Versions(model).current == 1
    assert said(model) == "one"


def test_what_a_version_has_learnt_includes_what_the_versions_before_it_had(model: Path) -> None:
    versions = Versions(model)
    with versions.locked():
        versions.note("version", **{"version": 2, "from": 1, "corrections": [5, 6]})
        versions.note("refused", **{"from": 2, "corrections": [9], "refused": "a\u2028b"})
        versions.note("version", **{"version": 3, "from": 2, "corrections": [7]})
        versions.note("version", **{"version": 4, "from": 1, "corrections": [8]})
    assert versions.learnt(1) == set()
    assert versions.learnt(3) == {5, 6, 7}
    assert versions.learnt(4) == {8}


def test_unknown_versions_missing_models_and_two_processes(model: Path, tmp_path: Path) -> None:
    versions = Versions(model)
    with pytest.raises(UserError, match=r"has no version 7.*Choose one of its versions: 1"):
        versions.path(7)
    with pytest.raises(UserError, match="is not a model folder"):
        Versions(tmp_path / "none")
    with versions.locked(), pytest.raises(UserError, match="Another process"), versions.locked():
        pass
