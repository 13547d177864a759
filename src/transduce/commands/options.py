"""`transduce options`, and the argument by which other commands take these options."""

import json as json_format
import sys
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from transduce.config import schema as config

# A parameter `assignments: Assignments = ()` of a command receives its section.key=value arguments.
Assignments = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        help="section.key=value: an option of `transduce options`; `--set` may be left out.",
        n_tokens=1,
    ),
]

PIPED_COLUMNS = 240  # without a terminal


def options(*, json: bool = False, markdown: bool = False) -> None:
    """List every option of a recipe with its type, default, value in the paper, unit and meaning.

    Write them into a recipe, a TOML file with one table per section, or behind `transduce train` as section.key=value.

    Args:
        json: Print a JSON list, for programs.
        markdown: Print Markdown tables, one for each section.
    """
    if markdown:
        print("\n".join(_markdown()))
        return
    if json:
        print(json_format.dumps([_row(option) for option in config.options()], ensure_ascii=False, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "type", "default", "paper", "unit"):
        table.add_column(heading, overflow="fold")
    table.add_column("meaning", min_width=24, overflow="fold")
    section = "model"
    for option in config.options():
        if not option.name.startswith(section + "."):
            section = option.name.partition(".")[0]
            table.add_row()
        table.add_row(*(cell if isinstance(cell, str) else _text(cell) for cell in _row(option).values()))
    width = None if sys.stdout.isatty() else PIPED_COLUMNS
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def _markdown() -> Iterator[str]:
    """A heading and a table for each section."""
    section = ""
    for option in config.options():
        if not option.name.startswith(section + "."):
            section = option.name.partition(".")[0]
            yield from (
                "",
                f"## [{section}]",
                "",
                "| name | type | default | paper | unit | meaning |",
                "| --- " * 6 + "|",
            )
        cells = [cell if isinstance(cell, str) else _text(cell) for cell in _row(option).values()]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _row(option: config.Option) -> dict[str, Any]:
    return {
        "name": option.name,
        "type": _type_name(option.kind),
        "default": option.default,
        "paper": option.paper,
        "unit": option.unit,
        "meaning": option.help,
    }


def _type_name(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return " | ".join(typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return "list of " + {str: "texts", int: "whole numbers"}.get(typing.get_args(kind)[0], "tables")
    return {bool: "true | false", int: "whole number", float: "number", str: "text"}[kind]


def _text(default: Any) -> str:
    """A default as a recipe would write it."""
    return json_format.dumps(default, ensure_ascii=False)
