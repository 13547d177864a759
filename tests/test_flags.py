"""Only commands name flags: the library is used from Python too, where an option has no dashes."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from transduce.cli import FLAGS
from transduce.config.commands import commands
from transduce.system.registry import load

PACKAGE = Path(__file__).parents[1] / "src" / "transduce"
PASTED = re.compile(r"transduce [a-z]+ .*", re.DOTALL)  # a command to be pasted is written in full


def known_flags() -> set[str]:
    """The flags of all commands."""
    names = {name for command in commands().values() for name in inspect.signature(load(command.function)).parameters}
    return {*FLAGS.values(), "--set", *(f"--{name.replace('_', '-')}" for name in names)}


def is_command(path: Path) -> bool:
    return path.name in {"cli.py", "__main__.py"} or path.parent.name == "commands" or "command" in path.stem


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a module with their lines, without docstrings; an f-string has blanks for its values."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else " " for part in child.values]
                yield child.lineno, "".join(map(str, parts))
            elif isinstance(node, ast.Expr | ast.JoinedStr):
                continue
            elif isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.lineno, child.value


def named_flags(text: str, flags: set[str]) -> Iterator[tuple[int, str]]:
    """The lines of a module with the flags that their strings name."""
    for line, string in strings(ast.parse(text)):
        words = re.findall(r"(?<![\w(-])--[a-z][a-z-]*(?![\w-]*:)", PASTED.sub("", string))
        yield from ((line, word) for word in words if word in flags)


def test_nothing_below_the_commands_names_a_flag() -> None:
    flags = known_flags()
    places = [
        f"{path.relative_to(PACKAGE)}:{line}: {flag}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not is_command(path)
        for line, flag in named_flags(path.read_text(encoding="utf-8"), flags)
    ]
    assert places == []


def test_a_named_flag_is_found() -> None:
    text = 'def f(x):\n    """See --out."""\n    raise E(f"{x} exists; name another by --out")\nCOLOUR = "--out: red"\n'
    text += 'HINT = "run `transduce train a --out b`"\n'
    assert list(named_flags(text, known_flags())) == [(3, "--out")]
