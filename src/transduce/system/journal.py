"""The journal of a run: one JSON line an event for programs, and a line of progress for people.

An event is a dictionary with "event" (its name), "time" (seconds since 1970) and plain values. Messages for people
go to the standard error, so the standard output holds results only.
"""

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from transduce.system.errors import UserError
from transduce.system.files import finite

Value = str | int | float | bool | None
Event = dict[str, Any]
Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 25.0  # without a terminal
SECONDS_BETWEEN_FRAMES = 0.2  # on a terminal

_people = Console(stderr=True, highlight=False, emoji=False)  # :Books: in opus:Books:en-de is no emoji


class Journal:
    """The file `journal.jsonl` of a run: events are appended and written out at once."""

    def __init__(self, path: Path | None, *, tensorboard: bool = False) -> None:
        """Open `path` to append; a line that a crash left torn is removed. None: write nothing to the disk.

        tensorboard: also write the numbers as TensorBoard event files, into `tensorboard/` beside `path`.
        """
        self._file: BinaryIO = path.open("a+b") if path else BytesIO()
        self._tensorboard = path.parent / "tensorboard" if path and tensorboard else None
        self._writer: Any = None
        self._file.seek(0)
        self.truncate(sum(len(line) for line in self._file if line.endswith(b"\n")))

    @property
    def size(self) -> int:
        """Bytes written so far: what a checkpoint remembers, and `truncate` goes back to."""
        return self._file.tell()

    def truncate(self, size: int) -> None:
        """Forget the events behind the first `size` bytes: a resumed run will write them again."""
        self._file.seek(0, os.SEEK_END)
        self._file.truncate(min(size, self._file.tell()))  # a power failure may have left less than was written
        self._file.seek(0, os.SEEK_END)
        if self._tensorboard:
            self._rewrite_tensorboard(self._tensorboard)

    def write(self, event: str, **values: Value) -> None:
        """Append one event; numbers that JSON does not know (nan, inf) become null."""
        record = finite({"event": event, "time": round(time.time(), 3), **values})
        self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        self._file.flush()
        self._add_scalars(record)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._writer:
            self._writer.close()

    def _rewrite_tensorboard(self, folder: Path) -> None:
        """Replace the event files by one with the journal's events: points after a checkpoint must not stay."""
        if self._writer:
            self._writer.close()
        for file in folder.glob("events.out.tfevents.*"):
            file.unlink()
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("The package tensorboard is not installed. Install it: pip install tensorboard.") from None
        self._writer = SummaryWriter(str(folder))
        self._file.seek(0)
        for line in self._file:
            self._add_scalars(json.loads(line))

    def _add_scalars(self, record: Event) -> None:
        """Write the numbers of an event for TensorBoard."""
        if self._writer:
            for name, value in record.items():
                if name not in ("event", "time", "step") and isinstance(value, (int, float)):
                    self._writer.add_scalar(f"{record['event']}/{name}", value, record.get("step"), record["time"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_events(path: Path) -> Iterator[Event]:
    """The events of a journal in order, without an incomplete last line."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def silence(wanted: bool) -> None:
    """Whether this process prints no more messages: of several ranks, only rank 0 prints."""
    _people.quiet = wanted


def say(text: str) -> None:
    """Print a message on the standard error, above the line of progress if there is one."""
    _people.print(text, markup=False, soft_wrap=True)


def telling(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The same items, with a message about their number and rate every 25 seconds."""
    last = began = time.monotonic()
    for number, item in enumerate(items, start=1):
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{number:,} {what}, {number / (last - began):,.1f} a second")
        yield item


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def transfer_line(name: str, done: int, total: int, rate: float) -> str:
    """The progress of a download; done, total (0: unknown) and rate in bytes. A narrow terminal cuts off the end."""
    left = duration((total - done) / rate) if rate else "?"
    of_all = f" of {total / 1e6:,.1f} MB  {left} left" if total else " MB"
    return f"{done / 1e6:,.1f}{of_all}  {rate / 1e6:,.1f} MB/s  {name}"


class Display:
    """A line of progress: updated in place on a terminal, printed every 25 seconds elsewhere."""

    def __init__(self) -> None:
        self._shown = -math.inf  # when, on the monotonic clock
        self._bar: Progress | None = None
        if sys.stderr.isatty() and not _people.is_dumb_terminal and not _people.quiet:
            text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
            # Drawn only by `show`, without a thread of its own.
            bar = Progress(
                BarColumn(12), text, console=_people, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._bar, self._task = bar, bar.add_task("", total=None)

    def show(self, done: int, total: int, text: str) -> None:
        """Show the progress (total = 0: unknown), at most every 0.2 seconds on a terminal; cheap to call often."""
        now = time.monotonic()
        if now - self._shown < (SECONDS_BETWEEN_FRAMES if self._bar else SECONDS_BETWEEN_LINES):
            return
        self._shown = now
        if self._bar:
            self._bar.update(self._task, completed=done, total=total or None, description=text, refresh=True)
        else:
            say(text)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
