"""Fixtures for the tests in this folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from exports import MARIANS, MODELS, make_marian
from models import make_model
from transduce.config.schema import (
    PLACEHOLDER_TOKENS,
)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder for every name in MODELS, made when it is asked for."""
    place = tmp_path_factory.mktemp("models")

    def get(name: str, updates: int = 40) -> Path:
        folder = place / f"{name.replace(' ', '-')}-{updates}"
        made = {
            "joint": "separate" not in name,
            "placeholder_tokens": PLACEHOLDER_TOKENS if "placeholder tokens" in name else "",
        }
        made["symbols"] = "symbols" in name
        return (
            folder if folder.exists() else make_model(folder, MODELS[name], updates=updates, **made)
        )

    return get


@pytest.fixture(scope="session")
def marians(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for every name in MARIANS, made when it is asked for."""
    place = tmp_path_factory.mktemp("marians")

    def get(name: str) -> Path:
        folder = place / name.split(",")[0]
        return folder if folder.exists() else make_marian(folder, **MARIANS[name])

    return get
