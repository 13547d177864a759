"""Fixtures for the tests in this folder."""

from pathlib import Path

import pytest
import torch

from corpora import reverse_texts
from models import publish_model
from sharded import SIZES
from transduce.config.parse import configure
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.decoding.translator import CHUNK_LINES
from transduce.model.build import build
from transduce.preparation.prepare import prepare
from transduce.tokens.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose weights are random, and large enough that every translation is another one."""
    folder = tmp_path_factory.mktemp("scale") / "model"
    tokenizer = Tokenizer.train(*reverse_texts(300, seed=0), vocab_size=290)
    config = configure({**SIZES, "model.vocab_size": tokenizer.target.size})
    network, generator = build(config.model), torch.Generator().manual_seed(0)
    for weight in network.parameters():
        weight.data.add_(torch.randn(weight.shape, generator=generator), alpha=0.3)
    publish_model(folder, config, tokenizer, network.state_dict(), {"parameters": 1}, "")
    return folder


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two and a half times the lines that are translated together; most are blank, for the sake of time."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = [""] * (CHUNK_LINES * 5 // 2)
    for place, line in zip(
        range(0, len(lines), 77), reverse_texts(len(lines) // 77 + 1, seed=1)[0], strict=False
    ):
        lines[place] = line
    lines[0] = "\ufeff" + lines[0]
    path.write_text("".join(f"{line}\r\n" for line in lines), encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary") / "data"
    folder.parent.joinpath("t.tsv").write_text(
        "".join(f"{s}\t{t}\n" for s, t in zip(*reverse_texts(99, 0), strict=True))
    )
    corpora = (CorpusConfig((str(folder.parent / "t.tsv"),)),)
    prepare(DataConfig(corpora=corpora, holdout=5), folder, vocab_size=lambda _: 290)
    return folder
