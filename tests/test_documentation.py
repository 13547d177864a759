"""What the documentation shows works: the commands of the first guide, the examples and counts of docs/paper/."""

import doctest
import re
import shlex
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from servers import TRAINING, serving
from transduce import cli
from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.wings.phrasebook.examples import examples

DOCS = Path(__file__).parents[1] / "docs"
GUIDE = DOCS / "guides" / "translation-memory.md"
CLAIMS = (DOCS / "paper" / "claims.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNIT = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv><tuv xml:lang="de-DE"><seg>{}</seg></tuv></tu>'
TMX = (
    '<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en-US"/><body>\n{}\n</body></tmx>\n'
)
PO = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "A dog runs."\nmsgstr ""\n'


def write_inputs() -> None:
    """The files that the guide takes for granted."""
    memory, test = (list(examples(part, count)) for part, count in (("train", 600), ("test", 20)))
    units = (UNIT.format(escape(example.english), escape(example.german)) for example in memory)
    Path("memory.tmx").write_text(TMX.format("\n".join(units)), encoding="utf-8")
    for code, texts in (
        ("en", [example.english for example in test]),
        ("de", [example.german for example in test]),
    ):
        Path(f"test.{code}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    Path("messages.po").write_text(PO, encoding="utf-8")
    Path("terms.tsv").write_text("dog\tHund\n", encoding="utf-8")
    Path("corrections.tsv").write_text("A dog runs.\tEin Hund läuft.\n", encoding="utf-8")


@pytest.mark.slow
def test_commands_of_the_first_guide_work_in_their_order(tmp_path, monkeypatch, capsys):
    """The model is too small to be good."""
    monkeypatch.chdir(tmp_path)
    write_inputs()
    steps, _, rest = GUIDE.read_text(encoding="utf-8").partition("## Small memories")
    lines = [line for block in BLOCK.findall(steps) for line in block.splitlines()]
    assert rest
    for line in lines:
        if "| transduce" in line:
            continue  # standard input: tests/commands has it
        if line.startswith("transduce serve"):
            with serving(Path("models/en-de"), tmp_path / "log") as server:
                (curl,) = (line for line in lines if line.startswith("curl "))
                curl = curl.replace("127.0.0.1:5000", f"127.0.0.1:{server.port}")
                answer = subprocess.run(
                    shlex.split(curl), capture_output=True, text=True, check=True
                )
                assert "translatedText" in answer.stdout
        elif line.startswith("transduce train"):
            options = ["train.steps=3"] if "--init" in line else [*TRAINING, "data.vocab_size=400"]
            cli.main([*shlex.split(line)[1:], *options])
        elif line.startswith("transduce "):
            cli.main(shlex.split(line)[1:])
    assert "Hund" in Path("messages.de.po").read_text(encoding="utf-8")
    assert "BLEU" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["beside.md", "bleu.md", "claims.md"])
def test_python_examples_print_what_the_page_shows(name):
    path = DOCS / "paper" / name
    blocks = PYTHON.findall(path.read_text(encoding="utf-8"))
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, str(path), 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_documented_parameter_count_is_that_of_the_base_model():
    assert f"| model | | {count_parameters(ModelConfig()):,} |" in CLAIMS


def test_documented_peak_rates_are_those_of_the_parsing_recipes():
    (row,) = [line for line in CLAIMS.splitlines() if line.startswith("| peak rate |")]
    for name, printed in zip(
        ("wsj-parsing-only", "wsj-parsing-semi"), row.split("|")[3:5], strict=True
    ):
        config = configure(read_recipe(*read_text(name)))
        peak = config.train.learning_rate / (config.model.d_model * config.train.warmup) ** 0.5
        assert f"{peak:.5f}" == printed.strip()
