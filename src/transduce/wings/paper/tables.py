"""Reads the definitions of the paper's tables (NAME.toml), and writes our results (NAME.md and NAME.json)."""

import platform
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce.system.files import to_json, write_text
from transduce.wings.paper.experiments import revision


def definition(name: str) -> dict[str, Any]:
    """Read the definition of a table from its TOML file."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


def flat(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Flatten a nested mapping {section: {key: value}} to a dictionary {"section.key": value}."""
    return {f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()}


class Table(NamedTuple):
    """A table of results, with text cells for Markdown and data for JSON."""

    name: str  # of the written files, without suffix
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    data: Any = None  # for NAME.json
    runs: Sequence[object] = ()  # the runs that the results are computed from; only for NAME.md
    pictures: Sequence[str] = ()  # names of image files in the same folder

    def markdown(self) -> str:
        """The table as Markdown, with the date and the versions of the software."""
        lines = [f"# {self.title}", "", _line(self.headings), _line(["---"] * len(self.headings))]
        lines += [_line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        for picture in self.pictures:
            lines += ["", f"![{self.title}]({picture})"]
        made = f"{date.today()}, transduce {revision()}, torch {torch.__version__}, Python {platform.python_version()}"
        lines += ["", f"`transduce reproduce {self.name}`: {made}"]
        if self.runs:
            lines += ["", "## The runs", "", *(f"- {run}" for run in self.runs)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.md and NAME.json to an existing folder; returns the paths of both files and of the pictures."""
        paths = [folder / f"{self.name}.md", folder / f"{self.name}.json"]
        write_text(paths[0], self.markdown())
        write_text(paths[1], to_json(self.data))
        return [*paths, *(folder / picture for picture in self.pictures)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
