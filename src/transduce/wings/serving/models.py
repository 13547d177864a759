"""The models of a server, and their versions in memory."""

import contextlib
from asyncio import Task
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.families import TEXT_SOURCES
from transduce.config.schema import WORD_TOKENIZERS
from transduce.decoding.directions import Scores, directions_of
from transduce.decoding.loading import describe_models, export_engine, scores_of
from transduce.decoding.translator import Translator
from transduce.system.cache import remembered_digest
from transduce.system.errors import UnusableModelError, UserError
from transduce.system.files import MANIFEST, digest, read_manifest, verify
from transduce.text.languages import Direction
from transduce.wings.inspection.maps import attention_of
from transduce.wings.inspection.picture import picture_of


class State(NamedTuple):
    """Tells the versions of a model folder apart."""

    path: Path  # path without symbolic links
    manifest: str  # its SHA-256; "" for an unfinished model

    @classmethod
    def of(cls, folder: Path) -> "State":
        """The state of a folder."""
        path = folder
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: symbolic links in a circle
            path = folder.resolve()
            return cls(path, digest(path / MANIFEST))
        return cls(path, "")

    def files(self) -> list[tuple[str, int, int]]:
        """The names, sizes and times of the files in the manifest. They change while a folder is copied."""
        found = [path for name in read_manifest(self.path) if (path := self.path / name).exists()]
        return [(path.name, (status := path.stat()).st_size, status.st_mtime_ns) for path in found]


class Version:
    """A version of a model, in memory."""

    def __init__(self, state: State, translator: Translator):
        self.state = state
        self.loaded = translator
        self.users = 0  # requests that use it
        # Translators by direction and beam size.
        self._translators: dict[tuple[Direction, int], Translator] = {}
        self._network: model_folder.Bundle | None = None  # the network, loaded to draw attention

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights of all engines that are open."""
        network = self._network.model.parameters() if self._network else ()
        return self.loaded.weight_bytes + sum(each.nbytes for each in network)

    def translator(self, direction: Direction, beam_size: int) -> Translator:
        """The translator for a direction and a beam size. All translators of a version share its engine."""
        key = direction, beam_size
        if key not in self._translators:
            self._translators[key] = self.loaded.direct(direction).with_beam_size(beam_size)
        return self._translators[key]

    def attention(self, direction: Direction, text: str) -> str:
        """The attention for a sentence as JSON. Raises UserError if the sentence is blank or too long.

        Raises UnusableModelError if the files of the model have changed.
        """
        if export_engine(self.state.path):
            raise UserError(
                "This model is an export, which has no attention to show.",
                "Serve the model that was exported.",
            )
        if self._network is None:
            if State.of(self.state.path) != self.state:
                raise UnusableModelError(f"{self.state.path} has changed since it was loaded.")
            try:
                self._network = model_folder.load(self.state.path)
            except UserError as error:
                raise UnusableModelError(error.cause, error.hint) from None
        model = self._network.model
        translator = self.translator(direction, self.loaded.config.beam_size)
        return picture_of(
            model,
            attention_of(model, translator.tokenizer, text, translator.config, direction.source),
        ).json()


class Summary(NamedTuple):
    """What is known about a model or an export without loading its weights."""

    directions: list[Direction]
    scores: Scores  # empty if there is one direction
    weight_bytes: int  # size of the files that hold the weights


def summarize(folder: Path) -> Summary:
    """Check a model folder, and describe it without loading the weights. Raises UserError as `load` does."""
    model = describe_models([folder], {})
    if model.config.data.tokenizer in WORD_TOKENIZERS:
        raise UserError(
            f"{folder}: a model with data.tokenizer={model.config.data.tokenizer} can't be served.",
            "Train a model with another tokenizer.",
        )
    if model.config.data.source_kind != TEXT_SOURCES:
        raise UserError(
            f"{folder}: the sources of the model are files, and clients may not name files of this machine.",
            "Serve a model of texts.",
        )
    if model.descriptions:
        verify(
            model.descriptions[0].weights.parent,
            hashes=True,
            remembered=remembered_digest,
            only=model_folder.WEIGHTS,
        )
        size = model.descriptions[0].size
    else:
        size = sum(entry.size for entry in read_manifest(folder).values())
    data = model.config.data
    return Summary(directions_of(data), scores_of(folder) if data.directions else Scores(), size)


@dataclass(eq=False)
class Model:
    """A model that the server offers."""

    name: str
    folder: Path
    directions: Sequence[Direction]
    scores: Scores  # scores by which a pivot is chosen
    weight_bytes: (
        int  # size of the weights file, and once the model is loaded, of the engine's weights
    )
    state: State  # state of the version that is used
    version: Version | None = None  # None: not in memory
    # A new version that was tried, and the state of its files then.
    tried: tuple[State, list[tuple[str, int, int]]] | None = None
    refused: tuple[State, str] | None = None  # a new version that can't be used, and the reason
    loading: Task[bool] | None = None
    users: int = 0  # requests that have opened the model
    last_used: int = 0

    @classmethod
    def read(cls, name: str, folder: Path) -> "Model":
        """Read a model folder without loading the weights. Raises UserError if a file is missing or damaged."""
        state = State.of(folder)
        return cls(name, folder, *summarize(folder), state)


class Served(NamedTuple):
    """A model for a direction that a request has opened."""

    version: Version
    direction: Direction

    @property
    def can_align(self) -> bool:
        """Whether the engine can align words."""
        return "attention" in self.version.loaded.engine.supports
