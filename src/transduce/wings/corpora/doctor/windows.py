"""Finds bytes that are not UTF-8 (`text.encoding_errors`). They are often part of a text in Windows-1252 or Latin-1."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from transduce.text.encoding_errors import UNDECODED
from transduce.text.pair_batch import TextColumn

WINDOWS_1252 = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)
}
# A character is common in a corpus if more than this share of the texts contain it.
MIN_TEXT_SHARE = 1 / 1000


def undecoded(column: TextColumn) -> NDArray[np.int64]:
    """The indices of the texts with bytes that are not UTF-8."""
    try:
        column.joined.encode()  # the fastest test: succeeds if there are no such bytes
    except UnicodeEncodeError:
        return column.rows_with(UNDECODED)
    return np.empty(0, dtype=np.int64)


def as_windows(text: str) -> str:
    """Decode the undecoded bytes of a text as Windows-1252. Undefined bytes become U+FFFD."""
    return text.translate(WINDOWS_1252)


def common_characters(texts: Iterable[str]) -> frozenset[str]:
    """The non-ASCII characters other than U+FFFD that occur in more than MIN_TEXT_SHARE of the texts."""
    characters = [{c for c in text if not c.isascii()} for text in texts]
    counts = Counter(chain.from_iterable(characters))
    return frozenset(
        c
        for c, count in counts.items()
        if count > len(characters) * MIN_TEXT_SHARE and c != "\ufffd"
    )


def is_plainly_windows(text: str, common: frozenset[str]) -> bool:
    """Whether a text consists of ASCII characters and of Windows-1252 bytes for characters in `common`.

    Also True for any text without undecoded bytes.
    """
    return not UNDECODED.search(text) or all(
        c.isascii() or (UNDECODED.match(c) and as_windows(c) in common) for c in text
    )
