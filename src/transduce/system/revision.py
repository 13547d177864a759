"""Identifies the version of the running code, so that results can record it."""

import hashlib
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

SOURCE_FOLDER = Path(__file__).parents[1]


@cache
def revision() -> str:
    """The package's version and, if known, the git commit."""
    root = SOURCE_FOLDER.parents[1]
    released = version("transduce")
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    if (root / ".git").exists():
        with suppress(OSError, subprocess.CalledProcessError):
            commit = subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
            return f"{released} ({commit})"
    return released


@cache
def code_hash() -> str:
    """The first 16 digits of a SHA-256 hash of the package's Python files and recipes.

    A commit that changes only documents or tests does not change it.
    """
    found = hashlib.sha256()
    for path in sorted(SOURCE_FOLDER.rglob("*")):
        if path.suffix in (".py", ".toml"):
            found.update(f"{path.relative_to(SOURCE_FOLDER).as_posix()}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]
