"""Keeps translated documents until clients download them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import NamedTuple


class Download(NamedTuple):
    """A translated document."""

    name: str  # the file name that the client sees
    content: bytes
    expires: float


@dataclass
class Downloads:
    """Stores the last `size` translated documents, each for at most `seconds` seconds."""

    size: int
    seconds: int
    clock: Callable[[], float] = time.monotonic
    kept: dict[str, Download] = field(default_factory=dict)  # the oldest first

    def add(self, name: str, target: str, content: bytes) -> str:
        """Store a translated document and return its secret name. `name` is the name of the uploaded file."""
        path = PureWindowsPath(name)  # splits at both kinds of slashes
        secret_name = f"{secrets.token_urlsafe(16)}{path.suffix.lower()}"
        self.kept[secret_name] = Download(
            f"{path.stem}.{target}{path.suffix}", content, self.clock() + self.seconds
        )
        self.expire()
        return secret_name

    def get(self, secret_name: str) -> Download | None:
        """The document, or None if the name is unknown or the document has expired."""
        self.expire()
        return self.kept.get(secret_name)

    def expire(self) -> None:
        """Forget documents that have expired or are too many."""
        oldest_first = [*self.kept.items()][-self.size :]
        self.kept = {
            name: download for name, download in oldest_first if download.expires >= self.clock()
        }
