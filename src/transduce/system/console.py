"""Messages and progress, printed on standard error; standard output is for results only."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 25.0  # without a terminal
SECONDS_BETWEEN_FRAMES = 0.2  # on a terminal

_console = Console(stderr=True, highlight=False, emoji=False)  # no emoji for ":Books:" in opus:Books:en-de


def silence(wanted: bool) -> None:
    """Turn this process's messages off, or on again; in distributed training, only rank 0 prints."""
    _console.quiet = wanted


def log(text: str) -> None:
    """Print a message on standard error, above the progress line if there is one."""
    _console.print(text, markup=False, soft_wrap=True)


def with_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items; every 25 seconds, print how many items were yielded, in total and per second."""
    last = began = time.monotonic()
    for number, item in enumerate(items, start=1):
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            log(f"{number:,} {what}, {number / (last - began):,.1f} a second")
        yield item


def duration(seconds: float) -> str:
    """A number of seconds as h:mm:ss."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def transfer_line(name: str, done: int, total: int, rate: float) -> str:
    """The progress line of a download; `done` and `total` (0: unknown) are in bytes, `rate` in bytes per second."""
    left = duration((total - done) / rate) if rate else "?"
    of_all = f" of {total / 1e6:,.1f} MB  {left} left" if total else " MB"
    return f"{done / 1e6:,.1f}{of_all}  {rate / 1e6:,.1f} MB/s  {name}"


class Display:
    """A progress line, redrawn in place on a terminal; without a terminal, printed at most every 25 seconds."""

    def __init__(self) -> None:
        self._shown = -math.inf  # time of the last update, on the monotonic clock
        self._bar: Progress | None = None
        if sys.stderr.isatty() and not _console.is_dumb_terminal and not _console.quiet:
            text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
            # Only `show` draws the bar, so rich needs no thread for it.
            bar = Progress(
                BarColumn(12), text, console=_console, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._bar, self._task = bar, bar.add_task("", total=None)

    def show(self, done: int, total: int, text: str) -> None:
        """Update the progress line, unless it was updated a moment ago; a `total` of 0 means unknown."""
        now = time.monotonic()
        if now - self._shown < (SECONDS_BETWEEN_FRAMES if self._bar else SECONDS_BETWEEN_LINES):
            return
        self._shown = now
        if self._bar:
            self._bar.update(self._task, completed=done, total=total or None, description=text, refresh=True)
        else:
            log(text)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns on standard output, without wrapping, so that long cells can be copied."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
