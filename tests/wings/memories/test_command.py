"""Tests of `transduce memory`: transduce/wings/memories/command.py."""

from pathlib import Path

import pytest

from command_line import run

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.text.pairs import read_pairs
from transduce.wings.memories.database import Database, Unit


@pytest.fixture
def memory(tmp_path: Path) -> Database:
    memory = Database(tmp_path / "m.sqlite")
    memory.add([Unit("a < b\x01", "x & y", "m.tsv:1")], "en-de")
    waiting = [Unit(f"text {i}", f"Text {i}", "correction", "machine", "waiting") for i in range(3)]
    memory.add(waiting, "en-de", "anna")
    memory.add([Unit("mine", "meins")], "de-en", "bert")
    return memory


def targets(memory: Database, state: str) -> list[str]:
    return [unit.target for *_, unit in memory.units(state)]  # type: ignore[arg-type]


def test_info_counts_units(memory: Database, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "memory", "info", memory.path)
    lines = [line.split() for line in out.splitlines()]
    assert status == 0
    assert ["en-de", "anna", "waiting", "3"] in lines
    assert ["de-en", "bert", "accepted", "1"] in lines
    assert ["en-de", "accepted", "1"] in lines


def test_a_person_reviews_corrections(memory: Database, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, log = run(capsys, "memory", "review", memory.path)
    assert "text 1" in out and "machine" in out and "3 corrections waiting" in log
    first, *_ = (unit.number for *_, unit in memory.units("waiting"))
    _, _, log = run(capsys, "memory", "review", memory.path, "--reject", first, "--accept", "all")
    assert "2 corrections accepted, 1 rejected" in log
    assert targets(memory, "accepted") == ["x & y", "Text 1", "Text 2", "meins"]
    assert targets(memory, "rejected") == ["Text 0"]


def test_a_wrong_number_decides_nothing(
    memory: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions = ("--accept", "all", "--reject", 99)
    status, _, log = run(capsys, "memory", "review", memory.path, *decisions)
    assert status == 2 and "No correction 99 waits" in log
    assert len(targets(memory, "waiting")) == 3


def test_an_export_is_read_as_it_was_written(
    memory: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.tmx"
    run(capsys, "memory", "export", memory.path, "--output", file)
    assert read_all(file) == [("a < b", "x & y"), ("meins", "mine")]
    run(capsys, "memory", "export", memory.path, "--output", file, "--owner", "bert")
    assert read_all(file) == [("meins", "mine")]
    assert 'creationid="bert"' in file.read_text()


def read_all(file: Path) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs([str(file)], ("en", "de"))]


def test_all_of_an_owner_can_be_deleted(
    memory: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "3 units of anna" in run(capsys, "memory", "delete", memory.path, "--owner", "anna")[2]
    assert targets(memory, "waiting") == []
    memory.add([Unit("text", "neu")], "en-de", "anna")
    assert memory.matches(["text"], "en-de", "anna")[0][0].target == "neu"
    assert targets(memory, "accepted") == ["x & y", "meins", "neu"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["delete", "m.sqlite"], "needs --owner"),
        (["info", "none.sqlite"], "is missing"),
        (["info", "m.sqlite", "--accept", "1"], "only be used with review"),
        (["export", "text.txt"], "not a database"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_refused_commands(
    arguments: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text.txt").write_text("no database" * 100)
    monkeypatch.chdir(tmp_path)
    status, _, log = run(capsys, "memory", *arguments)
    assert status == 2 and error in log
