"""The clean pairs of a corpus in files, while it is prepared: a corpus need not fit into memory."""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.text.hashes import Bits64
from transduce.text.holdout import SLICE, TRAIN, sentences
from transduce.text.pairs import Origin, Pair

INDEX = "spool.json"  # what is needed to open it again
CHUNK = 2000  # pairs that are written, read and encoded together


class Block(NamedTuple):
    """Some consecutive pairs of one part of a corpus, side by side."""

    sources: list[str]
    targets: list[str]
    files: NDArray[np.int32]  # numbers of Spool.files
    lines: NDArray[np.int64]


class Spool:
    """Pairs in the order in which they were written, which is done once.

    `parts` says to which part of the corpus each pair belongs; all are trained on, until someone decides otherwise.
    """

    def __init__(self, folder: Path, pairs: Iterable[Pair], *, hashed: bool) -> None:
        """Write the pairs, whose texts are single lines, into a new folder; hashed: also their sentences' hashes."""
        self._folder = folder
        self._ends = [0]  # of the chunks, in bytes
        numbers: dict[str, int] = {}
        folder.mkdir(parents=True)
        stream, length = iter(pairs), 0
        with (
            self._path("texts").open("wb") as texts,
            self._path("files").open("wb") as files,
            self._path("lines").open("wb") as lines,
            self._path("hashes").open("wb") as hashes,
        ):
            while chunk := list(islice(stream, CHUNK)):
                texts.write("".join([f"{pair.source}\n{pair.target}\n" for pair in chunk]).encode())
                files.write(array("i", [numbers.setdefault(pair.origin.file, len(numbers)) for pair in chunk]))
                lines.write(array("q", [pair.origin.line for pair in chunk]))
                if hashed:
                    hashes.write(sentences(chunk).tobytes())
                self._ends.append(texts.tell())
                length += len(chunk)
        self.files = list(numbers)
        self.parts = np.full(length, TRAIN, dtype=np.int8)
        self._path(INDEX).write_text(json.dumps({"files": self.files, "ends": self._ends, "length": length}))

    @classmethod
    def open(cls, folder: Path) -> Self:
        """One that was written before; all of its pairs are trained on again."""
        spool = cls.__new__(cls)
        spool._folder = folder
        found = json.loads(spool._path(INDEX).read_bytes())
        spool.files, spool._ends = found["files"], found["ends"]
        spool.parts = np.full(found["length"], TRAIN, dtype=np.int8)
        return spool

    def __len__(self) -> int:
        """Pairs of all parts."""
        return len(self.parts)

    def count(self, part: int = TRAIN, every: int = 1) -> int:
        """Pairs of a part, or of what `blocks` gives of it."""
        if every == 1:
            return int(np.count_nonzero(self.parts == part))
        return sum(
            int(np.count_nonzero(self.parts[start : start + CHUNK] == part))
            for start in range(0, len(self), every * CHUNK)
        )

    def sentences(self) -> Iterator[Bits64]:
        """The hashes of both sentences of every pair that is trained on, in blocks (pairs, 2), if they were written."""
        for start in range(0, len(self), SLICE):
            hashes = np.memmap(self._path("hashes"), dtype="<u8", mode="r").reshape(-1, 2)[start : start + SLICE]
            chosen = self.parts[start : start + SLICE] == TRAIN
            yield hashes if chosen.all() else hashes[chosen]

    def blocks(self, part: int = TRAIN, every: int = 1) -> Iterator[Block]:
        """The pairs of a part, in blocks; none is empty. every: one block of so many, the others are not read."""
        with (
            self._path("texts").open("rb") as texts,
            self._path("files").open("rb") as files,
            self._path("lines").open("rb") as lines,
        ):
            for number in range(0, len(self._ends) - 1, every):
                start, end = self._ends[number : number + 2]
                if every > 1:
                    texts.seek(start)
                    files.seek(4 * CHUNK * number)
                    lines.seek(8 * CHUNK * number)
                sides = texts.read(end - start).decode().split("\n")
                block = Block(
                    sides[:-1:2], sides[1::2], np.fromfile(files, "i4", CHUNK), np.fromfile(lines, "i8", CHUNK)
                )
                chosen = self.parts[number * CHUNK : (number + 1) * CHUNK] == part
                if chosen.all():
                    yield block
                elif chosen.any():
                    kept = list(compress(block.sources, chosen)), list(compress(block.targets, chosen))
                    yield Block(*kept, block.files[chosen], block.lines[chosen])

    def pairs(self, part: int = TRAIN) -> Iterator[Pair]:
        """The pairs of a part."""
        for block in self.blocks(part):
            for source, target, file, line in zip(*block, strict=True):
                yield Pair(source, target, Origin(self.files[file], int(line)))

    def _path(self, name: str) -> Path:
        return self._folder / name


class Texts(Collection[str]):
    """One side of what is trained on, of several corpora, one after another; can be gone through many times.

    every: one block of each so many, if that is enough.
    """

    def __init__(self, spools: Sequence[Spool], side: int, every: int = 1) -> None:
        self._spools, self._side, self._every = spools, side, every

    def __len__(self) -> int:
        return sum(spool.count(every=self._every) for spool in self._spools)

    def __iter__(self) -> Iterator[str]:
        for spool in self._spools:
            for block in spool.blocks(every=self._every):
                yield from block[self._side]

    def __contains__(self, text: object) -> bool:
        return any(text == each for each in self)
