"""Fixtures for the tests in this folder."""

from typing import Any

import pytest

from corpora import write_texts

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
from tables import COUNTS


@pytest.fixture(scope="session")
def given(tmp_path_factory) -> dict[str, Any]:
    """Options that name a small corpus and make every run a matter of seconds."""
    folder = tmp_path_factory.mktemp("paper")
    files = {
        name: write_texts(folder, name, count, seed)
        for seed, (name, count) in enumerate(COUNTS.items())
    }
    return {
        "data.corpora": [{"files": list(files["train"])}],
        "data.valid": files["valid"],
        "data.test": files["test"],
        "data.vocab_size": 300,
        "data.max_tokens": 256,
        "train.steps": 2,
        "train.threads": 1,
        "train.precision": "float32",
        "decode.beam_size": 1,
        "decode.max_extra_tokens": 2,
    }
