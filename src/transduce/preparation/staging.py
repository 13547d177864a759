"""Staged pairs are the pairs of a part of a corpus that remain after cleaning, stored in files.

folder/   texts           two lines for every pair, the source and the target
          files  lines    the file number (32 bits) and the line (64 bits) of every pair
          duplicate  near-duplicate   a 64-bit hash of every pair, or nothing if the rule of this name is off
          sentences       hashes of every source and target (64 bits each), for the hold-out
          parts           the `Part` of every pair (8 bits)
          staged.json     the tag, the names of the files, the ends of the blocks, and the pairs left out
"""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.text.clean import LINES_KEPT
from transduce.text.hashes import Bits64
from transduce.text.holdout import Part, sentences, slices
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import DUPLICATE, NEAR_DUPLICATE
from transduce.tokens.packed import map_file

INDEX = "staged.json"
SAMPLE_BLOCK = 2000  # consecutive pairs that the sample takes or skips together
STAGED_BLOCK_PAIRS = 2000  # maximum number of pairs that are written, read and encoded together
COLUMNS = ("texts", "files", "lines", DUPLICATE, NEAR_DUPLICATE, "sentences", "parts")

Parts = NDArray[np.int8]


class LeftOut(NamedTuple):
    """The pairs that one cleaning rule left out before staging."""

    number: int
    # For each of the first LINES_KEPT pairs, the number of staged pairs before it, and its origin.
    first: list[tuple[int, Origin]]


class Block(NamedTuple):
    """Consecutive staged pairs."""

    sources: list[str]
    targets: list[str]
    files: NDArray[np.int32]  # indices into StagedPairs.files
    lines: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_]) -> "Block":
        """Select the pairs for which the mask `chosen` of shape (pairs,) is true."""
        if chosen.all():
            return self
        texts = list(compress(self.sources, chosen)), list(compress(self.targets, chosen))
        return Block(*texts, self.files[chosen], self.lines[chosen])


@dataclass
class StagedPairs:
    """The staged pairs in a folder, in the order of the corpus. Changes to `parts` are not written to the folder."""

    folder: Path
    tag: str  # the text before each source of a synthetic corpus
    files: list[str]
    pair_ends: list[int]  # 0, and for each block, the number of pairs up to its end
    byte_ends: list[int]  # 0, and the byte offset in the file of texts at which each block ends
    read: int  # all pairs that were read, including those left out
    left_out: dict[str, LeftOut]  # the left-out pairs by rule
    parts: Parts

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder that a StagingWriter wrote."""
        index = json.loads((folder / INDEX).read_bytes())
        left_out = {
            rule: LeftOut(number, [(position, Origin(*origin)) for position, origin in first])
            for rule, (number, first) in index.pop("left_out").items()
        }
        return cls(folder, **index, left_out=left_out, parts=np.fromfile(folder / "parts", np.int8))

    def __len__(self) -> int:
        return len(self.parts)

    def count(self, part: Part = Part.TRAIN) -> int:
        """The number of pairs in a part of the corpus."""
        return int(np.count_nonzero(self.parts == part))

    def hashes(self, rule: str) -> Bits64:
        """The hash of each pair by which `rule` finds repetitions, as a memory-mapped array."""
        return map_file(self.folder / rule, "<u8")

    def sentences(self) -> Iterator[Bits64]:
        """Yield the hashes of the sources and targets of the training pairs, in arrays of shape (pairs, 2)."""
        hashes = map_file(self.folder / "sentences", "<u8").reshape(-1, 2)
        for block in slices(len(self)):
            chosen = self.parts[block] == Part.TRAIN
            yield hashes[block] if chosen.all() else hashes[block][chosen]

    def file_numbers(self) -> NDArray[np.int32]:
        """The index of each pair's file in `files`, as a memory-mapped array."""
        return map_file(self.folder / "files", "i4")

    def origins(self, pairs: Iterable[int]) -> list[Origin]:
        """The files and line numbers of the pairs at the indices `pairs`."""
        files = self.file_numbers()
        lines = map_file(self.folder / "lines", "i8")
        return [Origin(self.files[files[pair]], int(lines[pair])) for pair in pairs]

    def block_parts(self) -> list[Parts]:
        """Split `parts` into one array per block."""
        return [self.parts[begin:end] for begin, end in pairwise(self.pair_ends)]

    def read_block(self, number: int) -> Block:
        begin, end = self.pair_ends[number : number + 2]
        first_byte, last_byte = self.byte_ends[number : number + 2]
        with (self.folder / "texts").open("rb") as file:
            file.seek(first_byte)
            texts = file.read(last_byte - first_byte).decode().split("\n")
        return Block(
            [self.tag + text for text in texts[:-1:2]],
            texts[1::2],
            np.fromfile(self.folder / "files", "i4", end - begin, offset=4 * begin),
            np.fromfile(self.folder / "lines", "i8", end - begin, offset=8 * begin),
        )

    def blocks(self, part: Part = Part.TRAIN) -> Iterator[Block]:
        """Yield the pairs whose `Part` is `part`, in blocks of at least one pair."""
        for number, parts in enumerate(self.block_parts()):
            chosen = parts == part
            if chosen.any():
                yield self.read_block(number).where(chosen)

    def pairs(self, part: Part = Part.TRAIN) -> Iterator[Pair]:
        """Yield the pairs whose `Part` is `part`."""
        for block in self.blocks(part):
            for source, target, file, line in zip(*block, strict=True):
                yield Pair(source, target, Origin(self.files[file], int(line)))


class StagingWriter:
    """Writes a folder of staged pairs, with the hashes for `hold_out` if `with_sentences` is true.

    The texts are written without the `tag` of a synthetic corpus, which would hide that a source is held out.
    """

    def __init__(self, folder: Path, *, tag: str = "", with_sentences: bool) -> None:
        self.length = 0
        self._folder = folder
        self._tag = tag
        self._with_sentences = with_sentences
        self._numbers: dict[str, int] = {}  # numbers of the files
        self._pair_ends = [0]
        self._byte_ends = [0]
        self._left_out: dict[str, LeftOut] = {}
        folder.mkdir(parents=True)
        self._columns = {name: (folder / name).open("wb") for name in COLUMNS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._columns.values():
            file.close()

    def append(self, pairs: Sequence[Pair], parts: Parts, hashes: Mapping[str, Bits64]) -> None:
        """Write pairs whose texts contain no line feeds. `hashes` maps a rule to an array with one hash per pair."""
        for start in range(0, len(pairs), STAGED_BLOCK_PAIRS):
            block = slice(start, start + STAGED_BLOCK_PAIRS)
            some = pairs[block]
            files = [
                self._numbers.setdefault(pair.origin.file, len(self._numbers)) for pair in some
            ]
            columns: dict[str, Any] = {
                "texts": "".join([f"{pair.source}\n{pair.target}\n" for pair in some]).encode(),
                "files": array("i", files),
                "lines": array("q", [pair.origin.line for pair in some]),
                "parts": parts[block],
                **{rule: column[block] for rule, column in hashes.items()},
            }
            if self._with_sentences:
                columns["sentences"] = sentences(some)
            for name, column in columns.items():
                self._columns[name].write(column)
            self.length += len(some)
            self._pair_ends.append(self.length)
            self._byte_ends.append(self._columns["texts"].tell())

    def leave_out(self, rule: str, position: int, origin: Origin) -> None:
        """Record a pair that `rule` left out. `position` is the number of staged pairs before it."""
        number, first = self._left_out.get(rule, LeftOut(0, []))
        if len(first) < LINES_KEPT:
            first.append((position, origin))
        self._left_out[rule] = LeftOut(number + 1, first)

    def finish(self, read: int) -> StagedPairs:
        """Write INDEX, after the other files are closed. `read` is the number of pairs before cleaning."""
        index = {
            "tag": self._tag,
            "files": list(self._numbers),
            "pair_ends": self._pair_ends,
            "byte_ends": self._byte_ends,
            "read": read,
            "left_out": self._left_out,
        }
        (self._folder / INDEX).write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
        return StagedPairs.open(self._folder)


# The parts of a corpus, and the side of their pairs: 0 for sources, 1 for targets.
Column = tuple[Sequence[StagedPairs], int]


class StagedTexts(Collection[str]):
    """The texts of a sample of the training pairs.

    The sample contains every n-th block of SAMPLE_BLOCK consecutive pairs of a corpus, where n is `every`.
    """

    def __init__(self, columns: Sequence[Column], every: int = 1) -> None:
        self._columns = columns
        self._every = every

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(chosen)) for *_, chosen in self._blocks())

    def __iter__(self) -> Iterator[str]:
        for column, staged, number, chosen in self._blocks():
            if chosen.any():
                yield from compress(staged.read_block(number)[column], chosen.tolist())

    def __contains__(self, text: object) -> bool:
        return any(text == other for other in self)

    def _blocks(self) -> Iterator[tuple[int, StagedPairs, int, NDArray[np.bool_]]]:
        """Yield each block's column, StagedPairs, index in these StagedPairs, and mask of the sampled pairs."""
        for parts, column in self._columns:
            kept_before = 0
            for staged in parts:
                for number, block in enumerate(staged.block_parts()):
                    kept = kept_before + np.cumsum(block <= Part.DROPPED)
                    kept_before = int(kept[-1])
                    yield (
                        column,
                        staged,
                        number,
                        (block == Part.TRAIN) & ((kept - 1) // SAMPLE_BLOCK % self._every == 0),
                    )
