"""The database of a translation memory: units in SQLite, and an index of their words (FTS5).

A scope holds the units of one direction and one owner, and has an index of its own, so that nothing of another owner
is ever read for an answer. The owner "" stands for units that everybody sees.
"""

import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from transduce.decoding.types import MemoryMatch
from transduce.system.errors import UserError
from transduce.wings.memories.similarity import form, number_of, similarity, terms, tokens

State = Literal["accepted", "waiting", "rejected"]
MIN_SCORE = 0.5
MAX_MATCHES = 3
MAX_POSTINGS = 3_000  # units that an index lists for the words of a look-up: few milliseconds
MAX_CANDIDATES = 30  # units whose edit distance is computed
BUSY_SECONDS = 30  # another process may import a file
# A unit's id ends in its number of tokens, by which candidates are ranked without being read.
LENGTH_BITS = 8
MAX_LENGTH = (1 << LENGTH_BITS) - 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, direction TEXT NOT NULL, owner TEXT NOT NULL, UNIQUE (direction, owner));
CREATE TABLE IF NOT EXISTS units (
    id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, form INTEGER NOT NULL, pair INTEGER NOT NULL,
    source TEXT NOT NULL, target TEXT NOT NULL, origin TEXT NOT NULL, file TEXT NOT NULL, created REAL NOT NULL,
    state TEXT NOT NULL, machine TEXT NOT NULL, reason TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS units_by_form ON units (scope, form, pair, file);
CREATE INDEX IF NOT EXISTS units_by_state ON units (state) WHERE state != 'accepted';
CREATE INDEX IF NOT EXISTS units_by_file ON units (file) WHERE file != '';
CREATE TABLE IF NOT EXISTS counter (last INTEGER NOT NULL);
INSERT INTO counter SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM counter);
CREATE TABLE IF NOT EXISTS files (
    path TEXT NOT NULL, direction TEXT NOT NULL, stamp TEXT NOT NULL, PRIMARY KEY (path, direction));
"""
WORD_INDEX = (
    "CREATE VIRTUAL TABLE words_{0} USING fts5(words, content='', detail=none, "
    "tokenize=\"unicode61 tokenchars '_' remove_diacritics 0\")"
)


class Unit(NamedTuple):
    """A text and its translation."""

    source: str
    target: str
    origin: str = ""  # where it comes from, such as memory.tmx:12
    machine: str = ""  # for a correction: what the model had said
    state: State = "accepted"
    reason: str = ""  # why a person must decide
    id: int = 0
    created: float = 0.0  # seconds since 1970
    file: str = ""  # the file that brought the unit; "" for a correction

    @property
    def number(self) -> int:
        """The unit's number for people."""
        return self.id >> LENGTH_BITS

    @property
    def is_correction(self) -> bool:
        """Whether the unit was sent by a client."""
        return not self.file


class Database:
    """A translation memory. Any thread and any process may use the file at any time."""

    def __init__(self, path: Path) -> None:
        """Open the database, or make it. Raises UserError if the file is none."""
        self.path = path
        self._local = threading.local()
        self._frequencies = dict[tuple[int, str], int]()
        with self.reading() as connection:
            connection.executescript(SCHEMA)

    @property
    def _connection(self) -> sqlite3.Connection:
        """The connection of this thread."""
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # what is accepted outlives a power cut
            self._local.connection = connection
        return self._local.connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for a `with` block. Raises UserError if the file is damaged, locked or no database."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise UserError(f"The translation memory {self.path}: {error}.") from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection for changes that are made together, or not at all. Raises UserError as `reading` does."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def matches(
        self, texts: Sequence[str], direction: str, owner: str = ""
    ) -> list[tuple[MemoryMatch, ...]]:
        """The units most similar to each text, best first, of those that `owner` sees; exact ones have the score 1."""
        with self.reading() as connection:
            connection.execute("BEGIN")  # all look-ups see the same state
            try:
                scopes = self._scopes(direction, owner)
                return [tuple(self._matches(text, scopes)) for text in texts]
            finally:
                connection.rollback()

    def similar(self, texts: Sequence[str], direction: str) -> list[str]:
        """For each text, the translation of the most similar other text that everybody sees; "" if there is none."""
        with self.reading():
            scopes = self._scopes(direction, "")
            return [self._of_other(text, scopes) for text in texts]

    def _of_other(self, text: str, scopes: Sequence[int]) -> str:
        normal = form(text)
        found = (match for scope in scopes for match in self._similar(tokens(text), scope))
        others = (match for match in found if form(match.source) != normal)
        best = max(others, key=lambda match: match.score, default=None)
        return best.target if best else ""

    def close(self) -> None:
        """Close this thread's connection."""
        self._connection.close()

    def _scopes(self, direction: str, owner: str) -> list[int]:
        query = (
            "SELECT number FROM scopes WHERE direction = ? AND owner IN ('', ?) ORDER BY owner DESC"
        )
        return [number for (number,) in self._connection.execute(query, (direction, owner))]

    def _matches(self, text: str, scopes: Sequence[int]) -> list[MemoryMatch]:
        # Several files may hold the same unit.
        exact = {match[:2]: match for scope in scopes for match in self._exact(text, scope)}
        if exact:
            return [*exact.values()][:MAX_MATCHES]
        its = tokens(text)
        found = {match[:2]: match for scope in scopes for match in self._similar(its, scope)}
        return sorted(found.values(), key=lambda match: -match.score)[:MAX_MATCHES]

    def _exact(self, text: str, scope: int) -> Iterator[MemoryMatch]:
        """The accepted units of a text, newest first."""
        query = (
            "SELECT source, target, origin FROM units WHERE scope = ? AND form = ? "
            "AND state = 'accepted' ORDER BY created DESC, id DESC"
        )
        normal = form(text)
        for source, target, origin in self._connection.execute(query, (scope, number_of(normal))):
            if form(source) == normal:
                yield MemoryMatch(source, target, 1.0, origin)

    def _similar(self, its: Sequence[str], scope: int) -> Iterator[MemoryMatch]:
        candidates = self._candidates(its, scope)
        query = (
            f"SELECT source, target, origin FROM units WHERE id IN ({', '.join('?' * len(candidates))}) "
            "ORDER BY created DESC, id DESC"
        )
        for source, target, origin in self._connection.execute(query, candidates):
            score = similarity(its, tokens(source))
            if score >= MIN_SCORE:
                # Texts that differ in capitals or spaces only are no exact matches.
                yield MemoryMatch(source, target, min(score, 0.99), origin)

    def _candidates(self, its: Sequence[str], scope: int) -> list[int]:
        """The ids of units that share the rarest words of a text, likeliest first."""
        known = sorted(
            (count, term) for term in set(terms(its)) if (count := self._frequency(scope, term))
        )
        query = f"SELECT rowid FROM words_{scope} WHERE words_{scope} MATCH ?"
        ids = list[np.ndarray]()
        weights = list[np.ndarray]()
        total = 0
        for count, term in known:
            total += count
            if ids and total > MAX_POSTINGS:
                break
            listed = self._connection.execute(f"{query} LIMIT {MAX_POSTINGS}", (f'"{term}"',))
            ids.append(np.array([number for (number,) in listed], np.int64))
            weights.append(np.full(len(ids[-1]), 1 / np.log(2 + count)))
        if not ids:
            return []
        distinct, places = np.unique(np.concatenate(ids), return_inverse=True)
        lengths = distinct & MAX_LENGTH
        length = min(len(its), MAX_LENGTH)
        fit = np.minimum(lengths, length) / np.maximum(lengths, length)
        shared = np.bincount(places, np.concatenate(weights))
        best: list[int] = distinct[np.argsort(-shared * fit)[:MAX_CANDIDATES]].tolist()
        return best

    def _frequency(self, scope: int, term: str) -> int:
        """The number of units with a term, when it was first asked for; at most MAX_POSTINGS are counted."""
        if (scope, term) not in self._frequencies:
            listed = f"SELECT 1 FROM words_{scope} WHERE words_{scope} MATCH ? LIMIT {MAX_POSTINGS}"
            query = f"SELECT count(*) FROM ({listed})"
            [count] = self._connection.execute(query, (f'"{term}"',)).fetchone()
            if not count:
                return 0
            self._frequencies[scope, term] = count
        return self._frequencies[scope, term]

    def add(self, units: Iterable[Unit], direction: str, owner: str = "") -> int:
        """Add units, and return how many were new. A unit that is known becomes the newest of its source."""
        with self.writing() as connection:
            scope = self._scope(connection, direction, owner)
            return sum(self._add(connection, scope, unit) for unit in units)

    def state(self, unit: Unit, direction: str, owner: str = "") -> State:
        """The state of a unit that was added, which may be older than the last addition."""
        normal = form(unit.source)
        query = (
            "SELECT state FROM units JOIN scopes ON scope = number "
            "WHERE direction = ? AND owner = ? AND form = ? AND pair = ? AND file = ''"
        )
        key = (direction, owner, number_of(normal), number_of(normal, unit.target))
        with self.reading() as connection:
            [state] = connection.execute(query, key).fetchone()
            return state

    def read_file(self, file: str, stamp: str, units: Iterable[Unit], direction: str) -> None:
        """Make `units` those of a file, which everybody sees. Does nothing if the file had this stamp the last time."""
        with self.writing() as connection:
            query = "SELECT stamp FROM files WHERE path = ? AND direction = ?"
            if connection.execute(query, (file, direction)).fetchone() == (stamp,):
                return
            scope = self._scope(connection, direction, "")
            self._remove(connection, file, scope)
            for unit in units:
                self._add(connection, scope, unit, file)
            connection.execute("REPLACE INTO files VALUES (?, ?, ?)", (file, direction, stamp))

    def keep_files(self, files: Collection[str]) -> None:
        """Remove the units of all other files."""
        with self.writing() as connection:
            for (file,) in connection.execute("SELECT DISTINCT path FROM files").fetchall():
                if file not in files:
                    for (scope,) in connection.execute("SELECT number FROM scopes").fetchall():
                        self._remove(connection, file, scope)
                    connection.execute("DELETE FROM files WHERE path = ?", (file,))

    def _scope(self, connection: sqlite3.Connection, direction: str, owner: str) -> int:
        query = "SELECT number FROM scopes WHERE direction = ? AND owner = ?"
        found = connection.execute(query, (direction, owner)).fetchone()
        if found:
            return int(found[0])
        made = connection.execute("INSERT INTO scopes VALUES (NULL, ?, ?)", (direction, owner))
        connection.execute(WORD_INDEX.format(made.lastrowid))
        return int(made.lastrowid or 0)

    def _add(self, connection: sqlite3.Connection, scope: int, unit: Unit, file: str = "") -> bool:
        """Add a unit unless it is known, and tell whether it is new."""
        normal = form(unit.source)
        key = (scope, number_of(normal), number_of(normal, unit.target))
        query = "SELECT id FROM units WHERE scope = ? AND form = ? AND pair = ? AND file = ?"
        known = connection.execute(query, (*key, file)).fetchone()
        if known:
            connection.execute("UPDATE units SET created = ? WHERE id = ?", (time.time(), known[0]))
            return False
        # Numbers are not used again, since the trail of a model names what it has learnt.
        connection.execute("UPDATE counter SET last = last + 1")
        [last] = connection.execute("SELECT last FROM counter").fetchone()
        length = min(len(tokens(unit.source)), MAX_LENGTH)
        number = last << LENGTH_BITS | length
        texts = (unit.source, unit.target, unit.origin, file)
        values = (number, *key, *texts, time.time(), unit.state, unit.machine, unit.reason)
        connection.execute(f"INSERT INTO units VALUES ({', '.join('?' * len(values))})", values)
        if unit.state == "accepted":
            self._index(connection, scope, number, unit.source)
        return True

    def _index(self, connection: sqlite3.Connection, scope: int, number: int, source: str) -> None:
        words = " ".join(terms(tokens(source)))
        connection.execute(
            f"INSERT INTO words_{scope} (rowid, words) VALUES (?, ?)", (number, words)
        )

    def _remove(self, connection: sqlite3.Connection, file: str, scope: int) -> None:
        """Remove the units of a file."""
        query = "SELECT id, source FROM units WHERE scope = ? AND file = ?"
        for number, source in connection.execute(query, (scope, file)).fetchall():
            words = " ".join(terms(tokens(source)))
            connection.execute(
                f"INSERT INTO words_{scope} (words_{scope}, rowid, words) VALUES ('delete', ?, ?)",
                (number, words),
            )
            connection.execute("DELETE FROM units WHERE id = ?", (number,))

    def delete(self, owner: str) -> int:
        """Delete all units of an owner of a key, and return how many they were."""
        with self.writing() as connection:
            scopes = connection.execute(
                "SELECT number FROM scopes WHERE owner = ? AND owner != ''", (owner,)
            ).fetchall()
            deleted = 0
            for (scope,) in scopes:
                deleted += connection.execute(
                    "DELETE FROM units WHERE scope = ?", (scope,)
                ).rowcount
                connection.execute(f"DROP TABLE words_{scope}")
                connection.execute("DELETE FROM scopes WHERE number = ?", (scope,))
            return deleted

    def decide(self, number: int, state: State) -> None:
        """Accept or reject a waiting unit. Raises UserError if none with this number waits."""
        with self.writing() as connection:
            query = "SELECT scope, source FROM units WHERE id = ? AND state = 'waiting'"
            found = connection.execute(query, (number,)).fetchone()
            if not found:
                raise UserError(
                    f"No correction {number} waits in {self.path}.",
                    f"List those that do: transduce memory review {self.path}.",
                )
            scope, source = found
            connection.execute(
                "UPDATE units SET state = ?, created = ? WHERE id = ?", (state, time.time(), number)
            )
            if state == "accepted":
                self._index(connection, scope, number, source)

    def units(self, state: State = "accepted") -> Iterator[tuple[str, str, Unit]]:
        """The direction, the owner and the unit of all units in a state, in the order in which they were added."""
        query = (
            "SELECT direction, owner, source, target, origin, machine, state, reason, id, created, "
            "file FROM units "
            "JOIN scopes ON scope = number WHERE state = ? ORDER BY id"
        )
        with self.reading() as connection:
            for direction, owner, *values in connection.execute(query, (state,)):
                yield direction, owner, Unit(*values)

    def sample(self, direction: str, number: int) -> list[tuple[str, str]]:
        """Texts and translations that files brought, up to `number` of a direction, from all parts of the memory."""
        query = (
            "SELECT source, target FROM units JOIN scopes ON scope = number "
            "WHERE direction = ? AND file != '' AND state = 'accepted' ORDER BY form LIMIT ?"
        )
        with self.reading() as connection:
            return connection.execute(query, (direction, number)).fetchall()

    def count(self, direction: str) -> int:
        """The number of accepted units of a direction."""
        wanted = (direction, "accepted")
        return sum(number for its, _, state, number in self.counts() if (its, state) == wanted)

    def counts(self) -> list[tuple[str, str, str, int]]:
        """The number of units of each direction, owner and state."""
        query = (
            "SELECT direction, owner, state, count(*) FROM units JOIN scopes ON scope = number "
            "GROUP BY direction, owner, state ORDER BY direction, owner, state"
        )
        with self.reading() as connection:
            return connection.execute(query).fetchall()

    def contradictions(self, direction: str, owner: str = "") -> int:
        """The number of sources with several translations."""
        query = (
            "SELECT count(*) FROM (SELECT 1 FROM units JOIN scopes ON scope = number "
            "WHERE direction = ? AND owner = ? AND state = 'accepted' GROUP BY form HAVING count(DISTINCT pair) > 1)"
        )
        with self.reading() as connection:
            [number] = connection.execute(query, (direction, owner)).fetchone()
            return int(number)
