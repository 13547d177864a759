"""The glossaries of a server's clients, and the characters that each client has had translated, in SQLite."""

import json
import sqlite3
import uuid
from collections import ChainMap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from starlette.exceptions import HTTPException

from transduce.system.errors import UserError
from transduce.text.languages import main_language
from transduce.wings.memories.database import BUSY_SECONDS
from transduce.wings.serving.payload import JsonObject

MAX_GLOSSARIES = 1000  # of one client, as at DeepL
GLOSSARY_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL, dictionaries TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS characters (
    owner TEXT NOT NULL, month TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (owner, month));
"""


class Languages(NamedTuple):
    """A language pair of a glossary. It applies to all variants of the languages, so its codes have no regions."""

    source_lang: str
    target_lang: str

    @classmethod
    def of(cls, *codes: str) -> Self:
        """The language pair of two codes."""
        return cls(*map(main_language, codes))


@dataclass
class ClientGlossary:
    """A glossary that a client has made."""

    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    owner: str = ""
    name: str = ""
    created: str = field(  # UTC, such as 2026-01-31T12:00:00.000Z
        default_factory=lambda: f"{datetime.now(UTC):%FT%T.%f}"[:23] + "Z"
    )
    # Terms and their translations.
    dictionaries: dict[Languages, dict[str, str]] = field(default_factory=dict)

    @property
    def description(self) -> JsonObject:
        """The glossary as in answers. They have the fields of /v2 and /v3; those of /v2 describe one language pair."""
        dictionaries = [
            languages._asdict() | {"entry_count": len(terms)}
            for languages, terms in self.dictionaries.items()
        ]
        single = dictionaries[0] | {"ready": True} if len(dictionaries) == 1 else {}
        return single | {
            "glossary_id": self.id,
            "name": self.name,
            "creation_time": self.created,
            "dictionaries": dictionaries,
        }

    def terms(self, languages: Languages, status: int = 404) -> dict[str, str]:
        """The terms of a language pair. Raises HTTPException if the glossary lacks it."""
        if languages not in self.dictionaries:
            sentence = "The glossary has no dictionary from {} to {}.".format(*languages)
            raise HTTPException(status, sentence)
        return self.dictionaries[languages]


class Glossaries:
    """Glossaries and counted characters, each of one owner of a key ("" without keys). Threads may share it."""

    def __init__(self, path: Path | None = None) -> None:
        """Open or make a database; without a path, all is kept in memory. Raises UserError if the file is none."""
        try:
            self._connection = sqlite3.connect(
                path or ":memory:", BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.executescript(GLOSSARY_SCHEMA)
        except sqlite3.Error as error:
            raise UserError(f"The glossaries {path}: {error}.", "Name another file.") from None

    def find(self, owner: str, glossary_id: str = "") -> list[ClientGlossary]:
        """The glossaries of an owner with this ID, or all, oldest first."""
        query = "SELECT * FROM glossaries WHERE owner = ? AND ? IN (id, '') ORDER BY created"
        found = list[ClientGlossary]()
        for *texts, kept in self._rows(query, owner, glossary_id):
            found.append(ClientGlossary(*texts))
            found[-1].dictionaries = {Languages(*pair): terms for pair, terms in json.loads(kept)}
        return found

    def terms(self, owner: str, ids: Iterable[str], languages: Languages) -> dict[str, str]:
        """The terms of an owner's glossaries; the first glossary with a term applies. Raises HTTPException."""
        return dict(ChainMap(*(self.get(owner, each).terms(languages, 400) for each in ids)))

    def get(self, owner: str, glossary_id: str) -> ClientGlossary:
        """A glossary of an owner. Raises HTTPException (404) if there is none."""
        for found in self.find(owner, glossary_id):
            return found
        raise HTTPException(404, f"There is no glossary with the ID {glossary_id[:64]}.")

    def save(self, glossary: ClientGlossary) -> None:
        """Keep a new or changed glossary."""
        values = vars(glossary) | {"dictionaries": json.dumps([*glossary.dictionaries.items()])}
        self._rows("REPLACE INTO glossaries VALUES (?, ?, ?, ?, ?)", *values.values())

    def delete(self, glossary: ClientGlossary) -> None:
        """Delete a glossary."""
        self._rows("DELETE FROM glossaries WHERE id = ?", glossary.id)

    def characters(self, owner: str) -> int:
        """The number of characters that an owner has had translated this month (UTC)."""
        query = "SELECT number FROM characters WHERE owner = ? AND month = strftime('%Y-%m', 'now')"
        return sum(number for [number] in self._rows(query, owner))

    @contextmanager
    def counted(self, owner: str, characters: int, limit: int) -> Iterator[None]:
        """Count characters if the `with` block translates them. Raises HTTPException (456) above the limit."""
        if self.characters(owner) + characters > limit:
            raise HTTPException(456, f"Quota exceeded: {limit:,} characters a month.")
        yield
        self._rows(
            "INSERT INTO characters VALUES (?, strftime('%Y-%m', 'now'), ?) "
            "ON CONFLICT DO UPDATE SET number = number + excluded.number",
            owner,
            characters,
        )

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, values).fetchall()
