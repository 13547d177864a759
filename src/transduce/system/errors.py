"""The exception for mistakes that a user can correct, and the hint that says how."""

import difflib
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Hint:
    """What the user can do about a mistake.

    `text` consists of whole sentences. `options` are the configuration options that the text is about, such as
    "data.valid"; the command line adds their flags.
    """

    text: str
    options: tuple[str, ...] = ()

    @classmethod
    def about(cls, text: str, *options: str) -> Self:
        """A hint about options; empty names are left out."""
        return cls(text, tuple(filter(None, options)))

    @classmethod
    def install(cls, extra: str) -> Self:
        """The command that installs an extra of the package `transduce`."""
        return cls(f"Install it: pip install 'transduce[{extra}]'.")

    @classmethod
    def run(cls, *command: object) -> Self:
        """A command to run."""
        return cls(f"Run `{shlex.join(map(str, command))}`.")

    @classmethod
    def choose(cls, wanted: str, known: Sequence[str]) -> Self:
        """The value among `known` that looks like `wanted`, or else all of them."""
        nearest = difflib.get_close_matches(wanted, known, 1)
        return cls(
            f"Did you mean {nearest[0]}?" if nearest else f"Choose one of {', '.join(known)}."
        )


class UserError(Exception):
    """A mistake that the user can correct: what is wrong and where (`cause`), and what to do (`hint`).

    A hint as text may be about options; empty names of options are left out. The command line prints cause and hint
    without a traceback, each on a line, and exits with status 2.
    """

    def __init__(self, cause: str, hint: Hint | str | None = None, *options: str) -> None:
        self.cause = cause
        self.hint = Hint.about(hint, *options) if isinstance(hint, str) else hint
        super().__init__(f"{cause} {self.hint.text}" if self.hint else cause)


@contextmanager
def needing(extra: str, purpose: str) -> Iterator[None]:
    """Raise UserError if an import in the `with` block fails: the purpose needs a package of an extra."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{purpose} needs the package {error.name}.", Hint.install(extra)) from None


class DamagedError(UserError):
    """A file is missing or damaged: trying again can't help."""


class NotInstalledError(UserError):
    """A part of transduce, or a package that it needs, is not installed."""


class UnusableModelError(UserError):
    """The files of a model were damaged or replaced after it was loaded."""


class DivergedError(UserError):
    """A training diverged: its options are unsuitable, and trying again can't help."""
