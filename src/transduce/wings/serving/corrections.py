"""The translation memory of a server, and the corrections that its clients send."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

from starlette.exceptions import HTTPException

from transduce.decoding.translator import Translator
from transduce.decoding.types import MemoryMatch
from transduce.system.errors import UserError
from transduce.wings.memories.database import Database, State, Unit
from transduce.wings.memories.judging import (
    MAX_KNOWN_PAIRS,
    MIN_KNOWN_PAIRS,
    Judge,
    held_out_pairs,
)
from transduce.wings.serving.keys import Contributors
from transduce.wings.serving.models import Served

CORRECTION = "correction"


@contextmanager
def usable() -> Iterator[None]:
    """Log an error of the database, which names its path, and raise HTTPException instead."""
    try:
        yield
    except UserError as error:
        logging.getLogger("transduce.wings.serving").error("%s", error)
        sentence = "The translation memory can't be used. The server has logged the reason."
        raise HTTPException(503, sentence) from None


class OwnMemory(NamedTuple):
    """A translation memory as the owner of a key sees it."""

    database: Database
    owner: str  # "" without a key

    def matches(self, texts: Sequence[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        """The most similar units that everybody or this owner sees."""
        with usable():
            return self.database.matches(texts, direction, self.owner)


@dataclass(frozen=True)
class Corrections:
    """A translation memory, and the clients that may add to it."""

    database: Database
    contributors: Contributors = "keys"
    judges: WeakKeyDictionary[Translator, Judge] = field(default_factory=WeakKeyDictionary)

    def memory(self, owner: str) -> OwnMemory:
        """The memory for the answers to a client."""
        return OwnMemory(self.database, owner)

    def accepts(self, owner: str) -> bool:
        """Whether a client may add corrections."""
        return self.contributors == "anyone" or (self.contributors == "keys" and bool(owner))

    def add(
        self, source: str, target: str, direction: str, owner: str, machine: str, doubt: str
    ) -> State:
        """Keep a correction. Without a doubt, it is part of the memory for its client at once.

        Returns the state of the correction; what a person has rejected stays rejected.
        """
        origin = f"{CORRECTION} by {owner}" if owner else CORRECTION
        state: State = "waiting" if doubt else "accepted"
        unit = Unit(source, target, origin, machine, state, doubt)
        with usable():
            self.database.add([unit], direction, owner)
            return self.database.state(unit, direction, owner)

    def doubt(self, served: Served, source: str, target: str, machine: str) -> str:
        """Why a person should look at a correction first, or "". Takes seconds for the first one of a model."""
        translator = served.version.translator(served.direction, 1)
        if translator not in self.judges:
            self.judges[translator] = Judge(translator, self._known(served))
        return self.judges[translator].doubt(source, target, machine)

    def _known(self, served: Served) -> list[tuple[str, str]]:
        """Good translations: units from files, or the model's held-out pairs if there are few."""
        direction = str(served.direction)
        with usable():
            known = self.database.sample(direction, MAX_KNOWN_PAIRS)
        if len(known) >= MIN_KNOWN_PAIRS:
            return known
        pairs = held_out_pairs(served.version.state.path)
        own = [pair[:2] for pair in pairs if pair.direction in ("", direction)]
        return [(source, target) for source, target in own]
