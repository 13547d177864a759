"""A cache of encoded words: most words of a text have occurred before."""

import threading
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_CACHED_CHARACTERS = 2_000_000  # of all words: about 200,000 words and 30 MB


class Rows(NamedTuple):
    """Rows of ids, of sentences or words, one after another."""

    ids: NDArray[np.uint32]  # (tokens,)
    lengths: NDArray[np.int64]  # (sentences,)

    def where(self, chosen: NDArray[np.bool_]) -> "Rows":
        """Some of the rows; chosen: (sentences,)."""
        return Rows(self.ids[np.repeat(chosen, self.lengths)], self.lengths[chosen])

    def take(self, places: NDArray[np.int64]) -> "Rows":
        """The rows at these places, in their order."""
        lengths = self.lengths[places]
        starts, begun = np.cumsum(self.lengths) - self.lengths, np.cumsum(lengths) - lengths
        return Rows(self.ids[np.repeat(starts[places] - begun, lengths) + np.arange(lengths.sum())], lengths)

    def lists(self) -> list[list[int]]:
        """Each row as a list."""
        ids, ends = self.ids.tolist(), np.cumsum(self.lengths).tolist()
        return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def pack(rows: Sequence[Sequence[int]]) -> Rows:
    """Lists of ids, one after another."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Rows(np.fromiter(chain.from_iterable(rows), np.uint32, int(lengths.sum())), lengths)


class WordCache:
    """Encodes texts whose words, separated by spaces, are encoded independently of each other.

    encode: encodes words; it is called once for each word in the cache.
    """

    def __init__(self, encode: Callable[[Sequence[str]], Rows]) -> None:
        self._encode = encode
        self._lock = threading.Lock()
        self._place: dict[str, int] = {}
        self._pieces = pack([])
        self._size = 0  # characters

    def encode(self, texts: Sequence[str]) -> Rows:
        """Ids of texts; an empty text has none."""
        spaces = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts))
        words = " ".join(texts).split(" ") if texts else []
        with self._lock:
            places = self._places(words)
            rows = self._pieces.take(places)  # of the words
        ends = np.cumsum(spaces + 1)
        lengths = np.diff(np.cumsum(rows.lengths)[ends - 1], prepend=0)
        is_empty = np.fromiter((not text for text in texts), bool, len(texts))
        ids = rows.ids[np.repeat(~is_empty, lengths)]
        lengths[is_empty] = 0
        return Rows(ids, lengths)

    def _places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The place of each word in the cache, to which new words are added."""
        new = set(words).difference(self._place)
        self._size += sum(map(len, new))
        if self._size > MAX_CACHED_CHARACTERS and self._place:
            self._place.clear()
            self._pieces = pack([])
            new = set(words)
            self._size = sum(map(len, new))
        if new:
            cut = self._encode(list(new))
            self._place.update(zip(new, range(len(self._place), len(self._place) + len(new)), strict=True))
            ids, lengths = self._pieces
            self._pieces = Rows(np.concatenate((ids, cut.ids)), np.concatenate((lengths, cut.lengths)))
        return np.fromiter(map(self._place.__getitem__, words), np.int64, len(words))
