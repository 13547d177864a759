"""A translator from model folders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import DecodeConfig, RunConfig, flatten
from transduce.decoding.registry import AUTOMATIC, ENGINES, EXPORTS, EngineName
from transduce.decoding.translator import Translator
from transduce.decoding.types import Engine, ModelToOpen, Refusal
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import say
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
) -> Translator:
    """The model of a folder, or the ensemble of several, ready to translate.

    options: decode.* options by dotted name over those that the first model was trained with. engine: "torch", our own
    search, is for every model and device; "int8" is the same with matrix products in 8 bits, for every model on a CPU;
    "ctranslate2" is faster, for Transformers on a CPU; "auto" is ctranslate2 where it is installed, supports the model
    and translates it as well, otherwise torch. device: by default the GPU if there is one. threads: of the CPU; 0: one
    for each core. Raises UserError that names what is missing, damaged, of a newer format, a parser, has another
    vocabulary, or can't have the engine.
    """
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, (str, Path)) else folders)]
    if not paths:
        raise UserError("No model to load: give the folder of one, or of several for an ensemble.")
    model = _describe(paths, options or {}, engine)
    model = model._replace(device=device, threads=threads, required=engine != "auto")
    if export := export_engine(paths[0]):
        names: Sequence[str] = [export]
    else:
        names = AUTOMATIC if engine == "auto" else [engine]
    for name in names:
        opened: Engine | Refusal = resolve_name(ENGINES[name])(model)
        if not isinstance(opened, Refusal):
            break
    if isinstance(opened, Refusal):
        raise UserError(f"{paths[0]} can't have the engine {name}: {opened.reason}.")
    if model.config.decode.shortlist and name in ("torch", "int8"):
        say("decode.shortlist is for the engine ctranslate2; our own search chooses from all pieces.")
    fallback = None if export else lambda: resolve_name(ENGINES["torch"])(model._replace(device="cpu"))
    data = model.config.data
    return Translator(
        opened,
        model.tokenizer,
        model.config.decode,
        fallback=fallback if name == "ctranslate2" else None,
        language=data.source,
        max_length=data.max_length,
    )


def _describe(paths: list[Path], options: Mapping[str, Any], engine: EngineName) -> ModelToOpen:
    """What engines need to know of a model, an ensemble or an export; raises UserError as `load` does."""
    exports = [path for path in paths if export_engine(path)]
    if exports and (len(paths) > 1 or engine != "auto"):
        raise UserError(
            f"{exports[0]} is an export, which has an engine of its own and no ensembles: give this folder alone, and "
            "no engine."
        )
    if exports:
        verify(paths[0], but=model_folder.CARD)
        config, descriptions = model_folder.read_config(paths[0]), []
    else:
        descriptions = [model_folder.describe(path) for path in paths]
        config = descriptions[0].config
    config = replace(config, decode=decode_config(config, options))
    tokenizers = [Tokenizer.load(path, cores()) for path in paths]
    for tokenizer, path in zip(tokenizers, paths, strict=True):
        if config.data.symbols:
            refuse_parser(tokenizer, path)
    return ModelToOpen(paths, descriptions, config, shared_tokenizer(tokenizers, list(map(str, paths))))


def export_engine(folder: Path) -> str | None:
    """The engine of a folder that holds an export; None for a model folder."""
    return next((engine for file, engine in EXPORTS.items() if (folder / file).exists()), None)


def load_models(
    folders: Sequence[Path | str], *, device: "torch.device | str | None" = None, threads: int = 0
) -> list[model_folder.Bundle]:
    """The models of several folders, on one device; arguments and errors as for `load`."""
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    keep_memory()
    if threads:
        torch.set_num_threads(threads)
    return [model_folder.load(folder, device, torch.get_num_threads()) for folder in folders]


def shared_tokenizer(tokenizers: Sequence[Tokenizer], names: Sequence[str]) -> Tokenizer:
    """The one tokenizer of the models of an ensemble; raises UserError that names a model with another vocabulary."""
    first = tokenizers[0]
    for tokenizer, name in zip(tokenizers[1:], names[1:], strict=True):
        if not tokenizer.same_pieces(first):
            raise UserError(
                f"{name} has another vocabulary than {names[0]}; models can translate together only if they "
                "were trained on the same prepared data."
            )
    return first


def refuse_parser(tokenizer: Tokenizer, folder: Path) -> None:
    """Raise UserError for a model that was trained on trees: its translations of words would be noise."""
    if are_of_trees(tokenizer.target_symbols().values()):
        raise UserError(f"{folder} was trained on trees: give it to `transduce parse`, or to `evaluate` with a .mrg.")


def decode_config(config: RunConfig, options: Mapping[str, Any]) -> DecodeConfig:
    """The search options of a model: the given ones over those of its training.

    Raises UserError for an option of another section, which would have no effect on a finished model.
    """
    for name in options:
        if name.startswith(("model.", "data.", "train.")):
            raise UserError(f"{name} can't be set for a trained model; only the options decode.… can.")
    return configure(flatten(config), options).decode
