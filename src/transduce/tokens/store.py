"""Token stores: encoded pairs in a folder, mapped into memory, so that a corpus need not fit into memory.

source.ids      target.ids         the ids of all sentences, one after another
source.lengths  target.lengths     the number of ids of each sentence
source.starts   target.starts      where every 64th sentence begins, in 64 bits
origin.steps    origin.jumps       file and line of each pair (provenance.py)
store.json      manifest.json      types of ids and lengths; sizes and hashes

Ids and lengths take 16 bits if all of them fit, else 32: beside its ids, a pair takes 5.3 bytes.
"""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.system.files import verify, write_folder
from transduce.tokens.packed import PackedWriter, map_file
from transduce.tokens.provenance import Origins, OriginWriter
from transduce.tokens.word_cache import Rows

STORE_FORMAT = 2  # of a store; another one is refused
HEADER = "store.json"
STRIDE = 64  # sentences between two stored starts
NUMBER_TYPES = ("source", "target", "source_lengths", "target_lengths")  # in the header


class Encoded(NamedTuple):
    """Encoded pairs, with the number of the file and the line that each comes from (pairs,)."""

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
    """Write all pairs, in order, into a new folder, whole or not at all.

    Raises UserError if the folder exists or the disk is full.
    """
    with write_folder(folder) as aside, ExitStack() as open_files:
        source = open_files.enter_context(_ColumnWriter(aside / "source"))
        target = open_files.enter_context(_ColumnWriter(aside / "target"))
        origins = open_files.enter_context(OriginWriter(aside))
        for block in blocks:
            source.append(block.source)
            target.append(block.target)
            origins.append(block.files, block.lines)
        types = [source.ids.type, target.ids.type, source.lengths.type, target.lengths.type]
        header = {"format": STORE_FORMAT, **dict(zip(NUMBER_TYPES, types, strict=True))}
        (aside / HEADER).write_text(json.dumps(header) + "\n", encoding="utf-8")


class TokenStore:
    """A store that `write_store` wrote; pairs are counted from 0."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        types = _read_header(self.folder)
        self._source, self._target = (_map_column(self.folder, name, types) for name in ("source", "target"))
        self._origins = Origins(self.folder)
        self.source_lengths = self._source.lengths  # EOS not counted; unsigned, perhaps of 16 bits
        self.target_lengths = self._target.lengths

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Map a store into memory after checking the sizes of its files; raises UserError that names a damaged file."""
        verify(folder)
        return cls(folder)

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.source_lengths)

    def source(self, i: int) -> NDArray[Any]:
        """Ids of a source sentence (length,), unsigned and read-only."""
        return self._source.row(self._checked(i))

    def target(self, i: int) -> NDArray[Any]:
        """Ids of a target sentence (length,), unsigned and read-only."""
        return self._target.row(self._checked(i))

    def sources(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The ids of some source sentences; the places are not checked."""
        return self._source.rows(places)

    def targets(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The ids of some target sentences, likewise."""
        return self._target.rows(places)

    def origin(self, i: int) -> tuple[int, int]:
        """The number of the file and the line that a pair comes from."""
        return self._origins[self._checked(i)]

    def _checked(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"{self.folder} has no sentence {i}, it has {len(self)}")
        return int(i)


class _Column(NamedTuple):
    """All sources, or all targets."""

    ids: NDArray[Any]  # (tokens,)
    lengths: NDArray[Any]  # (sentences,)
    starts: NDArray[np.int64]  # (sentences / STRIDE, rounded up)

    def row(self, i: int) -> NDArray[Any]:
        known = i // STRIDE
        start = int(self.starts[known]) + int(self.lengths[known * STRIDE : i].sum())
        return self.ids[start : start + int(self.lengths[i])]

    def rows(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        known, behind = np.divmod(places, STRIDE)
        near = (known[:, None] * STRIDE + np.arange(STRIDE - 1)).clip(max=len(self.lengths) - 1)
        between = np.where(np.arange(STRIDE - 1) < behind[:, None], self.lengths[near], 0)
        starts = self.starts[known] + between.sum(1, dtype=np.int64)
        ends = starts + self.lengths[places]
        return [self.ids[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _map_column(folder: Path, name: str, types: dict[str, str]) -> _Column:
    return _Column(
        map_file(folder / f"{name}.ids", types[name]),
        map_file(folder / f"{name}.lengths", types[f"{name}_lengths"]),
        map_file(folder / f"{name}.starts", "i8"),
    )


class _ColumnWriter:
    """Writes the sources or the targets of a store."""

    def __init__(self, path: Path) -> None:
        self.ids = PackedWriter(path.with_suffix(".ids"))
        self.lengths = PackedWriter(path.with_suffix(".lengths"))
        self._starts = path.with_suffix(".starts").open("wb")
        self._count, self._end = 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.ids, self.lengths, self._starts:  # closes all, even if the disk is too full to flush one
            pass

    def append(self, rows: Rows) -> None:
        self.ids.append(rows.ids)
        self.lengths.append(rows.lengths)
        starts = self._end + np.cumsum(rows.lengths) - rows.lengths
        self._starts.write(starts[-self._count % STRIDE :: STRIDE].astype("i8").tobytes())
        self._count += len(rows.lengths)
        self._end += len(rows.ids)


def _read_header(folder: Path) -> dict[str, str]:
    """The types of the numbers; raises UserError if the header is missing, damaged or of another format."""
    path = folder / HEADER
    try:
        header = json.loads(path.read_bytes())
        version = header["format"]
        if version == STORE_FORMAT:
            types = {name: header[name] for name in NUMBER_TYPES}
            is_known = set(types.values()) <= {"<u2", "<u4", ">u2", ">u4"}
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(f"{path} is missing or damaged; prepare {folder} again.") from None
    if version != STORE_FORMAT:
        raise UserError(
            f"{path} has format {version}, this transduce reads format {STORE_FORMAT}. Prepare {folder} again with "
            "this version, or install the one that wrote it."
        )
    if not is_known:
        raise UserError(f"{path} is damaged: it names unknown types of numbers; prepare {folder} again.")
    return types
