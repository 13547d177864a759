"""Bytes that are not UTF-8, in texts that are read all the same: each is a lone surrogate, U+DC80 to U+DCFF (PEP 383).

Such a line is often one of another file, in Windows-1252 or Latin-1, that was put into this one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

UNDECODED = re.compile("[\udc80-\udcff]")
WINDOWS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
COMMON = 1000  # one text of so many has a character that is common in a corpus


def readable(text: str) -> str:
    """With U+FFFD for each such byte."""
    return UNDECODED.sub("\ufffd", text)


def as_windows(text: str) -> str:
    """With what each such byte is in Windows-1252, U+FFFD if that is nothing; other characters stay."""
    return text.translate(WINDOWS)


def common_characters(texts: Iterable[str]) -> frozenset[str]:
    """Those beyond ASCII that are usual in these readable texts."""
    found = [{c for c in text if not c.isascii()} for text in texts]
    counts = Counter(chain.from_iterable(found))
    return frozenset(c for c, count in counts.items() if count > len(found) / COMMON and c != "\ufffd")


def is_plainly_windows(text: str, common: frozenset[str]) -> bool:
    """Whether a text has no such bytes, or nothing but them beside ASCII, and each is a character usual in the corpus.

    Where other encodings differ from Windows-1252 they show themselves: no Czech text is full of the ø that a ř in
    Windows-1250 would be taken for. A text that has UTF-8, too, was damaged otherwise.
    """
    return not UNDECODED.search(text) or all(
        c.isascii() or (UNDECODED.match(c) and as_windows(c) in common) for c in text
    )
