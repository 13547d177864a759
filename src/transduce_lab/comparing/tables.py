"""Writes tables of results (NAME.md and NAME.json)."""

import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce.system.console import markdown_table
from transduce.system.files import to_json, write_text
from transduce.system.revision import revision


class Part(NamedTuple):
    """A second table of the same page."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


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
    command: str = "transduce compare"
    parts: Sequence[Part] = ()

    def markdown(self) -> str:
        """The table as Markdown, with the date and the versions of the software."""
        lines = [f"# {self.title}", "", markdown_table(self.headings, self.rows)]
        for part in self.parts:
            lines += ["", f"**{part.title}**", "", markdown_table(part.headings, part.rows)]
        for note in self.notes:
            lines += ["", note]
        for picture in self.pictures:
            lines += ["", f"![{self.title}]({picture})"]
        made = f"{date.today()}, transduce {revision()}, torch {torch.__version__}, Python {platform.python_version()}"
        lines += ["", f"`{self.command}`: {made}"]
        if self.runs:
            lines += ["", "## The runs", "", *(f"- {run}" for run in self.runs)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.md and NAME.json to an existing folder; returns the paths of both files and of the pictures."""
        paths = [folder / f"{self.name}.md", folder / f"{self.name}.json"]
        write_text(paths[0], self.markdown())
        write_text(paths[1], to_json(self.data))
        return [*paths, *(folder / picture for picture in self.pictures)]
