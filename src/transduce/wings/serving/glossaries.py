"""The glossaries of a server's clients, and the characters that each client has had translated, in SQLite."""

import json
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException

from transduce.system.errors import UserError
from transduce.wings.memories.database import BUSY_SECONDS

MAX_GLOSSARIES = 1000  # of one client, as at DeepL
GLOSSARY_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL, dictionaries TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS characters (
    owner TEXT NOT NULL, month TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (owner, month));
"""
Languages = tuple[str, str]  # codes of source and target without regions, in lower case


@dataclass
class ClientGlossary:
    """A glossary that a client has made."""

    id: str
    name: str
    created: str  # UTC, such as 2026-01-31T12:00:00.000Z
    dictionaries: dict[Languages, dict[str, str]]  # terms and their translations


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
        with self._usable():
            rows = self._connection.execute(
                "SELECT id, name, created, dictionaries FROM glossaries "
                "WHERE owner = ? AND ? IN (id, '') ORDER BY rowid",
                [owner, glossary_id],
            )
            return [
                ClientGlossary(
                    each,
                    name,
                    created,
                    {(pair[0], pair[1]): terms for pair, terms in json.loads(kept)},
                )
                for each, name, created, kept in rows
            ]

    def get(self, owner: str, glossary_id: str) -> ClientGlossary:
        """A glossary of an owner. Raises HTTPException (404) if there is none."""
        found = self.find(owner, glossary_id) if glossary_id else []
        if not found:
            raise HTTPException(404, f"There is no glossary with the ID {glossary_id[:64]}.")
        return found[0]

    def save(self, owner: str, glossary: ClientGlossary) -> None:
        """Keep a new or changed glossary."""
        dictionaries = json.dumps([*glossary.dictionaries.items()], ensure_ascii=False)
        with self._usable():
            self._connection.execute(
                "INSERT INTO glossaries VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET name = excluded.name, dictionaries = excluded.dictionaries",
                [glossary.id, owner, glossary.name, glossary.created, dictionaries],
            )

    def delete(self, glossary: ClientGlossary) -> None:
        """Delete a glossary."""
        with self._usable():
            self._connection.execute("DELETE FROM glossaries WHERE id = ?", [glossary.id])

    def characters(self, owner: str) -> int:
        """The number of characters that an owner has had translated this month (UTC)."""
        with self._usable():
            query = "SELECT sum(number) FROM characters WHERE owner = ? AND month = ?"
            [number] = self._connection.execute(query, [owner, _month()]).fetchone()
        return number or 0

    def count(self, owner: str, characters: int) -> None:
        """Add to the number of characters of an owner."""
        with self._usable():
            self._connection.execute(
                "INSERT INTO characters VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET number = number + excluded.number",
                [owner, _month(), characters],
            )

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Log an error of the database, and raise HTTPException (503) instead."""
        try:
            yield
        except sqlite3.Error as error:
            logging.getLogger("transduce.wings.serving").error("The glossaries: %s", error)
            sentence = "The glossaries can't be used. The server has logged the reason."
            raise HTTPException(503, sentence) from None


def _month() -> str:
    return time.strftime("%Y-%m", time.gmtime())
