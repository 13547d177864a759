"""A translator from model folders."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce import bundle
from transduce.config import configure, flatten
from transduce.decoding.translator import Translator, shared_tokenizer


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
    Raises UserError that names what is missing, damaged, of a newer format, or has another vocabulary.
    """
    folders = [folders] if isinstance(folders, (str, Path)) else folders
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if threads:
        torch.set_num_threads(threads)
    models = [bundle.load(folder, device, torch.get_num_threads()) for folder in folders]
    tokenizer = shared_tokenizer([model.tokenizer for model in models], [str(model.folder) for model in models])
    config = configure(flatten(models[0].config), options or {})
    return Translator([model.model for model in models], tokenizer, config.decode)
