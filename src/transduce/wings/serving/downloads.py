"""Translated documents, kept for a while under names that can't be guessed."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple


class Download(NamedTuple):
    """A translated document."""

    name: str  # for whom downloads it
    content: bytes
    until: float


class Downloads:
    """At most so many, each for so many seconds; the oldest make room. They are in memory: nothing is left behind."""

    def __init__(self, most: int, seconds: int, clock: Callable[[], float] = time.monotonic):
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kept: OrderedDict[str, Download] = OrderedDict()

    def add(self, name: str, target: str, content: bytes) -> str:
        """Under which name it is kept; `name` is that of the document."""
        self._forget()
        path = PurePath(name)
        kept = f"{secrets.token_urlsafe(16)}{path.suffix.lower()}"
        self._kept[kept] = Download(f"{path.stem}.{target}{path.suffix}", content, self._clock() + self._seconds)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return kept

    def get(self, kept: str) -> Download | None:
        """None if there is none, or none any more."""
        self._forget()
        return self._kept.get(kept)

    def _forget(self) -> None:
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until < now:
            self._kept.popitem(last=False)
