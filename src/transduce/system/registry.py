"""Registries: tables of "module:name" by which the core reaches a wing.

A module is imported when an entry is loaded, so that nobody pays for the wings that a call doesn't use.
"""

from importlib import import_module
from typing import Any


def load(entry: str) -> Any:
    """What "module:name" names."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)
