"""Holds the command line of the running command, so that records can name it."""

from collections.abc import Sequence
from contextvars import ContextVar

# None: called from Python.
command_line: ContextVar[Sequence[str] | None] = ContextVar("command_line", default=None)
