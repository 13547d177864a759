"""The first guide, carried out: from a translation memory to a served model."""

import re
import shlex
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from servers import TRAINING, serving
from transduce import cli
from transduce.wings.phrasebook.examples import examples

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "translation-memory.md"
UNIT = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv><tuv xml:lang="de-DE"><seg>{}</seg></tuv></tu>'
TMX = '<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en-US"/><body>\n{}\n</body></tmx>\n'
PO = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "A dog runs."\nmsgstr ""\n'


def write_inputs() -> None:
    """The files that the guide takes for granted."""
    memory, test = (list(examples(part, count)) for part, count in (("train", 600), ("test", 20)))
    units = (UNIT.format(escape(example.english), escape(example.german)) for example in memory)
    Path("memory.tmx").write_text(TMX.format("\n".join(units)), encoding="utf-8")
    for code, texts in ("en", [example.english for example in test]), ("de", [example.german for example in test]):
        Path(f"test.{code}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    Path("messages.po").write_text(PO, encoding="utf-8")
    Path("terms.tsv").write_text("dog\tHund\n", encoding="utf-8")
    Path("corrections.tsv").write_text("A dog runs.\tEin Hund läuft.\n", encoding="utf-8")


@pytest.mark.slow
def test_the_guide(tmp_path, monkeypatch, capsys):
    """Every command, in the guide's order, with a model too small to be good."""
    monkeypatch.chdir(tmp_path)
    write_inputs()
    steps, _, rest = GUIDE.read_text(encoding="utf-8").partition("## Small memories")
    blocks = re.findall(r"^```\n(.*?)^```", steps, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert rest
    for line in lines:
        if "| transduce" in line:
            continue  # standard input: tests/commands has it
        if line.startswith("transduce serve"):
            with serving(Path("models/en-de"), tmp_path / "log") as server:
                (curl,) = (line for line in lines if line.startswith("curl "))
                curl = curl.replace("127.0.0.1:5000", f"127.0.0.1:{server.port}")
                answer = subprocess.run(shlex.split(curl), capture_output=True, text=True, check=True)
                assert "translatedText" in answer.stdout
        elif line.startswith("transduce train"):
            options = ["train.steps=3"] if "--init" in line else [*TRAINING, "data.vocab_size=400"]
            cli.main([*shlex.split(line)[1:], *options])
        elif line.startswith("transduce "):
            cli.main(shlex.split(line)[1:])
    assert "Hund" in Path("messages.de.po").read_text(encoding="utf-8")
    assert "BLEU" in capsys.readouterr().out
