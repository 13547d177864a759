"""A token store is a folder of encoded sentence pairs. Its files are mapped into memory.

source.ids      target.ids         the ids of all sentences, one after another (16 or 32 bits each)
source.lengths  target.lengths     the number of ids of each sentence (16 or 32 bits each)
source.starts   target.starts      the index of the first id of every 64th sentence (64 bits each)
origin.steps                       how many lines each pair lies after the previous pair (8 bits each), or 0 for a jump
origin.jumps                       the pair number, the file number and the line number of each jump (64 bits each)
store.json                         the integer types of ids and lengths
manifest.json                      the sizes and hashes of all files

A jump is a pair that begins a file, is not 1 to 255 lines after the previous pair, or has a number divisible by 4096.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import Hint, UserError
from transduce.system.files import verify, write_folder
from transduce.tokens.packed import PackedWriter, map_file
from transduce.tokens.vocabulary import Rows

STORE_FORMAT = 2  # stores of any other format are rejected
HEADER = "store.json"
STRIDE = 64  # sentences from one stored start to the next
BLOCK = 10_000  # pairs that are read together
MAX_STEPS = 4096  # steps that are added up to find a pair's line
NUMBER_TYPES = ("source", "target", "source_lengths", "target_lengths")  # keys of the header


class Encoded(NamedTuple):
    """Encoded pairs, with arrays (pairs,) of their file numbers and line numbers."""

    source: Rows
    target: Rows
    files: NDArray[np.int32]
    lines: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_]) -> "Encoded":
        """The pairs for which `chosen` (pairs,) is true."""
        if chosen.all():
            return self
        return Encoded(
            self.source.where(chosen),
            self.target.where(chosen),
            self.files[chosen],
            self.lines[chosen],
        )


def write_store(folder: Path | str, blocks: Iterable[Encoded]) -> None:
    """Write all pairs into a new folder, atomically. Raises UserError if `folder` exists or the disk is full."""
    with write_folder(folder) as aside, ExitStack() as files:
        source, target = (_ColumnWriter(aside / name, files) for name in ("source", "target"))
        origins = _OriginWriter(aside, files)
        for block in blocks:
            source.append(block.source)
            target.append(block.target)
            origins.append(block.files, block.lines)
        types = [source.ids.type, target.ids.type, source.lengths.type, target.lengths.type]
        header = {"format": STORE_FORMAT, **dict(zip(NUMBER_TYPES, types, strict=True))}
        (aside / HEADER).write_text(json.dumps(header) + "\n", encoding="utf-8")


class Column(NamedTuple):
    """All sentences of one side of a store."""

    ids: NDArray[Any]  # (tokens,), unsigned and read-only
    lengths: NDArray[Any]  # (sentences,), without EOS; unsigned, 16 or 32 bits
    # Where every STRIDE-th sentence begins (sentences / STRIDE, rounded up).
    starts: NDArray[np.int64]

    def rows(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The token ids of the sentences at the indices `places`."""
        known, behind = np.divmod(places, STRIDE)
        near = (known[:, None] * STRIDE + np.arange(STRIDE - 1)).clip(max=len(self.lengths) - 1)
        between = np.where(np.arange(STRIDE - 1) < behind[:, None], self.lengths[near], 0)
        starts = self.starts[known] + between.sum(1, dtype=np.int64)
        ends = starts + self.lengths[places]
        return [
            self.ids[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]


class TokenStore:
    """A store that `write_store` wrote, mapped into memory. Pairs are numbered from 0."""

    def __init__(self, folder: Path | str) -> None:
        """Open a store. Raises UserError if a file is missing or has the wrong size."""
        verify(folder)
        folder = Path(folder)
        types = _read_header(folder)
        self.source, self.target = (
            Column(
                map_file(folder / f"{name}.ids", types[name]),
                map_file(folder / f"{name}.lengths", types[f"{name}_lengths"]),
                map_file(folder / f"{name}.starts", "i8"),
            )
            for name in ("source", "target")
        )
        self._steps = map_file(folder / "origin.steps", "u1")
        self._jumps = map_file(folder / "origin.jumps", "i8").reshape(-1, 3)

    def __len__(self) -> int:
        return len(self.source.lengths)

    def encoded(self, places: NDArray[np.int64]) -> Encoded:
        """The pairs at the indices `places`."""
        files, lines = np.array([self.origin(place) for place in places.tolist()]).T
        source, target = (
            Rows(np.concatenate(column.rows(places)), column.lengths[places].astype(np.int64))
            for column in (self.source, self.target)
        )
        return Encoded(source, target, files.astype(np.int32), lines)

    def origin(self, i: int) -> tuple[int, int]:
        """The file number and the line number of pair `i`."""
        jump = bisect_right(self._jumps[:, 0], i) - 1  # np.searchsorted would copy the column
        pair, file, line = self._jumps[jump].tolist()
        return file, line + int(self._steps[pair + 1 : i + 1].sum())


class StoreView(NamedTuple):
    """A token store, read from source to target or, if `swapped`, from target to source."""

    store: TokenStore
    swapped: bool = False
    tags: tuple[int, ...] = ()  # the ids that begin each source

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.store)

    def blocks(self, size: int = BLOCK) -> Iterator[Encoded]:
        """All pairs, in blocks of `size`."""
        for begin in range(0, self.pairs, size):
            block = self.store.encoded(np.arange(begin, min(begin + size, self.pairs)))
            sides = (block.target, block.source) if self.swapped else block[:2]
            yield Encoded(*sides, *block[2:])

    @property
    def source(self) -> Column:
        """The sources, without the tags."""
        return self.store.target if self.swapped else self.store.source

    @property
    def target(self) -> Column:
        """The targets."""
        return self.store.source if self.swapped else self.store.target


class _ColumnWriter:
    """Writes one side of a store to files that the exit stack `files` closes."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        self.ids = files.enter_context(PackedWriter(path.with_suffix(".ids")))
        self.lengths = files.enter_context(PackedWriter(path.with_suffix(".lengths")))
        self._starts = files.enter_context(path.with_suffix(".starts").open("wb"))
        self._count = 0
        self._end = 0

    def append(self, rows: Rows) -> None:
        self.ids.append(rows.ids)
        self.lengths.append(rows.lengths)
        starts = self._end + np.cumsum(rows.lengths) - rows.lengths
        self._starts.write(starts[-self._count % STRIDE :: STRIDE].astype("i8").tobytes())
        self._count += len(rows.lengths)
        self._end += len(rows.ids)


class _OriginWriter:
    """Writes the file number and the line number of every pair to files that the exit stack `files` closes."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self._steps = files.enter_context((folder / "origin.steps").open("wb"))
        self._jumps = files.enter_context((folder / "origin.jumps").open("wb"))
        self._count = 0
        self._last_file = -1
        self._last_line = 0

    def append(self, files: NDArray[np.int32], lines: NDArray[np.int64]) -> None:
        if not len(files):
            return
        steps = np.diff(lines, prepend=self._last_line)
        same_file = np.diff(files, prepend=self._last_file) == 0
        pairs = np.arange(self._count, self._count + len(files))
        jumps = (
            ~same_file | (steps < 1) | (steps > np.iinfo(np.uint8).max) | (pairs % MAX_STEPS == 0)
        )
        self._steps.write(np.where(jumps, 0, steps).astype(np.uint8).tobytes())
        self._jumps.write(
            np.stack((pairs[jumps], files[jumps], lines[jumps]), axis=1).astype("i8").tobytes()
        )
        self._count = self._count + len(files)
        self._last_file = int(files[-1])
        self._last_line = int(lines[-1])


def _read_header(folder: Path) -> dict[str, str]:
    """The integer types of ids and lengths. Raises UserError if the header is missing, damaged or of another format."""
    path = folder / HEADER
    prepare_again = Hint("Prepare the corpus again.")
    try:
        header = json.loads(path.read_bytes())
        version = header["format"]
        if version == STORE_FORMAT:
            types = {name: header[name] for name in NUMBER_TYPES}
            is_known = set(types.values()) <= {"<u2", "<u4", ">u2", ">u4"}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise UserError(f"{path} is missing or damaged.", prepare_again) from None
    if version != STORE_FORMAT:
        raise UserError(
            f"{path} has format {version}, but this version reads format {STORE_FORMAT}.",
            "Prepare the corpus again with this version, or install the version that wrote it.",
        )
    if not is_known:
        raise UserError(f"{path} is damaged: it names unknown number types.", prepare_again)
    return types
