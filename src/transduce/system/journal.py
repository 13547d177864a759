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
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.table import Column

from transduce.system.errors import UserError

Value = str | int | float | bool | None
Event = dict[str, Any]
Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 25.0  # without a terminal
SECONDS_BETWEEN_FRAMES = 0.2  # on a terminal

_people = Console(stderr=True, highlight=False, emoji=False)  # :Books: in opus:Books:en-de is no emoji


class Journal:
    """The file `journal.jsonl` of a run: events are appended and written out at once."""

    def __init__(self, path: Path, *, tensorboard: bool = False) -> None:
        """Open `path` to append; a line that a crash left torn is removed.

        tensorboard: also write the numbers as TensorBoard event files, into `tensorboard/` beside `path`.
        """
        self._path, self._file = path, path.open("ab")
        self._tensorboard = path.parent / "tensorboard" if tensorboard else None
        self._writer: Any = None
        self.truncate(_whole_lines(path))

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
        plain = {name: None if _is_unwritable(value) else value for name, value in values.items()}
        record = {"event": event, "time": round(time.time(), 3), **plain}
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
        self._writer = open_tensorboard(folder)
        for record in read_events(self._path):
            self._add_scalars(record)

    def _add_scalars(self, record: Event) -> None:
        """The numbers of an event for TensorBoard."""
        if self._writer:
            for name, value in record.items():
                if name not in ("event", "time", "step") and isinstance(value, (int, float)):
                    self._writer.add_scalar(f"{record['event']}/{name}", value, record.get("step"), record["time"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class NoJournal(Journal):
    """No-op journal for ranks other than 0."""

    size = 0

    def __init__(self) -> None:
        """Nothing is opened."""

    def truncate(self, size: int) -> None:
        """Do nothing."""

    def write(self, event: str, **values: Value) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def read_events(path: Path) -> Iterator[Event]:
    """The events of a journal in order, without an incomplete last line."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def open_tensorboard(folder: Path) -> Any:
    """A `torch.utils.tensorboard.SummaryWriter`; raises UserError where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("The package tensorboard is not installed. Install it: pip install tensorboard.") from None
    return SummaryWriter(str(folder))


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


class Progress(NamedTuple):
    """The progress of a training, for people."""

    step: int
    steps: int
    epoch: int
    loss: float  # per target token, since the last report
    perplexity: float
    learning_rate: float
    tokens_per_second: float  # target tokens
    seconds_left: float

    def line(self) -> str:
        """One line, the most important first: a narrow terminal cuts off the end."""
        return (
            f"{self.step:,}/{self.steps:,}  {duration(self.seconds_left)} left  loss {self.loss:.3f}  "
            f"ppl {self.perplexity:.4g}  {self.tokens_per_second:,.0f} tok/s  epoch {self.epoch}  "
            f"lr {self.learning_rate:.2e}"
        )


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Transfer(NamedTuple):
    """The progress of a download."""

    name: str
    step: int  # bytes downloaded
    steps: int  # bytes in total; 0: unknown
    bytes_per_second: float

    def line(self) -> str:
        """One line, the most important first: a narrow terminal cuts off the end."""
        left = duration((self.steps - self.step) / self.bytes_per_second) if self.bytes_per_second else "?"
        of_all = f" of {self.steps / 1e6:,.1f} MB  {left} left" if self.steps else " MB"
        return f"{self.step / 1e6:,.1f}{of_all}  {self.bytes_per_second / 1e6:,.1f} MB/s  {self.name}"


class Display:
    """A line of progress: updated in place on a terminal, printed every 25 seconds elsewhere."""

    def __init__(self) -> None:
        moves = sys.stderr.isatty() and not _people.is_dumb_terminal and not _people.quiet
        self._bar = _progress_bar() if moves else None
        self._shown = -math.inf  # when, on the monotonic clock

    def show(self, progress: Progress | Transfer) -> None:
        """Show the progress, at most every 0.2 seconds on a terminal; cheap to call often."""
        now = time.monotonic()
        if now - self._shown < (SECONDS_BETWEEN_FRAMES if self._bar else SECONDS_BETWEEN_LINES):
            return
        self._shown = now
        if self._bar:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=progress.step, total=progress.steps or None, description=progress.line())
            self._bar.refresh()
        else:
            say(progress.line())

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()


def _progress_bar() -> ProgressBar:
    """A line that is drawn only by `show`, without a thread of its own."""
    columns = BarColumn(bar_width=12), TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    bar = ProgressBar(*columns, console=_people, auto_refresh=False, transient=True, redirect_stdout=False)
    bar.add_task("", total=None)
    return bar


def _whole_lines(path: Path) -> int:
    """Bytes of the complete lines."""
    with path.open("rb") as file:
        return sum(len(line) for line in file if line.endswith(b"\n"))


def _is_unwritable(value: Value) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
