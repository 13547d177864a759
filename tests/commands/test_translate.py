"""Tests of transduce/commands/translate.py."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import transduce
from command_line import run
from small_corpus import lines, output
from transduce.commands.translate import answers
from transduce.decoding.types import TranslationOptions


def test_a_typed_line_is_answered_before_the_next_one_is_read(place):
    translator = transduce.load(place / "one")
    answered: list[str] = []

    def typed() -> Iterator[str]:
        for number, line in enumerate(lines(place / "test.src")[:3]):
            assert len(answered) == number
            yield line

    for translation in answers(translator, typed(), TranslationOptions()):
        answered.append(translation.text)
    assert len(answered) == 3


def test_a_terminal_shows_translations_without_a_progress_line(place):
    sources = lines(place / "test.src")[:2]
    said = [each.text for each in transduce.load(place / "one", engine="torch").translate(sources)]
    ours, its = os.openpty()
    command = [sys.executable, "-m", "transduce", "translate", place / "one", *sources]
    with subprocess.Popen(
        [*command, "--engine", "torch"],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    ) as process:
        os.close(its)
        shown = b""
        with suppress(OSError):  # the terminal is closed
            while piece := os.read(ours, 1 << 16):
                shown += piece
    os.close(ours)
    assert process.returncode == 0
    printed = shown.decode().replace("\r\n", "\n").split("\n")
    assert [line for line in printed if line in said] == said
    assert b"Lines translated" not in shown


def test_ctrl_c_leaves_the_output_as_it_was(place, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out.txt"
    out.write_text("old\n")

    def interrupted(_: int) -> bytes:
        raise KeyboardInterrupt

    stream = io.TextIOWrapper(io.BytesIO(b""))
    monkeypatch.setattr(stream.buffer, "read1", interrupted, raising=False)
    monkeypatch.setattr(sys, "stdin", stream)
    status, _, said = run(capsys, "translate", place / "one", "--output", out)
    assert (status, out.read_text()) == (130, "old\n")
    assert f"Interrupted: nothing was written to {out}." in said
    assert list(tmp_path.iterdir()) == [out]


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """What gives bytes to read on standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_file_becomes_a_file_with_as_many_lines_in_order(place, tmp_path, capsys):
    sources = lines(place / "test.src")
    singly = [translation.text for translation in transduce.load(place / "one").translate(sources)]
    assert len(set(singly)) > len(singly) / 2, "translations that are all the same show no order"
    target = tmp_path / "out.txt"
    target.write_text("old\n")
    assert (
        output(
            capsys, "translate", place / "one", "--input", place / "test.src", "--output", target
        )
        == ""
    )
    assert lines(target) == singly
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path != target} == {
        "out.txt.bak": "old\n"
    }
    again = ["translate", place / "one", "--input", place / "test.src", "--output", target]
    _, _, said = run(capsys, *again)
    assert not (tmp_path / "out.txt.bak1").exists()
    assert re.search(rf"^{len(sources)} lines → {target}, [\d.]+ s$", said, re.MULTILINE)
    backwards = tmp_path / "backwards.txt"
    backwards.write_text("".join(f"{source}\n" for source in reversed(sources)))
    assert (
        output(capsys, "translate", place / "one", "--input", backwards).split("\n")[-2::-1]
        == singly
    )


HARD = {
    "blank lines": b"\nka lo\n\n \t\nmi nu\n\n",
    "no line feed at the end": b"ka lo\nmi nu",
    "CRLF": b"ka lo\r\n\r\nmi nu\r\n",
    "a byte order mark": b"\xef\xbb\xbfka lo\nmi nu\n",
    "other line separators": "ka\u2028lo\n\u0085\nmi\x0cnu\x0b\nka\rlo\n\u2029ka\x1c\x1d\x1elo\n".encode(),
    "nothing": b"",
}


@pytest.mark.parametrize("kind", HARD)
def test_lines_in_are_lines_out(kind, place, tmp_path, capsys, standard_input):
    content = HARD[kind]
    count = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    (tmp_path / "in.txt").write_bytes(content)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(content))
    found = output(capsys, "translate", place / "one", "--input", tmp_path / "in.txt")
    assert found.count("\n") == count
    assert found == output(capsys, "translate", place / "one", "--input", tmp_path / "in.txt.gz")
    standard_input(content)
    assert found == output(capsys, "translate", place / "one")
    for source, translation in zip(content.decode().split("\n"), found.split("\n"), strict=False):
        assert bool(source.strip()) == bool(translation)
    if kind in ("CRLF", "a byte order mark"):
        plain = content.replace(b"\r", b"").removeprefix(b"\xef\xbb\xbf")
        standard_input(plain)
        assert found == output(capsys, "translate", place / "one")


def test_json_has_every_field_of_a_translation(place, capsys):
    input = ["--input", place / "test.src"]
    found = output(
        capsys,
        "translate",
        place / "one",
        *input,
        "--json",
        "--beam-size",
        3,
        "--length-penalty",
        1,
    )
    rows = [json.loads(line) for line in found.split("\n")[:-1]]
    options = {"decode.beam_size": 3, "decode.length_penalty": 1.0}
    expected = transduce.load(place / "one", options).translate(lines(place / "test.src"))
    for row, translation in zip(rows, expected, strict=True):
        assert row["text"] == translation.text and row["tokens"] == list(translation.tokens)
        assert row["score"] == pytest.approx(translation.score, rel=1e-5)
        assert row["alternatives"] == [] and row["flags"] == list(translation.flags)


def test_missing_input_is_reported_before_loading_a_model(place, capsys):
    _, _, said = run(capsys, "translate", place / "one", "--input", place / "test.scr")
    assert said == f"transduce: {place}/test.scr does not exist. Did you mean {place}/test.src?\n"
    _, _, said = run(capsys, "translate", place / "one", "--input", place)
    assert said == f"transduce: {place} is a folder. Name a file in it.\n"


def test_texts_are_translated(place, capsys):
    monologue = "ka lo mi. nu re! " * 20  # longer than the name of a file can be
    _, said, _ = run(
        capsys, "translate", place / "one", "ka lo", monologue, "", "--engine", "torch"
    )
    assert len(said.splitlines()) == 3 and said.endswith("\n\n")
    _, alone, _ = run(capsys, "translate", place / "one", "ka lo", "--engine", "torch")
    assert said.startswith(alone)
    (place / "lines.txt").write_text(f"{monologue}\n")
    _, lines, _ = run(
        capsys,
        "translate",
        place / "one",
        "--sentences",
        "--input",
        place / "lines.txt",
        "--engine",
        "torch",
    )
    (place / "lines.txt").unlink()
    assert said.splitlines()[1].strip() == lines.strip()
