"""The documentation is true: README.md, the commands of the first guide, lists, examples and counts."""

import ast
import doctest
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

import transduce
from check_docs import blocks_of, strings_of
from servers import TRAINING, serving
from transduce import cli
from transduce.commands.recipes import read_text
from transduce.config.parse import configure, parse_assignments, read_recipe
from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce.wings.phrasebook.examples import examples

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
GUIDE = DOCS / "guides" / "translation-memory.md"
CLAIMS = (DOCS / "paper" / "claims.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNIT = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv><tuv xml:lang="de-DE"><seg>{}</seg></tuv></tu>'
TMX = (
    '<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en-US"/><body>\n{}\n</body></tmx>\n'
)
DEFINITION = "transduce trains Transformer translation models on your parallel text, evaluates them and serves them."
MAX_README_WORDS = 1200
NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+|RANK|COLUMNS")  # of an environment variable
PO = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "A dog runs."\nmsgstr ""\n'


def write_inputs() -> None:
    """The files that the guide and README.md take for granted."""
    memory, test = (list(examples(part, count)) for part, count in (("train", 600), ("test", 20)))
    units = (UNIT.format(escape(example.english), escape(example.german)) for example in memory)
    Path("memory.tmx").write_text(TMX.format("\n".join(units)), encoding="utf-8")
    for name, pairs in (("train", memory), ("test", test)):
        for code, texts in (
            ("en", [example.english for example in pairs]),
            ("de", [example.german for example in pairs]),
        ):
            Path(f"{name}.{code}").write_text("\n".join([*texts, ""]), encoding="utf-8")
    Path("messages.po").write_text(PO, encoding="utf-8")
    Path("terms.tsv").write_text("dog\tHund\n", encoding="utf-8")
    Path("corrections.tsv").write_text("A dog runs.\tEin Hund läuft.\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "end"),
    [(GUIDE, "## Small memories"), (README, "## How good")],
    ids=["guide", "readme"],
)
def test_commands_work_in_their_order(page, end, tmp_path, monkeypatch, capsys):
    """The model is too small to be good."""
    monkeypatch.chdir(tmp_path)
    write_inputs()
    steps, _, rest = page.read_text(encoding="utf-8").partition(end)
    blocks = list(blocks_of(page, steps))
    lines = [line for block in blocks if not block.language for line in block.text.splitlines()]
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
    translated = (
        Path("messages.de.po")
        .read_text(encoding="utf-8")
        .partition('msgid "A dog runs."\nmsgstr ')[2]
    )
    assert '""' not in translated
    assert "Hund" in translated or page == README  # by the glossary
    assert "BLEU" in capsys.readouterr().out
    for block in blocks:
        if block.language == "python":
            options = parse_assignments([*TRAINING, "data.vocab_size=400"])
            exec(block.text.replace('{"train.minutes": 30}', repr(options)))


def test_readme_is_short():
    text = re.sub(
        r"\]\([^)\s]*\)", "]", README.read_text(encoding="utf-8")
    )  # targets of links are not rendered
    assert len(re.findall(r"\S*\w\S*", text)) <= MAX_README_WORDS


def test_transduce_has_one_definition(capsys):
    for page in (README, DOCS / "index.md"):
        title, definition, *_ = page.read_text(encoding="utf-8").split("\n\n")
        assert (title, definition) == ("# transduce", DEFINITION)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["description"] == DEFINITION
    assert f"site_description: {DEFINITION}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert transduce.__doc__ and transduce.__doc__.splitlines()[0] == DEFINITION
    cli.main(["--help"])
    assert DEFINITION in " ".join(capsys.readouterr().out.split())


def test_the_page_of_environment_variables_lists_all():
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "os.environ" in text or "environment_number" in text:
            strings = (string for _, string in strings_of(ast.parse(text)))
            named |= {string for string in strings if NAME.fullmatch(string)}
    assert {"RANK", "XDG_CACHE_HOME", "RAY_ADDRESS", "GOMP_SPINCOUNT"} <= named
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_troubleshooting_shows_messages_that_exist():
    """A message of the page has … for what a message of the package fills in."""
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    messages = [string for module in modules for _, string in strings_of(ast.parse(module))]
    messages += (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    page = (DOCS / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
    shown = [
        message
        for heading in re.findall(r"^### (.*)", page, re.M)
        for message in re.findall("`(.*?)`", heading)
    ]
    assert len(shown) > 60
    for message in shown:
        parts = [re.escape(part.strip()) for part in message.split("…")]
        assert any(re.search(".*".join(parts), text, re.S) for text in messages), message


def test_citations_name_this_version():
    file = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    page = (DOCS / "guides" / "help.md").read_text(encoding="utf-8")
    assert f"\nversion: {transduce.__version__}\n" in file
    assert f"version = {{{transduce.__version__}}}" in page


BESIDE = ("background", "layers", "model", "results", "training")


@pytest.mark.parametrize(
    "name", ["bleu.md", "claims.md", *(f"beside/{page}.md" for page in BESIDE)]
)
def test_python_examples_print_what_the_page_shows(name):
    path = DOCS / "paper" / name
    blocks = PYTHON.findall(path.read_text(encoding="utf-8"))
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, str(path), 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("page", BESIDE)
def test_every_section_has_an_equation_or_numbers_and_exercises_with_answers(page):
    """Sections whose headings begin with a number of the paper; section 7 is a list of plans."""
    text = (DOCS / "paper" / "beside" / f"{page}.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d)", text, flags=re.M)[1:]
    assert sections
    for section in sections:
        if section.startswith("7"):
            continue
        exercises = re.split(r"^\*\*Exercise \d\.\*\*", section, flags=re.M)[1:]
        assert 2 <= len(exercises) <= 4, section.splitlines()[0]
        for exercise in exercises:
            question, mark, answer = exercise.partition(
                "<details markdown><summary>Answer</summary>"
            )
            assert (
                question.strip() and mark and "```pycon\n>>> " in answer and "</details>" in answer
            )


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
