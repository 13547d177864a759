"""Reads the paper's tables (NAME.toml), and the options of training runs as in the paper."""

import tomllib
from collections.abc import Mapping
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


def flat(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Flatten a nested mapping {section: {key: value}} to a dictionary {"section.key": value}."""
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
    }
