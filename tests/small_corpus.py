"""Options of tiny trainings, and the output of commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from transduce.preparation.prepared import open_prepared

TINY = [
    "data.vocab_size=300",
    "data.max_tokens=256",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=2",
    "train.warmup=60",
    "train.threads=1",
    "train.learning_rate=1.0",
    "train.precision=float32",
    "decode.max_extra_tokens=2",
    # What so few pairs get by default is for more updates.
    "train.label_smoothing=0.1",
    "train.word_dropout=0",
    "train.ema=0",
    "train.select_by=perplexity",
]


SHORT = [*TINY, "train.steps=4", "train.save_every=2", "train.validate_every=4"]


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The standard output of a command that succeeds."""
    status, found, said = run(capsys, *arguments)
    assert status == 0, said
    return found


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def texts_of(folder: Path) -> list[tuple[str, str]]:
    """The pairs of a prepared corpus: sources as they stand in its file, targets decoded."""
    prepared = open_prepared(folder)
    data, there = prepared.mixture, lines(Path(prepared.facts.files[0][0]))
    targets = prepared.tokenizer.decode(data.targets(np.arange(len(data))))
    return [
        (there[data.origin(i)[2] - 1].split("\t")[0], target) for i, target in enumerate(targets)
    ]


def evaluated(capsys, *arguments) -> dict:
    return json.loads(output(capsys, "evaluate", *arguments, "--json"))
