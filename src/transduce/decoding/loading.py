"""A translator from model folders."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce import bundle
from transduce.allocator import keep_memory
from transduce.config import DecodeConfig, RunConfig, configure, flatten
from transduce.corpus.trees import are_of_trees
from transduce.decoding.translator import Translator, shared_tokenizer
from transduce.errors import UserError


def load(
    folders: Path | str | Sequence[Path | str],
    options: Mapping[str, Any] | None = None,
    *,
    device: torch.device | str | None = None,
    threads: int = 0,
) -> Translator:
    """The model of a folder, or the ensemble of several, ready to translate.

    options: decode.* options by dotted name over those that the first model was trained with. device: by default the
    GPU if there is one. threads: of the CPU, 0: torch's own choice.
    Raises UserError that names what is missing, damaged, of a newer format, a parser, or has another vocabulary.
    """
    models = load_models([folders] if isinstance(folders, (str, Path)) else folders, device=device, threads=threads)
    refuse_parsers(models)
    tokenizer = shared_tokenizer([model.tokenizer for model in models], [str(model.folder) for model in models])
    return Translator([model.model for model in models], tokenizer, decode_config(models[0].config, options or {}))


def load_models(
    folders: Sequence[Path | str], *, device: torch.device | str | None = None, threads: int = 0
) -> list[bundle.Bundle]:
    """The models of several folders, on one device; arguments and what is raised as for `load`."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    keep_memory()
    if threads:
        torch.set_num_threads(threads)
    return [bundle.load(folder, device, torch.get_num_threads()) for folder in folders]


def refuse_parsers(models: Sequence[bundle.Bundle]) -> None:
    """Raise UserError for a model that was trained on trees: what it translates words to would be noise."""
    for model in models:
        if are_of_trees(model.tokenizer.target_symbols().values()):
            raise UserError(
                f"{model.folder} was trained on trees: give it to `transduce parse`, or to `evaluate` with a .mrg."
            )


def decode_config(config: RunConfig, options: Mapping[str, Any]) -> DecodeConfig:
    """How to search: the given options over those of the training.

    Raises UserError for an option of anything else, which a finished model would pass over in silence.
    """
    for name in options:
        if name.startswith(("model.", "data.", "train.")):
            raise UserError(f"{name} can't be set for a model that is trained; only the options decode.… can.")
    return configure(flatten(config), options).decode
