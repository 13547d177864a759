"""Whole numbers in a file, in as few bits as all of them fit into: 16 or 32."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 20  # numbers converted at once


class Numbers:
    """A file of numbers while it is written: in 16 bits until one does not fit, then all in 32."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._dtype: np.dtype[Any] = np.dtype(np.uint16)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def width(self) -> str:
        """The type that the file has to be mapped with."""
        return self._dtype.str

    def append(self, numbers: NDArray[Any]) -> None:
        """Write some more; none is negative or beyond 32 bits."""
        if self._dtype.itemsize == 2 and numbers.max(initial=0) > np.iinfo(np.uint16).max:
            self._widen()
        self._file.write(numbers.astype(self._dtype).tobytes())

    def _widen(self) -> None:
        """Go on in 32 bits, and convert what is there."""
        self._file.close()
        narrow = map_file(self._path, self.width)
        self._dtype = np.dtype(np.uint32)
        wide = self._path.with_suffix(".wide")
        self._file = wide.open("wb")
        for start in range(0, len(narrow), CHUNK):
            self._file.write(narrow[start : start + CHUNK].astype(self._dtype).tobytes())
        wide.replace(self._path)


def map_file(path: Path, dtype: str) -> NDArray[Any]:
    """A file's numbers, without reading them; an empty file can't be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
