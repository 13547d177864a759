"""Texts by their hashes: what repeats in a corpus that does not fit into memory."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bits64 = NDArray[np.uint64]


def hash_text(text: str) -> bytes:
    """8 bytes, the same in every process, unlike Python's own: what is left out may not depend on chance."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def as_numbers(hashes: Sequence[bytes]) -> Bits64:
    """Hashes of 8 bytes as numbers."""
    return np.frombuffer(b"".join(hashes), dtype="<u8")


class Hashes:
    """A set of hashes that only grows, in sorted arrays, each at least twice as long as the next: 8 bytes each."""

    def __init__(self) -> None:
        self._runs: list[Bits64] = []

    def add(self, hashes: Sequence[bytes]) -> list[bool]:
        """Whether each was not there, neither before nor earlier in the same call."""
        numbers = as_numbers(hashes)
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        is_new = np.ones(len(numbers), dtype=bool)
        is_new[1:] = ascending[1:] != ascending[:-1]
        for run in self._runs:
            places = np.searchsorted(run, ascending).clip(max=len(run) - 1)
            is_new &= run[places] != ascending
        self._keep(ascending[is_new])
        found = np.empty_like(is_new)
        found[order] = is_new
        return found.tolist()

    def _keep(self, run: Bits64) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate((self._runs.pop(), self._runs.pop()))
            merged.sort(kind="stable")  # which finds that there are two sorted parts
            self._runs.append(merged)
