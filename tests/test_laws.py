"""Laws of size and of names, each with its reason. Raise a number in the commit that needs it, and say why there."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "transduce"
FILES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

MAX_CORE_LINES = 12_527  # read to know the system, without commands; languages 1,530, run cards 220
MAX_LINES = 33_536  # every line is read again; languages 2,140, comparing 1,240, run cards 400, others 1,270
MAX_FILE_LINES = 300  # a file is read in one sitting
MAX_FUNCTION_LINES = 60  # a function fits on a screen
LONGER_FILES: dict[str, str] = {}  # file -> why it is longer
LONGER_FUNCTIONS = {"wings/serving/command.py:serve": "half of it is the signature and the help of the command"}


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in FILES.items()}


def is_core(file: str) -> bool:
    """Whether a file belongs to the core without the commands."""
    return not file.startswith(("wings/", "commands/"))


def num_lines(file: str) -> int:
    return FILES[file].count("\n")


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every function with its number of lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every module constant with its value, as source text."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        values = [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) else []
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            value = values[0]
            parts = (
                value.elts if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) else [value] * len(names)
            )
            for name, part in zip(names, parts, strict=False):
                if isinstance(name, ast.Name) and name.id.isupper() and name.id[0] != "_" and part is not None:
                    yield name.id, ast.unparse(part)


def homonyms(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Names of constants that have different values in different modules, with the modules."""
    values, places = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for file, tree in modules.items():
        for name, value in constants(tree):
            values[name].add(value)
            places[name].add(file)
    return {name: places[name] for name in values if len(values[name]) > 1 and len(places[name]) > 1}


def test_the_core_can_be_read_in_a_day() -> None:
    assert sum(num_lines(file) for file in FILES if is_core(file)) <= MAX_CORE_LINES


def test_the_whole_stays_small() -> None:
    assert sum(map(num_lines, FILES)) <= MAX_LINES


@pytest.mark.parametrize("file", FILES)
def test_files_are_short(file: str) -> None:
    assert num_lines(file) <= MAX_FILE_LINES or file in LONGER_FILES


def test_a_function_fits_on_a_screen() -> None:
    counts = [(f"{file}:{name}", count) for file, tree in trees().items() for name, count in functions(tree)]
    assert {name for name, count in counts if count > MAX_FUNCTION_LINES} == set(LONGER_FUNCTIONS)


def test_an_exception_is_still_needed() -> None:
    assert {file for file in LONGER_FILES if num_lines(file) <= MAX_FILE_LINES} == set()


def test_a_constant_means_the_same_everywhere() -> None:
    """A reader who meets MAX_TOKENS in two files may believe that they are one number."""
    assert homonyms(trees()) == {}


def test_a_homonym_is_found() -> None:
    modules = {
        "a.py": ast.parse("SIZE, X = 3, 1"),
        "b.py": ast.parse("SIZE: int = 4\nX = 1"),
        "c.py": ast.parse("SIZE = 3"),
    }
    assert homonyms(modules) == {"SIZE": {"a.py", "b.py", "c.py"}}
