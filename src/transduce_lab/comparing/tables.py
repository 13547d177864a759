"""Writes tables of results (NAME.md and NAME.json)."""

import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce.system.console import markdown_table, print_table
from transduce.system.files import to_json, write_text
from transduce.system.revision import revision


class Part(NamedTuple):
    """A part of a table with columns of its own."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


class Table(NamedTuple):
    """A table of results, with text cells for Markdown and data for JSON."""

    name: str  # name of the written files, without suffix
    title: str
    parts: Sequence[Part]
    notes: Sequence[str] = ()
    data: Any = None  # content of NAME.json
    runs: Sequence[object] = ()  # the runs that the results are computed from; only for NAME.md
    pictures: Sequence[str] = ()  # names of image files in the same folder
    command: str = "transduce compare"

    def markdown(self) -> str:
        """The table as Markdown, with the date and the versions of the software."""
        lines = [f"# {self.title}"]
        for part in self.parts:
            lines += ["", f"**{part.title}**"] if part.title else []
            lines += ["", markdown_table(part.headings, part.rows)]
        for note in self.notes:
            lines += ["", note]
        for picture in self.pictures:
            lines += ["", f"![{self.title}]({picture})"]
        made = f"{date.today()}, transduce {revision()}, torch {torch.__version__}, Python {platform.python_version()}"
        lines += ["", f"`{self.command}`: {made}"]
        if self.runs:
            lines += ["", "## The runs", "", *(f"- {run}" for run in self.runs)]
        return "\n".join(lines) + "\n"

    def show(self) -> None:
        """Print the table and its notes on standard output."""
        print(self.title)
        for part in self.parts:
            print(f"\n{part.title}" if part.title else "")
            print_table([part.headings, *part.rows])
        for note in self.notes:
            print(f"\n{note}")

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.md and NAME.json to an existing folder; returns the paths of both files and of the pictures."""
        paths = [folder / f"{self.name}.md", folder / f"{self.name}.json"]
        write_text(paths[0], self.markdown())
        write_text(paths[1], to_json(self.data))
        return [*paths, *(folder / picture for picture in self.pictures)]
