"""Pairs of sentences as ids in a folder, mapped into memory: a corpus need not fit into it.

source.ids      target.ids         all sentences one after another
source.lengths  target.lengths     ids of each sentence
source.starts   target.starts      where every 64th sentence begins, in 64 bits
origin.steps    origin.jumps       the line that each pair came from, and the number of its file (origins.py)
store.json      manifest.json      how wide ids and lengths are; sizes and hashes

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
from transduce.tokens.packed import Numbers, map_file
from transduce.tokens.provenance import FullOrigins, Origins, OriginWriter
from transduce.tokens.word_cache import Rows

FORMAT = 2  # of a store; a newer one is refused. 1 had an offset (64 bits), a file and a line (96) for every pair
HEADER = "store.json"
STRIDE = 64  # sentences from one start that is known to the next
WIDTHS = ("source", "target", "source_lengths", "target_lengths")  # in the header


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
        origins = open_files.enter_context(OriginWriter(aside))
        for block in blocks:
            source.append(block.source)
            target.append(block.target)
            origins.append(block.files, block.lines)
        widths = [source.ids.width, target.ids.width, source.lengths.width, target.lengths.width]
        header = {"format": FORMAT, **dict(zip(WIDTHS, widths, strict=True))}
        (aside / HEADER).write_text(json.dumps(header) + "\n", encoding="utf-8")


class TokenStore:
    """What `write_store` has written; sentences are counted from 0."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        widths = _read_header(self.folder)
        if "source_lengths" in widths:
            self._source, self._target = (_mapped_side(self.folder, side, widths) for side in ("source", "target"))
            self._origins: Origins | FullOrigins = Origins(self.folder)
        else:
            self._source, self._target = (_side_of_format_1(self.folder, side, widths) for side in ("source", "target"))
            self._origins = FullOrigins(self.folder)
        self.source_lengths = self._source.lengths  # EOS not counted; unsigned, perhaps of 16 bits
        self.target_lengths = self._target.lengths

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Map a store into memory after checking the sizes of its files; raises UserError that names a damaged one."""
        verify(folder)
        return cls(folder)

    def __len__(self) -> int:
        """Pairs of sentences."""
        return len(self.source_lengths)

    def source(self, i: int) -> NDArray[Any]:
        """Ids of a source sentence (length,), unsigned and read-only."""
        return self._source.row(self._checked(i))

    def target(self, i: int) -> NDArray[Any]:
        """Ids of a target sentence (length,), unsigned and read-only."""
        return self._target.row(self._checked(i))

    def sources(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The ids of some source sentences, all found at once; the places are not checked."""
        return self._source.rows(places)

    def targets(self, places: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The ids of some target sentences, likewise."""
        return self._target.rows(places)

    def origin(self, i: int) -> tuple[int, int]:
        """Where a pair came from: the number of the file, and the line."""
        return self._origins[self._checked(i)]

    def _checked(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"{self.folder} has no sentence {i}, it has {len(self)}")
        return int(i)


class _Side(NamedTuple):
    """All sentences of one side."""

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


def _mapped_side(folder: Path, side: str, widths: dict[str, str]) -> _Side:
    return _Side(
        map_file(folder / f"{side}.ids", widths[side]),
        map_file(folder / f"{side}.lengths", widths[f"{side}_lengths"]),
        map_file(folder / f"{side}.starts", "i8"),
    )


def _side_of_format_1(folder: Path, side: str, widths: dict[str, str]) -> _Side:
    """Lengths are computed, in four bytes a sentence, without eight on the way."""
    offsets = map_file(folder / f"{side}.offsets", "i8")
    lengths = np.subtract(offsets[1:], offsets[:-1], dtype=np.uint32, casting="unsafe")
    return _Side(map_file(folder / f"{side}.ids", widths[side]), lengths, offsets[:-1:STRIDE])


class _Sentences:
    """One side of a store while it is written."""

    def __init__(self, path: Path) -> None:
        self.ids = Numbers(path.with_suffix(".ids"))
        self.lengths = Numbers(path.with_suffix(".lengths"))
        self._starts = path.with_suffix(".starts").open("wb")
        self._count, self._end = 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.ids, self.lengths, self._starts:  # closes all, even if the disk has no room for what is left of one
            pass

    def append(self, rows: Rows) -> None:
        self.ids.append(rows.ids)
        self.lengths.append(rows.lengths)
        starts = self._end + np.cumsum(rows.lengths) - rows.lengths
        self._starts.write(starts[-self._count % STRIDE :: STRIDE].astype("i8").tobytes())
        self._count += len(rows.lengths)
        self._end += len(rows.ids)


def _read_header(folder: Path) -> dict[str, str]:
    """How wide the numbers are; raises UserError if it is missing, damaged or of a newer format."""
    path = folder / HEADER
    try:
        header = json.loads(path.read_bytes())
        version = header["format"]
        widths = {name: header[name] for name in (WIDTHS[:2] if version == 1 else WIDTHS)}
        kinds = set(widths.values())
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(f"{path} is missing or damaged; prepare {folder} again.") from None
    if version not in (1, FORMAT):
        raise UserError(
            f"{path} has format {version}, this transduce reads format {FORMAT}; install a newer transduce."
        )
    if not kinds <= {"<u2", "<u4", ">u2", ">u4"}:
        raise UserError(f"{path} is damaged: ids can't be {kinds}; prepare {folder} again.")
    return widths
