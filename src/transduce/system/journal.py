"""The journal of a training run has one line of JSON per event.

An event is a dictionary with a name ("event"), a Unix time in seconds ("time") and further values.
"""

import json
import os
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self

from transduce.system.errors import Hint, UserError
from transduce.system.files import finite

Value = str | int | float | bool | None
Event = dict[str, Any]


class Journal:
    """Writes the events of a training run to a file, and flushes the file after each event."""

    def __init__(self, path: Path | None, *, tensorboard: bool = False) -> None:
        """Open `path` for appending, and remove an incomplete last line. If `path` is None, events stay in memory.

        If `tensorboard` is true, also write the numbers in the events to the folder `tensorboard/` next to `path`.
        """
        if path:
            path.touch()
        self._file: BinaryIO = path.open("r+b") if path else BytesIO()
        self._tensorboard = path.parent / "tensorboard" if path and tensorboard else None
        self._writer: Any = None
        self._file.seek(0)
        self.truncate(sum(len(line) for line in self._file if line.endswith(b"\n")))

    @property
    def size(self) -> int:
        """The size of the journal in bytes."""
        return self._file.tell()

    def truncate(self, size: int, keep: str = "-") -> list[Event]:
        """Remove everything after the first `size` bytes, except events with the name `keep`, which are returned."""
        # A power failure may have cut the file off.
        size = min(size, self._file.seek(0, os.SEEK_END))
        self._file.seek(size)
        kept = [line for line in self._file if line.startswith(f'{{"event": "{keep}"'.encode())]
        self._file.seek(size)
        # If the process is killed between these two calls, events may be repeated, but none is missing.
        self._file.writelines(kept)
        self._file.truncate()
        if self._tensorboard:
            self._rewrite_tensorboard(self._tensorboard)
        return [json.loads(line) for line in kept]

    def write(self, event: str, **values: Value) -> None:
        """Append an event. NaN and infinity are written as null."""
        record = finite({"event": event, "time": round(time.time(), 3), **values})
        self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        self._file.flush()
        self._add_scalars(record)

    def close(self) -> None:
        self._file.close()
        if self._writer:
            self._writer.close()

    def _rewrite_tensorboard(self, folder: Path) -> None:
        """Delete the TensorBoard files in `folder`, and write the numbers in the journal to a new file."""
        if self._writer:
            self._writer.close()
        for file in folder.glob("events.out.tfevents.*"):
            file.unlink()
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError(
                "The package tensorboard is not installed.", Hint.install("tensorboard")
            ) from None
        self._writer = SummaryWriter(str(folder))
        self._file.seek(0)
        for line in self._file:
            self._add_scalars(_parse(line, "the journal"))

    def _add_scalars(self, record: Event) -> None:
        """Write the numbers in an event to the TensorBoard file if one is open."""
        if self._writer:
            for name, value in record.items():
                if name not in ("event", "time", "step") and isinstance(value, (int, float)):
                    place = record.get("step"), record.get("time")
                    self._writer.add_scalar(f"{record.get('event')}/{name}", value, *place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a journal in order, without an incomplete last line. Raises UserError for a damaged line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield _parse(line, f"{path}:{number}")


def _parse(line: bytes, place: str) -> Event:
    try:
        return {"event": (event := json.loads(line))["event"], **event}
    except (ValueError, TypeError, LookupError, RecursionError):
        raise UserError(
            f"{place}: this line is damaged.",
            "Remove the line, or use another copy of the file.",
        ) from None
