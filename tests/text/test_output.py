"""A command whose output nobody reads any longer ends like any other program in a pipeline: with status 141."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from transduce.text.plain import write_lines


def test_closed_output_pipe_ends_with_status_141(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("a dog\tein Hund\n", encoding="utf-8")
    reader, writer = os.pipe()
    os.close(reader)
    options = ["doctor", corpus, "--only", "duplicate", "--out", "/dev/stdout"]
    command = [sys.executable, "-m", "transduce", *map(str, options)]
    with os.fdopen(writer, "w") as output:
        run = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (141, "")


def test_closed_pipe_during_writing_ends_with_status_141(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def lines() -> Iterator[str]:
        yield "first"
        os.close(reader)
        yield from ["second"] * 10_000

    with pytest.raises(BrokenPipeError):
        write_lines(tmp_path / "pipe", lines())
