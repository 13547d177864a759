"""Translated documents, kept in memory for download under names that can't be guessed."""

import secrets
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple


class Download(NamedTuple):
    """A translated document."""

    name: str  # of the file that the client saves
    content: bytes
    expires: float


class Downloads:
    """At most `size` documents, each for some seconds; a new one replaces the oldest."""

    def __init__(self, size: int, seconds: int, clock: Callable[[], float] = time.monotonic):
        self._size, self._seconds, self._clock = size, seconds, clock
        self._kept: dict[str, Download] = {}  # the oldest first

    def add(self, name: str, target: str, content: bytes) -> str:
        """Keep a document; returns the secret name. name: file name of the source document; target: language code."""
        path = PurePath(name)
        secret_name = f"{secrets.token_urlsafe(16)}{path.suffix.lower()}"
        self._kept[secret_name] = Download(f"{path.stem}.{target}{path.suffix}", content, self._clock() + self._seconds)
        self._expire()
        return secret_name

    def get(self, secret_name: str) -> Download | None:
        """The document, or None if it is unknown or expired."""
        self._expire()
        return self._kept.get(secret_name)

    def _expire(self) -> None:
        oldest_first = [*self._kept.items()][-self._size :]
        self._kept = {name: download for name, download in oldest_first if download.expires >= self._clock()}
