"""Prints messages and progress on standard error, and tables on standard output; writes tables as Markdown."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from transduce.system.wrapping import fit

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 25.0  # without a terminal
SECONDS_BETWEEN_FRAMES = 0.2  # on a terminal
BAR_WIDTH = 12


class _Messages(Console):
    """Standard error; a full disk or a closed pipe loses the messages but does not stop the command."""

    def _write_buffer(self) -> None:
        try:
            super()._write_buffer()
        except OSError:
            del self._buffer[:]


# No emoji for ":Books:" in opus:Books:en-de.
_console = _Messages(stderr=True, highlight=False, emoji=False)


def silence(wanted: bool) -> None:
    """Turn the messages of this process off if `wanted` is true, otherwise on."""
    _console.quiet = wanted


def log(text: str) -> None:
    """Print a message on standard error, above the progress line if there is one."""
    _console.print(fit(text, sys.stderr), markup=False, soft_wrap=True)


def with_progress(items: Iterable[Item], what: str, total: int = 0) -> Iterator[Item]:
    """Yield the items, and show the number of items so far and per second."""
    with ItemDisplay(what, total) as progress:
        for item in items:
            yield item
            progress.advance()


def count(number: int, noun: str) -> str:
    """A number and its noun in the singular or plural: "1 pair", "1,000 pairs"."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def duration(seconds: float) -> str:
    """A duration as h:mm:ss, or "?" if it is infinite or NaN."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Display:
    """A progress line that is redrawn on a terminal, or printed at most every 25 seconds elsewhere."""

    def __init__(self, *, at_once: bool = True) -> None:
        """If `at_once` is false, the first line is printed after 25 seconds unless there is a terminal."""
        # Time of the last update, on the monotonic clock.
        self._shown = -math.inf if at_once else time.monotonic()
        self._bar: Progress | None = None
        if (
            sys.stderr
            and sys.stderr.isatty()
            and not _console.is_dumb_terminal
            and not _console.quiet
        ):
            text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
            # Only `show` draws the bar, so rich needs no thread for it.
            bar = Progress(
                BarColumn(BAR_WIDTH),
                text,
                console=_console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
            )
            self._bar = bar
            self._task = bar.add_task("", total=None)

    def is_due(self) -> bool:
        """Whether enough time has passed since the last update."""
        interval = SECONDS_BETWEEN_FRAMES if self._bar else SECONDS_BETWEEN_LINES
        return time.monotonic() - self._shown >= interval

    def show(self, done: float, total: int, text: str) -> None:
        """Show the progress, unless the last update was a moment ago. `total` is 0 if it is unknown."""
        if not self.is_due():
            return
        self._shown = time.monotonic()
        if self._bar:
            parts = text.split("  ")
            while len(parts) > 1 and len("  ".join(parts)) > _console.width - BAR_WIDTH - 2:
                parts.pop()
            text = "  ".join(parts)
            self._bar.update(
                self._task, completed=done, total=total or None, description=text, refresh=True
            )
        else:
            log(text)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


class ItemDisplay(Display):
    """Shows how many items are done, how fast, and how many are to do."""

    def __init__(self, what: str, total: int = 0) -> None:
        """`what` says what the items are, such as "lines translated". `total` is 0 if it is unknown."""
        super().__init__(at_once=False)
        self.began = time.monotonic()
        self.done = 0
        self._ahead = 0
        self._shown_done = 0.0  # the shown number never decreases
        self._what = what
        self._total = total

    def advance(self) -> None:
        """Count an item."""
        self.done += 1
        self._ahead = 0
        self.look_ahead(0)

    def look_ahead(self, number: int) -> None:
        """Count `number` items as done before they are, for a steady progress line."""
        self._ahead += number
        if not self.is_due():
            return
        ahead = min(self.done + self._ahead, self._total or math.inf)
        self._shown_done = done = max(self._shown_done, ahead)
        speed = done / max(time.monotonic() - self.began, 1e-9)
        text = f"{self._what}: {done:,}, {speed:,.1f} a second"
        if self._total:
            left = duration((self._total - done) / speed)
            text = f"{self._what}: {done:,} of {self._total:,}, {speed:,.1f} a second, {left} left"
        self.show(done, self._total, text)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns on standard output. A terminal gets long rows in several lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print(fit("  ".join(cells).rstrip(), sys.stdout))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, without a line break at its end."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines
    )
