"""Stores the hashes of API keys in a file.

Each line holds a name, a TAB and the SHA-256 of a key. A fast hash is safe, because keys have 256 random bits.
"""

import hashlib
import hmac
import os
import re
import secrets
import shlex
import stat
from functools import partial
from pathlib import Path
from typing import Literal

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.plain import read_lines

Contributors = Literal["keys", "anyone", "nobody"]  # clients whose corrections are kept
KEY_NAME = re.compile(r"[\w.@-]{1,64}")
KEY_LINE = re.compile(r"([^\t]+)\t([0-9a-f]{64})")


class Keys:
    """The API keys in a file, which is read again when it changes. A server without such a file accepts all clients."""

    def __init__(self, path: Path | None = None):
        """Raises UserError if a line of the file is invalid, a name has two keys, or the file has no key."""
        self._path = path
        self._stamp = path and _stamp(path)
        self._digests = _read(path) if path else []
        if path and not self._digests:
            raise UserError(f"{path} holds no key.", f"Add one with `{_command(path)}`.")

    def __bool__(self) -> bool:
        return self._path is not None

    def owner(self, key: str) -> str | None:
        """The name of a key's owner, or None if the key is unknown."""
        if self._path and (stamp := _stamp(self._path)) != self._stamp:
            self._stamp = stamp
            try:
                self._digests = _read(self._path)
                log(f"{self._path} has changed. Keys that are valid now: {len(self._digests):,}.")
            except UserError as error:
                log(f"{error} The keys from before the change stay valid.")
        digest = _digest(key).encode("ascii")
        owners = [name for name, known in self._digests if hmac.compare_digest(digest, known)]
        return owners[0] if owners else None


def _stamp(path: Path) -> tuple[int, ...]:
    """Values that change when a file changes; empty for a missing file and for a pipe, which can be read only once."""
    try:
        state = path.stat()
    except OSError:
        return ()
    return (state.st_ino, state.st_size, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else ()


def _command(path: Path) -> str:
    return f"transduce serve --new-key NAME --keys {shlex.quote(str(path))}"


def _read(path: Path) -> list[tuple[str, bytes]]:
    """The names and digests of all keys. Raises UserError as Keys does, but not for a file without keys."""
    digests = dict[str, bytes]()
    for number, line in enumerate(read_lines(str(path)), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = KEY_LINE.fullmatch(line)
        if match is None:
            raise UserError(
                f"{path}:{number}: expected a name, a TAB and a hash.",
                f"Remove this line, and add a key with `{_command(path)}`.",
            )
        if match[1] in digests:
            raise UserError(
                f"{path}:{number}: {match[1]} has two keys.", "Remove one of the lines."
            )
        digests[match[1]] = match[2].encode("ascii")
    return [*digests.items()]


def add_key(path: Path, name: str) -> str:
    """Store the hash of a new key and return the key. Raises UserError if the name or the file can't be used."""
    if not KEY_NAME.fullmatch(name):
        raise UserError(
            f"'{name}' can't be a key's name.",
            "Use at most 64 characters: letters, digits, dots, _, @ and -.",
        )
    key = secrets.token_urlsafe(32)
    try:
        known = path.read_bytes() if path.exists() else b""
        if any(line.startswith(f"{name}\t".encode()) for line in known.split(b"\n")):
            raise UserError(f"{path}: {name} has a key already.", "Remove its line to replace it.")
        separator = "" if known.endswith(b"\n") or not known else "\n"
        private = partial(os.open, mode=0o600)
        with open(path, "ab", opener=private) as file:
            file.write(f"{separator}{name}\t{_digest(key)}\n".encode())
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}.") from None
    return key


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
