"""Hashes of texts, to find repetitions in a corpus that does not fit into memory."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Bits64 = NDArray[np.uint64]
PARTITIONS = 16  # comparing the hashes of one partition at a time takes a sixteenth of the memory


def hash_texts(texts: Iterable[str]) -> Bits64:
    """A 64-bit hash of each text that is equal in all processes."""
    hashes = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(hashes), dtype="<u8")


def alike(blocks: Callable[[], Iterable[Bits64]]) -> Iterator[tuple[NDArray[np.int64], Bits64]]:
    """Yield the hashes in partitions, as (indices, hashes), with equal hashes in the same partition.

    Each call of `blocks` must yield all hashes. The indices refer to the flattened, concatenated arrays of `blocks`.
    """
    for remainder in range(PARTITIONS):
        places = [np.empty(0, np.int64)]
        hashes = [np.empty(0, "<u8")]
        begin = 0
        for block in blocks():
            flat = block.reshape(-1)
            last_bytes = flat.view(np.uint8)[::8]  # uniformly distributed, like the whole hash
            here = np.flatnonzero(last_bytes % PARTITIONS == remainder)
            places.append(begin + here)
            hashes.append(flat[here])
            begin += len(flat)
        yield np.concatenate(places), np.concatenate(hashes)


class SeenHashes:
    """A set of hashes that takes 8 bytes per hash, and up to 12 during `add`."""

    def __init__(self) -> None:
        # Sorted arrays; each array is at least twice as long as the next.
        self._runs: list[Bits64] = []

    def add(self, hashes: Bits64) -> NDArray[np.bool_]:
        """Add hashes, and return a mask of the hashes that are neither in the set nor earlier in `hashes`."""
        order = np.argsort(hashes, kind="stable")
        ascending = hashes[order]
        is_new = np.ones(len(hashes), dtype=bool)
        is_new[1:] = ascending[1:] != ascending[:-1]
        for run in self._runs:
            places = np.searchsorted(run, ascending).clip(max=len(run) - 1)
            is_new &= run[places] != ascending
        self._keep(ascending[is_new])
        result = np.empty_like(is_new)
        result[order] = is_new
        return result

    def _keep(self, run: Bits64) -> None:
        self._runs += [run] if len(run) else []
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            merged = self._runs[-1]
            # In place, without a second copy.
            merged.resize(len(merged) + len(last), refcheck=False)
            merged[-len(last) :] = last
            del last
            merged.sort(kind="stable")  # fast for two sorted halves
