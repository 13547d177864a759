"""Wraps messages and tables for terminals."""

import functools
import shutil
import textwrap
from typing import TextIO


def fit(text: str, stream: TextIO) -> str:
    """The text for a stream; on a terminal, long lines are wrapped between words."""
    if not stream or not stream.isatty():
        return text
    wrap = functools.partial(
        textwrap.fill,
        width=shutil.get_terminal_size().columns,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(wrap, text.split("\n")))
