"""The command `transduce options`, and the type `Assignments` of `section.key=value` arguments."""

import json as json_format
import sys
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Column, Table

from transduce.config import schema as config
from transduce.config.parse import parse_assignments

# A parameter `assignments: Assignments = ()` of a command receives its section.key=value arguments.
Assignments = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        help="Set an option: section.key=value. `transduce options` lists all options. The word --set may be omitted.",
        n_tokens=1,
    ),
]

PIPED_COLUMNS = 240  # width of the output without a terminal


def search_options(
    assignments: Sequence[str], beam_size: int | None, length_penalty: float | None
) -> dict[str, Any]:
    """The decode options of a command; its flags, such as --beam-size, override section.key=value."""
    options = parse_assignments(assignments)
    named = {"decode.beam_size": beam_size, "decode.length_penalty": length_penalty}
    return options | {name: value for name, value in named.items() if value is not None}


def options(*, json: bool = False) -> None:
    """List every option of a recipe with its type, default, value in the paper, unit and meaning.

    Set options in a recipe (a TOML file with a table per section), or as section.key=value after `transduce train`.

    Args:
        json: Print a JSON list.
    """
    rows = [
        {
            "name": option.name,
            "type": _type_name(option.kind),
            "default": option.default,
            "paper": option.paper,
            "unit": option.unit,
            "meaning": option.help,
        }
        for option in config.options()
    ]
    if json:
        print(json_format.dumps(rows, ensure_ascii=False, indent=2))
        return
    sections: dict[str, list[list[str]]] = {}
    for row in rows:
        cells = [
            cell if isinstance(cell, str) else json_format.dumps(cell, ensure_ascii=False)
            for cell in row.values()
        ]
        sections.setdefault(row["name"].partition(".")[0], []).append(cells)
    columns = [Column(name, overflow="fold") for name in list(rows[0])[:-1]]
    whole = Table(
        *columns,
        Column("meaning", min_width=24, overflow="fold"),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for table in sections.values():
        if whole.row_count:
            whole.add_row()
        for cells in table:
            whole.add_row(*cells)
    width = None if sys.stdout.isatty() else PIPED_COLUMNS
    Console(width=width, highlight=False, markup=False, emoji=False).print(whole)


def _type_name(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return " | ".join(typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return "list of " + {str: "texts", int: "whole numbers"}.get(
            typing.get_args(kind)[0], "tables"
        )
    return {bool: "true | false", int: "whole number", float: "number", str: "text"}[kind]
