"""File and line of every pair of a store, in little more than a byte each: most pairs stand one line apart.

origin.steps   the lines from the pair before to this one, in 8 bits; 0 for a jump
origin.jumps   pair, number of its file and line (64 bits each), of every pair whose step exceeds 8 bits or that is in
               another file, and of every 4096th pair
"""

from bisect import bisect_right
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transduce.tokens.packed import map_file

MAX_STEPS = 4096  # that are added up to find a line


class OriginWriter:
    """Writes file and line of every pair."""

    def __init__(self, folder: Path) -> None:
        with ExitStack() as files:
            self._steps = files.enter_context((folder / "origin.steps").open("wb"))
            self._jumps = files.enter_context((folder / "origin.jumps").open("wb"))
            self._files = files.pop_all()
        self._count, self._last_file, self._last_line = 0, -1, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def append(self, files: NDArray[np.int32], lines: NDArray[np.int64]) -> None:
        """Write the numbers of the files and the lines of more pairs, (pairs,) each."""
        if not len(files):
            return
        steps = np.diff(lines, prepend=self._last_line)
        same_file = np.diff(files, prepend=self._last_file) == 0
        pairs = np.arange(self._count, self._count + len(files))
        jumps = ~same_file | (steps < 1) | (steps > np.iinfo(np.uint8).max) | (pairs % MAX_STEPS == 0)
        self._steps.write(np.where(jumps, 0, steps).astype(np.uint8).tobytes())
        self._jumps.write(np.stack((pairs[jumps], files[jumps], lines[jumps]), axis=1).astype("i8").tobytes())
        self._count, self._last_file, self._last_line = self._count + len(files), int(files[-1]), int(lines[-1])


class Origins:
    """What an OriginWriter wrote: pair -> (number of the file, line)."""

    def __init__(self, folder: Path) -> None:
        self._steps = map_file(folder / "origin.steps", "u1")
        self._jumps = map_file(folder / "origin.jumps", "i8").reshape(-1, 3)

    def __getitem__(self, i: int) -> tuple[int, int]:
        pair, file, line = self._jumps[
            bisect_right(self._jumps[:, 0], i) - 1
        ].tolist()  # np.searchsorted would copy the column
        return file, line + int(self._steps[pair + 1 : i + 1].sum())
