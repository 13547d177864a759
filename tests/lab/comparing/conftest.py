"""Fixtures for the tests in this folder."""

from typing import Any

import pytest

from corpora import write_texts

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from compared import COUNTS, TRAINED


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("texts")
    return {
        name: write_texts(folder, name, count, seed)
        for seed, (name, count) in enumerate(COUNTS.items())
    }


@pytest.fixture(scope="session")
def given(files) -> dict[str, Any]:
    """Options that name a small corpus, and make every run a matter of a second."""
    named = {"data.valid": files["valid"], "data.test": files["test"]}
    return {"data.corpora": [{"files": list(files["train"])}], **named, **TRAINED}
