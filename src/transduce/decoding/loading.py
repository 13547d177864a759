"""Load models and translators from model folders."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, DecodeConfig, RunConfig, flatten
from transduce.decoding.confidence import Confidence
from transduce.decoding.directions import Scores, directions_of
from transduce.decoding.registry import (
    AUTOMATIC,
    ENGINES,
    EXPORT_FORMATS,
    EngineName,
    engines,
    open_engine,
)
from transduce.decoding.searcher import Fallback
from transduce.decoding.translator import Translator
from transduce.decoding.types import Engine, ModelToOpen, Refusal
from transduce.system.cache import remembered_digest
from transduce.system.console import log
from transduce.system.errors import Hint, UnusableModelError, UserError
from transduce.system.files import MANIFEST, digest, verify
from transduce.system.machine import cores, keep_memory
from transduce.text.tree_symbols import are_of_trees
from transduce.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch


def load(
    folders: Path | str | Sequence[Path | str],
    options: Mapping[str, Any] | None = None,
    *,
    engine: EngineName = "auto",
    device: "torch.device | str | None" = None,
    threads: int = 0,
    source: str = "",
    target: str = "",
) -> Translator:
    """Load a translator from a model folder, or from several model folders as an ensemble.

    `options` overrides search options (decode.*) of the first model. The engine "torch" is a beam search for every
    model and every device. "ctranslate2" is faster on a CPU, but supports only single Transformers. "auto" chooses
    "ctranslate2" if it is installed, supports the model and the device, and translates as well as "torch". Otherwise,
    "auto" chooses "torch". "blockwise" is greedy search with a model.block_size above 1. If `device` is None, "torch",
    "auto" and "blockwise" use the GPU if there is one. If `threads` is 0, the engine chooses the number of CPU threads.
    In a forked process, "torch" uses only one thread. `source` and `target` are language codes, and choose a direction
    of a multilingual model. Raises UserError if a model can't be read or is a parser, if vocabularies differ, or if the
    engine can't run the model.
    """
    paths = [
        Path(folder) for folder in ([folders] if isinstance(folders, (str, Path)) else folders)
    ]
    if not paths:
        raise UserError(
            "There is no model to load.",
            "Give the folder of a model, or several folders for an ensemble.",
        )
    if threads < 0:
        raise UserError(f"threads must be at least 0, not {threads}.")
    names = ["auto", *engines()]
    if engine not in names:
        raise UserError(f"There is no engine '{engine}'.", Hint.choose(engine, names))
    export = next(filter(None, map(export_engine, paths)), None)
    if export and len(paths) > 1:
        raise UserError(
            "An export can't be part of an ensemble.",
            "Give one export, or give only model folders.",
        )
    if export and engine != "auto":
        raise UserError("An export has its own engine.", "Give no engine for an export.", "engine")
    options = ({"decode.beam_size": 1} if engine == "blockwise" else {}) | dict(options or {})
    model = describe_models(paths, options)
    model = model._replace(device=device, threads=threads, required=engine != "auto")
    name, opened = _open(model, engine, export)
    data = model.config.data
    is_converted = not export and name == "ctranslate2"
    translator = Translator(
        opened,
        model.tokenizer,
        model.config.decode,
        fallback=_fallback(model) if is_converted else None,
        max_length=data.max_length,
        confidence=_confidence(paths[0]) if len(paths) == 1 else None,
        directions=directions_of(data),
        has_tags=bool(data.directions),
        scores=scores_of(paths[0]) if data.directions else Scores(),
    )
    targets = {each.target for each in translator.directions}
    has_one_target = bool(data.directions) and len(targets) == 1
    return translator.toward(source, target) if source or target or has_one_target else translator


def _open(model: ModelToOpen, engine: EngineName, export: str | None) -> tuple[str, Engine]:
    """Open the engine of an export, or the first engine that can run the model, and return its name.

    Raises UserError if there is none.
    """
    for name in AUTOMATIC if engine == "auto" else [engine]:
        opened = open_engine(export or engines()[name], model)
        if not isinstance(opened, Refusal):
            return name, opened
        refusal = opened
    raise UserError(
        f"The engine {name} can't run {model.folders[0]}: {refusal.reason}.", refusal.hint
    )


def _fallback(model: ModelToOpen) -> Fallback:
    """The engine torch for a model of another engine. It can be opened in any working directory."""
    descriptions = [each._replace(weights=each.weights.absolute()) for each in model.descriptions]
    folders = [folder.absolute() for folder in model.folders]
    model = model._replace(folders=folders, descriptions=descriptions)
    return Fallback(functools.partial(_open_fallback, model, digest(folders[0] / MANIFEST)))


def _open_fallback(model: ModelToOpen, manifest: str) -> Engine:
    """Open the engine torch for a model of another engine. Raises UnusableModelError if the files have changed."""
    [folder] = model.folders
    if not (folder / MANIFEST).exists() or digest(folder / MANIFEST) != manifest:
        raise UnusableModelError(f"{folder} has changed since it was loaded.", "Load it again.")
    try:
        engine = open_engine(ENGINES["torch"], model._replace(device="cpu"))
    except UserError as error:
        raise UnusableModelError(error.cause, error.hint) from None
    assert not isinstance(engine, Refusal), "the engine torch runs every model"
    return engine


def scores_of(folder: Path) -> Scores:
    """The recorded scores of a model's directions. An export and an unfinished model have no scores."""
    if not (folder / MANIFEST).exists() or not (folder / model_folder.METRICS).exists():
        return Scores()
    metrics = model_folder.read_metrics(folder)
    directions = metrics.get("directions", {}).items()
    quality = {
        name: scores["validation"]["chrf"] for name, scores in directions if "validation" in scores
    }
    return Scores(quality, metrics.get("routes", {}))


def _confidence(folder: Path) -> Confidence | None:
    """The estimate of a model's confidence, or None with a warning if its file is damaged."""
    try:
        if (folder / MANIFEST).exists():
            verify(folder, hashes=True, only=model_folder.CONFIDENCE)
        return Confidence.load(folder)
    except UserError as error:
        log(f"Warning: {error} The model can be used, but translations have no confidence.")
        return None


def describe_models(paths: list[Path], options: Mapping[str, Any]) -> ModelToOpen:
    """Describe a model, an ensemble or an export for opening its engine. Raises UserError as `load` does."""
    if export_engine(paths[0]):
        verify(paths[0], hashes=True, remembered=remembered_digest, but=model_folder.NOT_NEEDED)
        config = model_folder.read_config(paths[0])
        descriptions = []
    else:
        descriptions = [model_folder.describe(path) for path in paths]
        config = descriptions[0].config
        check_directions([each.config.data for each in descriptions], paths)
    config = replace(config, decode=decode_config(config, options))
    tokenizers = [Tokenizer.load(path, cores()) for path in paths]
    for tokenizer, path in zip(tokenizers, paths, strict=True):
        if config.data.symbols:
            refuse_parser(tokenizer, path)
    return ModelToOpen(paths, descriptions, config, shared_tokenizer(tokenizers, paths))


def export_engine(folder: Path) -> str | None:
    """The name of the function that opens an export's engine, or None if `folder` holds no export."""
    return next(
        (engine for file, engine in EXPORT_FORMATS.items() if (folder / file).exists()), None
    )


def load_models(folders: Sequence[Path | str]) -> list[model_folder.Bundle]:
    """Load models from several folders, onto the GPU if there is one. Raises UserError if a model can't be read."""
    import torch

    from transduce.model.device import choose_device

    keep_memory()
    device = choose_device()
    models = [model_folder.load(folder, device, torch.get_num_threads()) for folder in folders]
    check_directions([model.config.data for model in models], folders)
    return models


def check_directions(models: Sequence[DataConfig], folders: Sequence[Path | str]) -> None:
    """Raise UserError if the models of an ensemble have different directions that have language codes."""
    unnamed = directions_of(DataConfig())
    named = [
        each for each in zip(models, folders, strict=True) if directions_of(each[0]) != unnamed
    ]
    for data, folder in named:
        first, first_folder = named[0]
        if {*directions_of(data)} != {*directions_of(first)}:
            raise UserError(
                f"{folder} translates {data.languages}, and {first_folder} translates {first.languages}.",
                "Models of an ensemble must have the same directions.",
            )


def shared_tokenizer(tokenizers: Sequence[Tokenizer], folders: Sequence[Path]) -> Tokenizer:
    """The tokenizer of an ensemble. Raises UserError if the models' vocabularies differ."""
    first = tokenizers[0]
    for tokenizer, folder in zip(tokenizers, folders, strict=True):
        if not tokenizer.same_pieces(first):
            raise UserError(
                f"{folder} has another vocabulary than {folders[0]}.",
                "Models of an ensemble must be trained on the same prepared data.",
            )
    return first


def refuse_parser(tokenizer: Tokenizer, folder: Path) -> None:
    """Raise UserError if the model is a parser, trained to produce trees."""
    if are_of_trees(tokenizer.target_symbols().values()):
        raise UserError(
            f"{folder} is a parser.",
            "Use `transduce parse`, or `transduce evaluate` with a .mrg file.",
        )


def decode_config(config: RunConfig, options: Mapping[str, Any]) -> DecodeConfig:
    """The search options of a model, overridden by `options`. Raises UserError if `options` has other options."""
    for name in options:
        if name.startswith(("model.", "data.", "train.")):
            raise UserError(
                f"{name} can't be set for a trained model.", "Set only options of decode."
            )
    return configure(flatten(config), options).decode
