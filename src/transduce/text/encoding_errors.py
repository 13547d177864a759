"""Bytes that are not UTF-8 in texts that are read anyway: lone surrogates, U+DC80 to U+DCFF (PEP 383).

Such a line is often in Windows-1252 or Latin-1, from a file in that encoding that was merged into this one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

UNDECODED = re.compile("[\udc80-\udcff]")
WINDOWS_1252 = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
MIN_TEXT_SHARE = 1 / 1000  # of the texts that have a character, for one that is common in a corpus


def readable(text: str) -> str:
    """The text with U+FFFD for each undecoded byte."""
    return UNDECODED.sub("\ufffd", text)


def as_windows(text: str) -> str:
    """The text with undecoded bytes read as Windows-1252; U+FFFD for bytes that it lacks."""
    return text.translate(WINDOWS_1252)


def common_characters(texts: Iterable[str]) -> frozenset[str]:
    """The characters beyond ASCII that are common in these readable texts."""
    characters = [{c for c in text if not c.isascii()} for text in texts]
    counts = Counter(chain.from_iterable(characters))
    return frozenset(c for c, count in counts.items() if count > len(characters) * MIN_TEXT_SHARE and c != "\ufffd")


def is_plainly_windows(text: str, common: frozenset[str]) -> bool:
    """Whether the text has no undecoded bytes, or no other characters beyond ASCII and all are common as Windows-1252.

    Text in another encoding has uncommon characters: no Czech corpus is full of the ø that Windows-1250's ř becomes. A
    text with UTF-8 besides was damaged in another way.
    """
    return not UNDECODED.search(text) or all(
        c.isascii() or (UNDECODED.match(c) and as_windows(c) in common) for c in text
    )
