"""README, CONTRIBUTING and docs/: commands parse, links lead somewhere, Python and recipes are valid."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import transduce
from transduce import cli
from transduce.config import commands as registry
from transduce.config.parse import configure, parse_assignments, read_recipe

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
PLACE = re.compile(r"`((?:src|benchmarks|docs|tests)/[\w./-]+\.\w+)`")
FOLDERS = "|".join(path.name for path in (ROOT / "src" / "transduce").iterdir() if path.is_dir())
MODULE = re.compile(rf"`((?:{FOLDERS})/[\w./]+)`")
SEPARATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>"}
LEFT_OPEN = {"…", "..."}  # stands for what the reader puts there


class Command(NamedTuple):
    """A `transduce` of a page, with what follows it."""

    page: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.arguments)}"


def commands(page: Path) -> Iterator[Command]:
    """Those in the fenced blocks of a page; examples of what is printed begin otherwise."""
    for _, block in FENCED.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if "transduce " in line:
                lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
                lexer.commenters, lexer.whitespace_split = "#", True
                try:
                    words = [*lexer]
                except ValueError:  # an apostrophe: not a command
                    continue
                yield from _commands(page.name, words)


def _commands(page: str, words: list[str]) -> Iterator[Command]:
    """Those of a line, which may begin with variables or torchrun, and end in a pipe."""
    while words:
        ends = [place for place, word in enumerate(words) if word in SEPARATORS]
        part, words = (words[: ends[0]], words[ends[0] + 1 :]) if ends else (words, [])
        while part and re.match(r"[A-Z_]+=", part[0]):
            part = part[1:]
        if part[:1] == ["transduce"] and len(part) > 1:
            yield Command(page, tuple(part[1:]))
        elif "-m" in part and part[part.index("-m") + 1 :][:1] == ["transduce"]:
            yield Command(page, tuple(part[part.index("-m") + 2 :]))


ALL = [command for page in PAGES for command in commands(page)]


def test_every_command_is_on_a_page() -> None:
    assert {command.arguments[0] for command in ALL} >= set(registry.commands()) - {"demo", "options"}


@pytest.mark.parametrize("command", ALL, ids=str)
def test_a_command_of_a_page_is_one(command: Command) -> None:
    given = [argument for argument in command.arguments if argument not in LEFT_OPEN]
    whole = len(given) == len(command.arguments)
    arguments = cli._for_cyclopts(given)
    if whole:
        cli.application().parse_args(arguments, exit_on_error=False, print_error=False)
    options = [arguments[place + 1] for place, argument in enumerate(arguments[:-1]) if argument == "--set"]
    configure(parse_assignments([option for option in options if not LEFT_OPEN & {option.partition("=")[2]}]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        assert not anchor or anchor in _anchors(place), f"{target}#{anchor}"
    for named in PLACE.findall(text):
        assert (ROOT / named).exists(), named
    for module in MODULE.findall(text):  # below src/transduce
        assert (ROOT / "src" / "transduce" / module).exists(), module


def _anchors(page: Path) -> set[str]:
    """What the headings of a page are called in its address."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_python_of_a_page_imports_exists(page: Path) -> None:
    for language, block in FENCED.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)) if language == "python" and "…" not in block else ():
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "transduce":
                assert hasattr(transduce, node.attr), ast.unparse(node)


@pytest.mark.parametrize("page", ["reference/options.md", "reference/recipes.md"])
def test_the_recipes_of_a_page_are_recipes(page: str) -> None:
    blocks = [b for name, b in FENCED.findall((ROOT / "docs" / page).read_text(encoding="utf-8")) if name == "toml"]
    assert blocks
    for block in blocks:
        configure(read_recipe(block, page))
