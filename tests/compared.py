"""Toy corpora and tables for the tests of comparisons."""

from pathlib import Path
from typing import Any

import pytest

from corpora import spelt
from transduce_lab.comparing.definition import Definition, read

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


ROOT = Path(__file__).parents[1]


TABLES = sorted((ROOT / "benchmarks/tables").glob("*.toml"))


COUNTS = {"train": 60, "valid": 10, "test": 12}


TRAINED = {
    "data.vocab_size": 300,
    "data.max_tokens": 256,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 16,
    "model.num_heads": 2,
    "train.threads": 1,
    "train.precision": "float32",
    "decode.beam_size": 1,
    "decode.max_extra_tokens": 2,
}


ROWS = '[rows]\nbase = ""\nslow = "train.learning_rate=0.001"\n'


def definition(tmp_path: Path, text: str, own: dict[str, Any]) -> Definition:
    path = tmp_path / "table.toml"
    path.write_text(text)
    return read(path, own)


def command(
    tmp_path: Path, files: dict[str, tuple[str, str]], text: str, *more: object
) -> list[object]:
    (tmp_path / "table.toml").write_text(text)
    named = [argument for name, pair in files.items() for argument in (f"--{name}", *pair)]
    return [
        "compare",
        tmp_path / "table.toml",
        "--out",
        tmp_path / "out",
        *named,
        *spelt(TRAINED),
        *more,
    ]
