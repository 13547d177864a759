"""Texts with bytes that are not UTF-8. Each such byte is read as a lone surrogate, U+DC80 to U+DCFF (PEP 383).

A line with such bytes is often in Windows-1252 or Latin-1, because a file in that encoding was merged into a corpus.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

UNDECODED = re.compile("[\udc80-\udcff]")
WINDOWS_1252 = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
MIN_TEXT_SHARE = 1 / 1000  # a character is common in a corpus if more than this share of the texts contain it


def readable(text: str) -> str:
    """The text with each undecoded byte replaced by U+FFFD."""
    return UNDECODED.sub("\ufffd", text)


def as_windows(text: str) -> str:
    """Decode the undecoded bytes of a text as Windows-1252; bytes that Windows-1252 does not define become U+FFFD."""
    return text.translate(WINDOWS_1252)


def common_characters(texts: Iterable[str]) -> frozenset[str]:
    """The non-ASCII characters that more than MIN_TEXT_SHARE of the texts contain, except U+FFFD."""
    characters = [{c for c in text if not c.isascii()} for text in texts]
    counts = Counter(chain.from_iterable(characters))
    return frozenset(c for c, count in counts.items() if count > len(characters) * MIN_TEXT_SHARE and c != "\ufffd")


def is_plainly_windows(text: str, common: frozenset[str]) -> bool:
    """Whether a text is probably in Windows-1252: decoding its undecoded bytes gives only characters in `common`.

    True without undecoded bytes. False for most texts in other encodings: ř in Windows-1250 would become ø, which is
    rare in Czech. Also False for a text with undecoded bytes and other non-ASCII characters.
    """
    return not UNDECODED.search(text) or all(
        c.isascii() or (UNDECODED.match(c) and as_windows(c) in common) for c in text
    )
