"""Handles bytes that are not UTF-8 and were read as lone surrogates from U+DC80 to U+DCFF (PEP 383)."""

import re

UNDECODED = re.compile("[\udc80-\udcff]")


def readable(text: str) -> str:
    """The text with each undecoded byte replaced by U+FFFD."""
    return UNDECODED.sub("\ufffd", text)
