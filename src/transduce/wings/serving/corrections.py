"""The translation memory of a server, and the corrections that its clients send."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transduce.decoding.types import MemoryMatch
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving.keys import Contributors

CORRECTION = "correction"


class OwnMemory(NamedTuple):
    """A translation memory as the owner of a key sees it."""

    database: Database
    owner: str  # "" without a key

    def matches(self, texts: Sequence[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        """The most similar units that everybody or this owner sees."""
        return self.database.matches(texts, direction, self.owner)


@dataclass(frozen=True)
class Corrections:
    """A translation memory, and the clients that may add to it."""

    database: Database
    contributors: Contributors = "keys"

    def memory(self, owner: str) -> OwnMemory:
        """The memory for the answers to a client."""
        return OwnMemory(self.database, owner)

    def accepts(self, owner: str) -> bool:
        """Whether a client may add corrections."""
        return self.contributors == "anyone" or (self.contributors == "keys" and bool(owner))

    def add(self, source: str, target: str, direction: str, owner: str, machine: str) -> Unit:
        """Keep a correction. It is part of the memory for its client at once."""
        unit = Unit(source, target, f"{CORRECTION} by {owner}" if owner else CORRECTION, machine)
        self.database.add([unit], direction, owner)
        return unit
