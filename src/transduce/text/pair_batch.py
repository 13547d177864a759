"""Batches of pairs in which the cleaning rules search all texts at once."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from transduce.text.hashes import Bits64, hash_texts

Ints = NDArray[np.int64]


class TextColumn:
    """The sources or the targets of a batch of pairs."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @cached_property
    def joined(self) -> str:
        """All texts in one string, with a line feed after each text."""
        return "\n".join([*self.texts, ""])

    @cached_property
    def begins(self) -> Ints:
        """The index in `joined` at which each text begins."""
        lengths = np.fromiter(map(len, self.texts), dtype=np.int64) + 1
        return np.cumsum(lengths) - lengths

    @cached_property
    def lengths(self) -> Ints:
        """The number of characters of each text, without surrounding white space."""
        return np.fromiter(map(len, map(str.strip, self.texts)), dtype=np.int64)

    @cached_property
    def with_line_breaks(self) -> Ints:
        """The indices of the texts that contain a line feed."""
        if self.joined.count("\n") == len(self.texts):
            return np.empty(0, dtype=np.int64)
        return np.array([row for row, text in enumerate(self.texts) if "\n" in text])

    def rows_with(self, pattern: re.Pattern[str]) -> Ints:
        """The indices of the texts in which `pattern` occurs. The pattern must not match line feeds."""
        starts = np.fromiter(
            (match.start() for match in pattern.finditer(self.joined)), dtype=np.int64
        )
        return np.unique(np.searchsorted(self.begins, starts, side="right") - 1)

    @cached_property
    def letters(self) -> list[str]:
        """The letters of each text in lower case."""
        return self._reduced("PSZCN")

    @cached_property
    def hashes(self) -> Bits64:
        """Hash the letters and digits of each text in lower case, or the full text if it has neither."""
        plain = self._reduced("PSZC")
        return hash_texts(short or text for short, text in zip(plain, self.texts, strict=True))

    def _reduced(self, categories: str) -> list[str]:
        texts = self.joined.casefold()
        if len(self.with_line_breaks):
            texts = "\n".join([*(text.replace("\n", " ") for text in self.texts), ""]).casefold()
        return _characters(categories).sub("", texts).split("\n")[:-1]


class PairBatch:
    """Consecutive pairs of a corpus."""

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        self.source = TextColumn(sources)
        self.target = TextColumn(targets)
        self.columns = self.source, self.target

    def __len__(self) -> int:
        return len(self.source.texts)

    def exact_hashes(self, rows: Iterable[int]) -> Bits64:
        """Hash the texts of the pairs at the indices `rows`."""
        sources = self.source.texts
        targets = self.target.texts
        return hash_texts(f"{sources[row]}\n{targets[row]}" for row in rows)

    def near_hashes(self, rows: Iterable[int]) -> Bits64:
        """Hash the letters of the pairs at the indices `rows`, or the full texts if one side has no letters."""
        texts, letters = zip(
            *((column.texts, column.letters) for column in self.columns), strict=True
        )
        pairs = []
        for row in rows:
            sources, targets = letters if letters[0][row] and letters[1][row] else texts
            pairs.append(f"{sources[row]}\n{targets[row]}")
        return hash_texts(pairs)


@cache
def _characters(categories: str) -> re.Pattern[str]:
    """A pattern for runs of characters up to U+FFFF in these Unicode categories, except line feeds."""
    wanted = [
        code != 10 and unicodedata.category(chr(code))[0] in categories for code in range(0x10000)
    ]
    ranges = []
    for is_wanted, codes in groupby(range(0x10000), key=wanted.__getitem__):
        if is_wanted:
            first, *rest = codes
            ranges.append(f"\\u{first:04x}-\\u{rest[-1] if rest else first:04x}")
    return re.compile(f"[{''.join(ranges)}]+")
