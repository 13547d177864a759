"""Texts and files for the tests of reading and writing."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import zstandard
from hypothesis import strategies as st

from transduce.text.pairs import Origin, Pair

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
}


BREAKS = [
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\0",
    "\t",
]


texts = st.text(
    st.one_of(st.sampled_from(BREAKS), st.characters(exclude_characters="\n", codec="utf-8")),
    max_size=12,
)


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def number(texts: list[tuple[str, str]]) -> list[Pair]:
    return [
        Pair(source, target, Origin("f", line))
        for line, (source, target) in enumerate(texts, start=1)
    ]
