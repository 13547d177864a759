"""A table of the paper beside ours: on the screen, as Markdown and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.files import to_json, write_text


class Table(NamedTuple):
    """Cells as people read them, and the same as data."""

    name: str  # of its files
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    data: Any = None  # for JSON
    runs: Sequence[str] = ()  # that its figures come from; not for the screen

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"# {self.title}", "", _line(self.headings), _line(["---"] * len(self.headings))]
        lines += [_line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        if self.runs:
            lines += ["", "## The runs", "", *(f"- {run}" for run in self.runs)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """NAME.md and NAME.json in an existing folder; returns their paths."""
        paths = [folder / f"{self.name}.md", folder / f"{self.name}.json"]
        write_text(paths[0], self.markdown())
        write_text(paths[1], to_json(self.data))
        return paths


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
