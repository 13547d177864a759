"""Reads and writes files of unsigned 16-bit or 32-bit integers."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

CONVERTED_NUMBERS = 1 << 20  # integers converted at a time


class PackedWriter:
    """Writes a file of 16-bit integers, or of 32-bit integers if any number needs more than 16 bits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._dtype: np.dtype[Any] = np.dtype(np.uint16)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def type(self) -> str:
        """The NumPy name of the file's integer type, for `map_file`."""
        return self._dtype.str

    def append(self, numbers: NDArray[Any]) -> None:
        """Append integers from 0 to 2^32 - 1."""
        if self._dtype.itemsize == 2 and numbers.max(initial=0) > np.iinfo(np.uint16).max:
            self._widen()
        self._file.write(numbers.astype(self._dtype).tobytes())

    def _widen(self) -> None:
        self._file.close()
        narrow = map_file(self._path, self.type)
        self._dtype = np.dtype(np.uint32)
        wide = self._path.with_suffix(".wide")
        self._file = wide.open("wb")
        for start in range(0, len(narrow), CONVERTED_NUMBERS):
            self._file.write(
                narrow[start : start + CONVERTED_NUMBERS].astype(self._dtype).tobytes()
            )
        wide.replace(self._path)


def map_file(path: Path, dtype: str) -> NDArray[Any]:
    """Map a file of integers into memory, read-only."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # an empty file can't be mapped
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
