"""Tests of transduce/wings/memories/opening.py."""

from pathlib import Path

import pytest

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.wings.memories.database import Database
from transduce.wings.memories.opening import open_memory

EN_DE = Direction("en", "de")
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="de"><seg>Hund</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A cat.</seg></tuv><tuv xml:lang="fr"><seg>Chat</seg></tuv></tu>
</body></tmx>"""


def said(memory: Database, text: str, direction: Direction = EN_DE) -> list[tuple[str, str]]:
    [matches] = memory.matches([text], str(direction))
    return [(match.target, match.origin) for match in matches]


def test_a_file_is_read_into_a_database_beside_it_and_again_only_if_it_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.tsv"
    file.write_text("A dog.\tHund\n\tleer\nA cat.\tKatze\nA cat.\tKater\n")
    memory = open_memory(str(file), [EN_DE])
    assert memory.path == tmp_path / "m.tsv.sqlite"
    assert said(memory, "A dog.") == [("Hund", "m.tsv:1")]
    assert said(memory, "A cat.") == [("Kater", "m.tsv:4"), ("Katze", "m.tsv:3")]
    log = capsys.readouterr().err
    assert "3 units en-de" in log
    assert "1 source in" in log and "different translations" in log
    file.write_text("A dog.\tDogge\n")
    assert said(open_memory(str(file), [EN_DE]), "A dog.") == [("Dogge", "m.tsv:1")]
    assert said(open_memory(str(memory.path), [EN_DE]), "A dog.") == [("Dogge", "m.tsv:1")]


def test_a_folder_and_both_ways_of_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "a.tmx").write_text(TMX)
    (folder / "b.tsv").write_text("A cow.\tKuh\n")
    assert said(open_memory(str(folder), [EN_DE]), "A cow.") == [("Kuh", "b.tsv:1")]
    (folder / "a.tmx").unlink()
    assert said(open_memory(str(folder), [EN_DE]), "A dog.") == [("Kuh", "b.tsv:1")]
    both = [EN_DE, EN_DE.reverse]
    memory = open_memory(str(folder / "b.tsv"), both[:1])
    assert said(memory, "A cow.") == [("Kuh", "b.tsv:1")]
    memory = open_memory(f"en,de={folder / 'b.tsv'}", both)
    assert said(memory, "Kuh", EN_DE.reverse) == [("A cow.", "b.tsv:1")]


def test_several_directions_of_a_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.tmx"
    file.write_text(TMX)
    directions = [EN_DE, EN_DE.reverse, Direction("en", "fr"), Direction("en", "es")]
    memory = open_memory(str(file), directions)
    assert said(memory, "Hund", EN_DE.reverse) == [("A dog.", "a.tmx:3")]
    assert said(memory, "A cat.", directions[2]) == [("Chat", "a.tmx:4")]
    assert "has no unit in both en and es" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "directions", "error"),
    [
        ("a.tmx", TMX, ["en-es"], "has no unit in both en and es"),
        ("a.tsv", "A dog.\n", ["en-de"], "expected 2 columns"),
        ("a.tsv", "A dog.\t\n", ["en-de"], "no unit in the model's directions: en-de"),
        ("a.tsv", "A dog.\tHund\n", ["en-de", "en-fr"], "does not name its languages.*en,de="),
        ("a.tsv", "A dog.\tHund\n", ["en-de", "de-en"], "does not name its languages.*en,de="),
        ("a.ods", "A dog.\n", ["en-de"], "Save it as .xlsx"),
    ],
)
def test_unusable_files(
    tmp_path: Path, name: str, content: str, directions: list[str], error: str
) -> None:
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(UserError, match=error):
        open_memory(str(file), list(map(Direction.parse, directions)))


def test_a_missing_file_leaves_nothing_behind(tmp_path: Path) -> None:
    for name in ("none.tsv", "none.sqlite"):
        with pytest.raises(UserError, match=name.replace(".", r"\.")):
            open_memory(str(tmp_path / name), [EN_DE])
    assert not [*tmp_path.iterdir()]
    open_memory(str(tmp_path / "none.sqlite"), [EN_DE], make=True)
