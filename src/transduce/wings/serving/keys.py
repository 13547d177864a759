"""API keys: a file of names and hashes, so that whoever reads it can't use them.

A line is a name, a tab, and the SHA-256 of the key, which is 256 random bits: nothing is gained by a slower hash.
"""

import hashlib
import hmac
import os
import re
import secrets
import shlex
from pathlib import Path

from transduce.system.errors import UserError
from transduce.text.plain import read_lines

NAME = re.compile(r"[\w.@-]{1,64}")
LINE = re.compile(r"([^\t]+)\t([0-9a-f]{64})")


class Keys:
    """Who may use a server; nobody is asked for a key where there is none."""

    def __init__(self, digests: dict[str, str]):
        """digests: of each key by its owner's name."""
        self._digests = [(name, digest.encode("ascii")) for name, digest in digests.items()]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def owner(self, key: str) -> str | None:
        """Whose key it is; how long the answer takes does not depend on how much of it is right."""
        asked = _digest(key).encode("ascii")
        found = [name for name, digest in self._digests if hmac.compare_digest(asked, digest)]
        return found[0] if found else None


def read_keys(path: Path) -> Keys:
    """Raises UserError for a file that can't be read, or a line that is no name with a hash."""
    digests, makes = {}, f"transduce serve --new-key NAME --keys {shlex.quote(str(path))}"
    for number, line in enumerate(read_lines(str(path)), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise UserError(f"{path}, line {number}: not a name, a tab and the hash of a key; `{makes}` adds one.")
        if match[1] in digests:
            raise UserError(f"{path}, line {number}: there is a key of {match[1]} already; remove one of the lines.")
        digests[match[1]] = match[2]
    if not digests:
        raise UserError(f"{path} holds no key; `{makes}` adds one.")
    return Keys(digests)


def add_key(path: Path, name: str) -> str:
    """Make a key for a name and append its hash to the file, which only its owner may read; returns the key.

    Raises UserError for a name that is there already, or that is no name.
    """
    if not NAME.fullmatch(name):
        raise UserError(f"'{name}' can't be the name of a key: letters, digits and . _ @ - only, at most 64.")
    if path.exists() and path.stat().st_size and any(line.startswith(f"{name}\t") for line in read_lines(str(path))):
        raise UserError(f"{path} has a key of {name} already; remove its line to replace it.")
    key = secrets.token_urlsafe(32)
    try:
        unended = path.exists() and not (b"\n" + path.read_bytes()).endswith(b"\n")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8", newline="\n") as file:
            file.write("\n" * unended + f"{name}\t{_digest(key)}\n")
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}.") from None
    return key


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
