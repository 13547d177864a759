"""Tests of transduce/wings/tables/parquet.py."""

import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from transduce.system.errors import UserError
from transduce.text.pairs import read_pairs

TEXTS = st.lists(st.tuples(st.none() | st.text(), st.none() | st.text()), min_size=1, max_size=9)


def read(path: Path, languages: tuple[str, str] = ("en", "de")) -> list[tuple[str, str, int]]:
    found = list(read_pairs([str(path)], languages))
    assert {pair.origin.file for pair in found} <= {str(path)}
    return [(pair.source, pair.target, pair.origin.line) for pair in found]


def write(path: Path, pairs: list, kind: str, rows: int = 3) -> Path:
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    typed = [pyarrow.array(texts, pyarrow.string()) for texts in (sources, targets)]
    if kind == "translation":
        struct = pyarrow.StructArray.from_arrays(typed, ["en", "de"])
        table = pyarrow.table({"id": range(len(pairs)), "translation": struct})
    else:
        names = {"codes": ("en", "de"), "sides": ("source", "target")}[kind]
        numbers = pyarrow.array(range(len(pairs)), pyarrow.int64())
        table = pyarrow.table({"n": numbers, **dict(zip(names, typed, strict=True))})
    parquet.write_table(table, path, row_group_size=rows)
    return path


@pytest.mark.parametrize("kind", ["codes", "sides", "translation"])
@given(pairs=TEXTS)
def test_columns_are_found_by_their_names(tmp_path, kind, pairs):
    expected = [(source or "", target or "", i) for i, (source, target) in enumerate(pairs, 1)]
    assert read(write(tmp_path / "a.parquet", pairs, kind)) == expected
    turned = [(target, source, i) for source, target, i in expected]
    if kind != "sides":
        assert read(tmp_path / "a.parquet", ("de", "en")) == turned


def test_several_files_and_folders_are_one_corpus(tmp_path):
    write(tmp_path / "0.parquet", [("a", "b")], "codes")
    write(tmp_path / "1.parquet", [("c", "d")], "sides")
    assert read_pairs_of(tmp_path) == [("a", "b"), ("c", "d")]


def read_pairs_of(folder: Path) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs([str(folder)], ("en", "de"))]


def damaged(path: Path) -> None:
    table = pyarrow.table({"en": ["a dog runs"] * 9, "de": ["ein Hund läuft"] * 9})
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    parquet.write_table(table, path, **options)
    path.write_bytes(path.read_bytes().replace(b"dog", b"cat"))


def cut_off(path: Path) -> None:
    content = write(path, [("a", "b")] * 50, "codes").read_bytes()
    path.write_bytes(content[: len(content) // 2])


def not_utf_8(path: Path) -> None:
    texts = pyarrow.array([b"\xff"]).cast(pyarrow.string(), safe=False)
    parquet.write_table(pyarrow.table({"en": texts, "de": ["b"]}), path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b""), "not an intact Parquet file"),
        (lambda path: path.write_text("PAR1 but text"), "not an intact Parquet file"),
        (damaged, "not an intact Parquet file"),
        (cut_off, "not an intact Parquet file"),
        (not_utf_8, "not an intact Parquet file: .*utf-8"),
        (lambda path: write(path, [], "codes"), "has no pairs"),
        (lambda _: None, "does not exist"),
        (
            lambda path: parquet.write_table(pyarrow.table({"a": ["x"], "b": ["y"]}), path),
            'expected strings under "en" and "de" or .*, found "a" .*, "b"',
        ),
        (
            lambda path: parquet.write_table(pyarrow.table({"en": ["x"], "de": [1]}), path),
            r'a.parquet:1: expected .*"de" \(a number\)',
        ),
    ],
)
def test_mistakes_are_sentences(tmp_path, make, said):
    make(tmp_path / "a.parquet")
    with pytest.raises(UserError, match=said):
        read(tmp_path / "a.parquet")


def test_without_pyarrow_the_message_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from transduce.text.pairs import read_pairs\n"
        "from transduce.system.errors import UserError\n"
        "try: list(read_pairs([sys.argv[1]], ('en', 'de')))\n"
        "except UserError as error: print(error)\n"
    )
    file = write(tmp_path / "a.parquet", [("a", "b")], "codes")
    command = [sys.executable, "-c", code, str(file)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found == (
        "Reading Parquet files needs the package pyarrow. "
        "Install it: pip install 'transduce[tables]'.\n"
    )
