"""Reads the weights of a model in Hugging Face's format: one file or shards, of safetensors or of torch."""

from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from transduce.system.errors import Hint, UserError
from transduce.wings.pretrained.reading import ANOTHER_COPY, read_json
from transduce.wings.pretrained.torch_file import read_torch_file

# The file names by preference. The index of a sharded model names the file of each weight.
READERS: dict[str, Callable[[Path], dict[str, Tensor]]] = {
    "model.safetensors": load_file,
    "pytorch_model.bin": read_torch_file,
}
SHARD_INDEX = ".index.json"


def files_of(folder: Path) -> list[Path]:
    """The files that hold a model's weights. Raises UserError if there is none, or if a shard is missing."""
    for name in READERS:
        file = folder / name
        index = folder / f"{name}{SHARD_INDEX}"
        if file.exists():
            return [file]
        if index.exists():
            return [folder / shard for shard in sorted({*_shards(index).values()})]
    raise UserError(
        f"{folder} has no weights: {' and '.join(READERS)} are missing.",
        "Name a folder with a model in Hugging Face's format.",
    )


def _shards(index: Path) -> dict[str, str]:
    """The file of each weight. Raises UserError if the index is damaged, or if a file is missing."""
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise UserError(f"{index} is damaged: it has no weight_map.", ANOTHER_COPY)
    for name in {*files.values()}:
        if not isinstance(name, str) or Path(name).name != name:
            raise UserError(
                f"{index} is damaged: {name!r} is not the name of a file.", ANOTHER_COPY
            )
        if not (index.parent / name).exists():
            raise UserError(
                f"{index.parent / name} is missing: {index.name} says that it holds weights.",
                Hint("Copy all files of the model."),
            )
    return files


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All weights by name, in float32. Raises UserError if a file is missing or damaged, and for quantised weights."""
    weights = dict[str, Tensor]()
    for file in files_of(folder):
        read = READERS[
            "model.safetensors" if file.suffix == ".safetensors" else "pytorch_model.bin"
        ]
        try:
            weights |= read(file)
        except (OSError, SafetensorError, ValueError) as error:
            raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(
                f"{folder}: {name} has the type {weight.dtype}; quantised weights can't be imported."
            )
    return {name: weight.float() for name, weight in weights.items()}
