"""Versions of a model, of which one is served.

    MODEL               a symbolic link to MODEL.versions/2; a folder, as long as there is one version
    MODEL.versions/1/   the model as it was trained
    MODEL.versions/2/
    MODEL.versions/trail.jsonl   for each version, what it learnt and how it was measured

A switch replaces the link, which is one step for readers: a server that serves MODEL sees it, and changes the model.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import make_folder
from transduce.system.journal import Event, Journal, read_events

VERSIONS_SUFFIX = ".versions"
TRAIL = "trail.jsonl"


class Versions:
    """The versions of the model at a path."""

    def __init__(self, model: Path) -> None:
        """Raises UserError if there is no model. Completes a first switch that was interrupted."""
        # The link's own path, so that the versions lie beside it.
        self.model = model.parent.resolve() / model.name
        self.folder = self.model.with_name(f"{self.model.name}{VERSIONS_SUFFIX}")
        if not os.path.lexists(self.model) and (self.folder / "1").is_dir():
            self._point(1)
        if not self.model.is_dir():
            raise UserError(f"{model} is not a model folder.")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing versions during a `with` block. Raises UserError if one does."""
        make_folder(self.folder)
        with file_lock(self.folder / LOCK, f"Another process makes a version of {self.model}."):
            yield

    @property
    def numbers(self) -> list[int]:
        """The numbers of all versions."""
        if not self.folder.is_dir():
            return [1]
        found = (path.name for path in self.folder.iterdir() if path.is_dir())
        return sorted({int(name) for name in found if name.isdecimal()} | {1})

    @property
    def current(self) -> int:
        """The number of the version in use."""
        return int(self.model.readlink().name) if self.model.is_symlink() else 1

    def path(self, number: int) -> Path:
        """The folder of a version. Raises UserError if there is none."""
        if number not in self.numbers:
            known = ", ".join(map(str, self.numbers))
            raise UserError(
                f"{self.model} has no version {number}.", f"Choose one of its versions: {known}."
            )
        return self.folder / str(number) if self.model.is_symlink() else self.model

    def add(self, made: Path) -> int:
        """Make a finished model folder the newest version, which is not in use yet."""
        number = max(self.numbers) + 1
        made.rename(self.folder / str(number))
        return number

    def switch(self, number: int) -> None:
        """Use another version."""
        if not self.model.is_symlink():
            if number == 1:
                return
            self.model.rename(self.folder / "1")
        self._point(number)

    def _point(self, number: int) -> None:
        link = self.folder / f".link-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(self.folder.name) / str(number))
        link.replace(self.model)

    def trail(self) -> list[Event]:
        """What has been noted, oldest first."""
        file = self.folder / TRAIL
        return [*read_events(file)] if file.exists() else []

    def note(self, event: str, **values: Any) -> None:
        """Add an event to the trail."""
        with Journal(self.folder / TRAIL) as journal:
            journal.write(event, **values)

    def learnt(self, number: int) -> set[int]:
        """The numbers of all corrections that went into a version and those before it."""
        made = {entry["version"]: entry for entry in self.trail() if "version" in entry}
        units = set[int]()
        while number in made:
            units |= {*made[number]["corrections"]}
            number = made[number]["from"]
        return units
