"""The journal of a run: one JSON line an event.

An event is a dictionary with "event" (its name), "time" (seconds since 1970) and plain values.
"""

import json
import os
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self

from transduce.system.errors import UserError
from transduce.system.files import finite

Value = str | int | float | bool | None
Event = dict[str, Any]


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
