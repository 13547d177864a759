"""Reads the paper's tables (NAME.toml), and the options of training runs as in the paper."""

import tomllib
from importlib.resources import files
from typing import Any

from transduce.config.schema import RunConfig, flatten
from transduce.config.size_table import ON_TEXTS, SMALL
from transduce.decoding.types import PLAIN_SEARCH

PLAIN_OPTIONS = {  # training and search as in the paper, also with a small corpus
    **{name: flatten(RunConfig())[name] for name in (*ON_TEXTS, *SMALL, "train.cooldown")},
    **{f"decode.{name}": value for name, value in PLAIN_SEARCH.items()},
}


def definition(name: str) -> dict[str, Any]:
    """Read a table of the paper from its TOML file."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))
