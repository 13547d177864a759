"""Reads the weights of a model in Hugging Face's format: one file or shards, of safetensors or of torch."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from transduce.system.errors import UserError
from transduce.wings.pretrained.reading import ANOTHER_COPY, files_in, read_json
from transduce.wings.pretrained.torch_file import read_torch_file

# The file names by preference. The index of a sharded model names the file of each weight.
SAFETENSORS_FILE, TORCH_FILE = "model.safetensors", "pytorch_model.bin"


def files_of(folder: Path) -> list[Path]:
    """The files that hold a model's weights. Raises UserError if there is none, or if a shard is missing."""
    for name in (SAFETENSORS_FILE, TORCH_FILE):
        index = folder / f"{name}.index.json"
        if (folder / name).exists():
            return [folder / name]
        if index.exists():
            shards = read_json(index).get("weight_map")
            if not isinstance(shards, dict) or not shards:
                raise UserError(f"{index} is damaged: it has no weight_map.", ANOTHER_COPY)
            return files_in(folder, sorted({*map(str, shards.values())}), index)
    raise UserError(
        f"{folder} has no weights: {SAFETENSORS_FILE} and {TORCH_FILE} are missing.",
        "Name a folder with a model in Hugging Face's format.",
    )


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All weights by name, in float32. Raises UserError if a file is missing or damaged, and for quantised weights."""
    weights = dict[str, Tensor]()
    for file in files_of(folder):
        read = load_file if file.suffix == ".safetensors" else read_torch_file
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
