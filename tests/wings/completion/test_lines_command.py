"""Tests of transduce/wings/completion/lines_command.py, by the command `transduce translate`."""

from pathlib import Path

import pytest

from command_line import run
from models import make_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("lines") / "model", {})


@pytest.fixture
def command(model: Path, tmp_path: Path) -> list[object]:
    (tmp_path / "text.en").write_text("ka lo\n\nmi so\n", encoding="utf-8")
    return ["translate", model, "--engine", "torch", "--input", tmp_path / "text.en"]


def test_line_n_begins_and_ends_as_line_n_of_the_files(command, tmp_path, capsys):
    (tmp_path / "begins").write_text("\ufeffxü\n\n\n", encoding="utf-8")
    (tmp_path / "ends").write_text("\n\n ä.\n", encoding="utf-8")
    files = ["--prefixes", tmp_path / "begins", "--suffixes", tmp_path / "ends"]
    status, output, _ = run(capsys, *command, *files)
    first, blank, third = output.split("\n")[:-1]
    assert status == 0 and first.startswith("xü") and not blank and third.endswith(" ä.")
    _, free, _ = run(capsys, *command)
    _, begun, _ = run(capsys, *command, *files[:2])
    assert begun.split("\n")[0] == first and begun.split("\n")[1:] == free.split("\n")[1:]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (2, "begins has only 2 lines."),
        (4, "begins has more lines than the input: 3."),
    ],
)
def test_files_of_other_lengths_are_refused(command, lines, message, tmp_path, capsys):
    (tmp_path / "begins").write_text("\n" * lines, encoding="utf-8")
    output = tmp_path / "output"
    status, _, said = run(capsys, *command, "--prefixes", tmp_path / "begins", "--output", output)
    assert status == 2 and message in said and not output.exists()


def test_documents_and_shards_have_no_prefixes(command, tmp_path, capsys):
    (tmp_path / "begins").write_text("\n\n\n", encoding="utf-8")
    (tmp_path / "text.po").write_text('msgid ""\nmsgstr ""\n', encoding="utf-8")
    files = ["--prefixes", tmp_path / "begins"]
    for more in (["--shard", "1/2"], ["--on", "ray"], ["--input", tmp_path / "text.po"]):
        base = command[:-2] if "--input" in more else command
        status, _, said = run(capsys, *base, *files, *more)
        assert status == 2 and "--prefixes and --suffixes are for lines of text" in said
