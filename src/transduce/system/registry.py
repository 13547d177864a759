"""Finds code that is registered by name, as "module:name", and imports it only when it is used.

The core has five registries: commands, file formats, model families, engines and export formats. Their names may lie in
the core or in a wing (`transduce.wings`). The lab (`transduce_lab`) adds names by entry points.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution
from pkgutil import resolve_name
from typing import Any

from transduce.system.errors import Hint, NotInstalledError

EXTRAS = {  # wing -> the extra of the package `transduce` with the packages that the wing needs
    "agents": "mcp",
    "doctor": "doctor",
    "fetch": "fetch",
    "cluster": "scale",
    "ct2": "fast",
    "documents": "documents",
    "export": "export",
    "serving": "serve",
    "tables": "tables",
    "terms": "terms",
}


def load(name: str) -> Any:
    """Import the function or class that a registry names.

    Raises NotInstalledError if its wing, or the lab, is missing.
    """
    try:
        return resolve_name(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.partition(".")[0] not in ("transduce", "transduce_lab"):
            raise
        extra = extra_of(name)
        raise NotInstalledError(f"{missing} is not installed here.", Hint.install(extra)) from None


def extra_of(name: str) -> str:
    """The extra with the packages for a registered name; by default, the extra for most tasks."""
    package, *folders = name.partition(":")[0].split(".")
    if package == "transduce_lab":
        return "lab"
    return next((EXTRAS[folder] for folder in folders if folder in EXTRAS), "serve")


@cache
def plugins(registry: str) -> Mapping[str, Any]:
    """The names that the lab adds to a registry, by the entry point of the group "transduce" with the registry's name.

    Only the entry points of this distribution are read, since those of all packages would slow down each command.
    """
    try:
        points = distribution("transduce").entry_points.select(group="transduce", name=registry)
        tables = [point.load() for point in points]
    except ModuleNotFoundError as error:
        # A fault inside the lab, which is installed.
        if error.name not in (
            "transduce",
            "transduce_lab",
        ):
            raise
        return {}
    return {name: value for table in tables for name, value in table.items()}
