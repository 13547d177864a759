"""Folders of models, and a client of a server with several models."""

import asyncio
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corpora import WORDS
from servers import Echo
from transduce.config.schema import DecodeConfig
from transduce.decoding.directions import Scores
from transduce.decoding.translator import Translator
from transduce.decoding.types import Hypothesis, NBestLists, Request
from transduce.text.languages import Direction
from transduce.tokens.tokenizer import Tokenizer
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.models import Model, State
from transduce.wings.serving.store import ModelStore

TOKENIZER = Tokenizer.train(list(WORDS), list(WORDS), vocab_size=300)


@dataclass
class Marking(Echo):
    """An engine that adds a word to each source."""

    word: str = ""

    def __post_init__(self) -> None:
        self.gate.set()

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        word = TOKENIZER.encode_target([self.word])[0]
        for each in super().search(requests, config, n_best):
            yield [
                [Hypothesis(score, [*tokens, *word]) for score, tokens in hypotheses]
                for hypotheses in each
            ]


class Store(ModelStore):
    """Models of Marking engines. Each has the size 1 and adds its name, which is a word."""

    def __init__(
        self, *names: str, limit: float = float("inf"), directions: Sequence[str] = ("ka-zu",)
    ):
        self.reads: list[str] = []
        self.may_read = threading.Event()
        self.may_read.set()
        known = [Direction.parse(each) for each in directions]

        def read(path: Path) -> Translator:
            assert self.may_read.wait(PATIENCE)
            self.reads.append(path.name)
            return Translator(
                Marking(word=path.name), TOKENIZER, DecodeConfig(beam_size=1), directions=known
            )

        folders = [(name, Path(f"/nowhere/{name}")) for name in names]
        super().__init__(
            [Model(name, at, known, Scores(), 1, State(at, "")) for name, at in folders],
            read,
            limit,
        )

    @property
    def in_memory(self) -> list[str]:
        return [model.name for model in self.models if model.version]


# -- memory


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def ask(store: ModelStore, *names: str) -> None:
    async with store.open([store.catalogues.choose(name).route("ka", "zu") for name in names]):
        pass


# -- new versions

KA_ZU = {"data.source": "ka", "data.target": "zu"}


def copy_into(folder: Path, version: Path) -> None:
    """Replace the files of a model folder; the manifest is last."""
    (folder / "manifest.json").unlink(missing_ok=True)
    for file in sorted(version.iterdir(), key=lambda file: file.name == "manifest.json"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
