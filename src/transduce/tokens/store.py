"""Pairs of sentences as ids in a folder, mapped into memory: a corpus need not fit into it.

source.ids      target.ids         all sentences one after another, in 16 bits if all ids fit, else in 32
source.offsets  target.offsets     where each begins and the last ends, in 64 bits
origin.files    origin.lines       the number of the file and the line that each pair came from
store.json      manifest.json      how wide the ids are; sizes and hashes
"""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.errors import UserError
from transduce.files import verify, write_folder
from transduce.tokens.words import Rows

FORMAT = 1  # of a store; a newer one is refused
HEADER = "store.json"
CHUNK = 1 << 20  # ids converted at once


class Encoded(NamedTuple):
    """Some pairs as ids, with where they come from: the numbers of their files, and their lines (pairs,)."""

    source: Rows
    target: Rows
    files: NDArray[np.int32]
    lines: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_]) -> "Encoded":
        """Some of the pairs; chosen: (pairs,)."""
        if chosen.all():
            return self
        return Encoded(self.source.where(chosen), self.target.where(chosen), self.files[chosen], self.lines[chosen])


def write_store(folder: Path | str, blocks: Iterable[Encoded]) -> None:
    """Write all pairs, in order, as they come.

    Raises UserError if the folder exists or the disk is full; the folder is written whole or not at all.
    """
    with write_folder(folder) as aside, ExitStack() as open_files:
        source = open_files.enter_context(_Sentences(aside / "source"))
        target = open_files.enter_context(_Sentences(aside / "target"))
        files = open_files.enter_context((aside / "origin.files").open("wb"))
        lines = open_files.enter_context((aside / "origin.lines").open("wb"))
        for block in blocks:
            source.append(block.source)
            target.append(block.target)
            files.write(block.files.astype("i4").tobytes())
            lines.write(block.lines.astype("i8").tobytes())
        header = {"format": FORMAT, "source": source.dtype.str, "target": target.dtype.str}
        (aside / HEADER).write_text(json.dumps(header) + "\n", encoding="utf-8")


class TokenStore:
    """What `write_store` has written; sentences are counted from 0."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        header = _read_header(self.folder)
        self._source = _map(self.folder / "source.ids", header["source"])
        self._target = _map(self.folder / "target.ids", header["target"])
        self._source_offsets = _map(self.folder / "source.offsets", "i8")
        self._target_offsets = _map(self.folder / "target.offsets", "i8")
        self._files = _map(self.folder / "origin.files", "i4")
        self._lines = _map(self.folder / "origin.lines", "i8")
        self.source_lengths = _differences(self._source_offsets)  # EOS not counted
        self.target_lengths = _differences(self._target_offsets)

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Map a store into memory after checking the sizes of its files; raises UserError that names a damaged one."""
        verify(folder)
        return cls(folder)

    def __len__(self) -> int:
        """Pairs of sentences."""
        return len(self._files)

    def source(self, i: int) -> NDArray[Any]:
        """Ids of a source sentence (length,), unsigned and read-only."""
        return self._source[self._source_offsets[self._checked(i)] : self._source_offsets[i + 1]]

    def target(self, i: int) -> NDArray[Any]:
        """Ids of a target sentence (length,), unsigned and read-only."""
        return self._target[self._target_offsets[self._checked(i)] : self._target_offsets[i + 1]]

    def origin(self, i: int) -> tuple[int, int]:
        """Where a pair came from: the number of the file, and the line."""
        return int(self._files[self._checked(i)]), int(self._lines[i])

    def _checked(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"{self.folder} has no sentence {i}, it has {len(self)}")
        return i


class _Sentences:
    """One side of a store while it is written: a file of ids, and one of offsets."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_suffix(".ids")
        self._ids = self._path.open("wb")
        self._offsets = path.with_suffix(".offsets").open("wb")
        self._typecode, self._end = "H", 0
        self._offsets.write(np.zeros(1, "i8").tobytes())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._ids, self._offsets:  # closes both, even if the disk has no room for what is left of one
            pass

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._typecode)

    def append(self, rows: Rows) -> None:
        if self._typecode == "H" and rows.ids.max(initial=0) > np.iinfo(np.uint16).max:
            self._widen()
        self._ids.write(rows.ids.astype(self.dtype).tobytes())
        ends = self._end + np.cumsum(rows.lengths)
        self._offsets.write(ends.astype("i8").tobytes())
        self._end += len(rows.ids)

    def _widen(self) -> None:
        """Go on in 32 bits, and convert what is there."""
        self._ids.close()
        narrow = _map(self._path, self.dtype.str)
        self._typecode = "I"
        wide = self._path.with_suffix(".wide")
        self._ids = wide.open("wb")
        for start in range(0, len(narrow), CHUNK):
            self._ids.write(narrow[start : start + CHUNK].astype(self.dtype).tobytes())
        wide.replace(self._path)


def _read_header(folder: Path) -> dict[str, str]:
    """Raises UserError if it is missing, damaged or of a newer format."""
    path = folder / HEADER
    try:
        header = json.loads(path.read_bytes())
        version, kinds = header["format"], {header["source"], header["target"]}
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(f"{path} is missing or damaged; prepare {folder} again.") from None
    if version != FORMAT:
        raise UserError(
            f"{path} has format {version}, this transduce reads format {FORMAT}; install a newer transduce."
        )
    if not kinds <= {"<u2", "<u4", ">u2", ">u4"}:
        raise UserError(f"{path} is damaged: ids can't be {kinds}; prepare {folder} again.")
    return {side: header[side] for side in ("source", "target")}


def _differences(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Of neighbours, in the four bytes that a sentence needs, without eight on the way."""
    return np.subtract(offsets[1:], offsets[:-1], dtype=np.int32, casting="unsafe")


def _map(path: Path, dtype: str) -> NDArray[Any]:
    """A file's numbers, without reading them; an empty file can't be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
