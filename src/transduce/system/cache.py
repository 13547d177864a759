"""The user's cache, and the hashes of large files that it remembers."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import digest, write_text

DIGESTS_FILE = "digests.json"  # path -> its identity and SHA-256
MIN_REMEMBERED_BYTES, MAX_REMEMBERED = 1 << 20, 1000
RECENT_NANOSECONDS = 2 * 10**9


def cache_folder() -> Path:
    """The folder of the user's cache. Raises UserError if the user's home folder is unknown."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transduce"
    except RuntimeError as error:
        raise UserError(
            f"There is no folder for a cache ({error}).", "Set XDG_CACHE_HOME."
        ) from None


def remembered_digest(path: Path) -> str:
    """The SHA-256 of a file. A large file that did not change since the last call is not read again."""
    if path.stat().st_size < MIN_REMEMBERED_BYTES:
        return digest(path)
    before = _identity(path)
    name = str(path.resolve())
    try:
        memory = cache_folder() / DIGESTS_FILE
    except UserError:
        return digest(path)
    try:
        known = json.loads(memory.read_bytes())
        if known.get(name, [])[:-1] == before:
            return str(known[name][-1])
    except (
        OSError,
        ValueError,
        AttributeError,
        TypeError,
        LookupError,
        RecursionError,
    ):  # the file is missing or damaged
        known = {}
    found = digest(path)
    # A file may change twice within the resolution of its times, so a file that changed just now is not remembered.
    if _identity(path) == before and time.time_ns() - before[-1] > RECENT_NANOSECONDS:
        known = dict(list(known.items())[1 - MAX_REMEMBERED :]) | {name: [*before, found]}
        with suppress(UserError, OSError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_text(memory, json.dumps(known, indent=1))
    return found


def _identity(path: Path) -> list[int]:
    """Numbers that change when the file changes.

    The last number, the time of the last change, can't be set by programs.
    """
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
