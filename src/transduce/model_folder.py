"""A model folder: what a training leaves behind, and all that translating needs.

    config.toml  tokenizer.model  model.safetensors  metrics.json  README.md  manifest.json   the model
    journal.jsonl  data/  checkpoints/step-00001234/                                          how it came about

Without a manifest the training is not finished; its newest whole checkpoint is the model then.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.config.schema import RunConfig, configure, read_recipe, to_toml
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, publish, verify
from transduce.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from transduce.model.seq2seq import Seq2Seq

CONFIG, WEIGHTS, METRICS, CARD, JOURNAL = (
    "config.toml",
    "model.safetensors",
    "metrics.json",
    "README.md",
    "journal.jsonl",
)
CHECKPOINTS, DATA = "checkpoints", "data"
CHECKPOINT = "step-" + 8 * "[0-9]"  # and no copy that somebody has made beside it


class Bundle(NamedTuple):
    """A model with all that belongs to it."""

    folder: Path
    config: RunConfig
    tokenizer: Tokenizer
    model: "Seq2Seq"


class Description(NamedTuple):
    """What is known of a model folder without loading its weights."""

    config: RunConfig
    weights: Path
    finished: bool
    metrics: dict[str, Any]
    size: int  # bytes of the weights


def describe(folder: Path | str) -> Description:
    """Read everything but the weights, sizes checked; raises UserError that names what is missing or damaged."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"There is no model folder {folder}.")
    config = read_config(folder)
    finished = (folder / MANIFEST).exists()
    if finished:
        verify(folder, but=CARD)
        if not (folder / WEIGHTS).exists():  # what others read
            raise UserError(f"{folder} is an export, without {WEIGHTS}; give the model folder that it was made of.")
        weights, metrics = folder / WEIGHTS, json.loads((folder / METRICS).read_text(encoding="utf-8"))
    else:
        weights, metrics = newest_whole(folder) / WEIGHTS, {}
    return Description(config, weights, finished, metrics, weights.stat().st_size)


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run or a model; raises UserError if there is none, or one of a newer format."""
    path = folder / CONFIG
    if not path.is_file():
        raise UserError(f"{folder} is not a model folder: {path} is missing.")
    return configure(read_recipe(path.read_bytes().decode("utf-8", "replace"), str(path)))


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run after its first update, oldest first, whole or damaged."""
    return sorted(path for path in (folder / CHECKPOINTS).glob(CHECKPOINT) if step_of(path))


def step_of(checkpoint: Path) -> int:
    """The updates that a checkpoint has behind it."""
    return int(checkpoint.name.removeprefix("step-"))


def newest_whole(folder: Path) -> Path:
    """The newest checkpoint of a run whose files have the right sizes; raises UserError if there is none."""
    complaints = []
    for path in reversed(checkpoints(folder)):
        try:
            verify(path)
        except UserError as error:
            complaints.append(str(error))
        else:
            return path
    reason = complaints[0] if complaints else f"{folder} holds neither {MANIFEST} nor a checkpoint"
    raise UserError(f"There is no whole model in {folder}: {reason}")


def load(folder: Path | str, device: "torch.device | str" = "cpu", threads: int = 1) -> Bundle:
    """The model, in eval mode, with its tokenizer and configuration.

    Raises UserError that names what is missing, damaged or of a newer format.
    """
    description = describe(folder)
    tokenizer = Tokenizer.load(folder, threads)
    return Bundle(Path(folder), description.config, tokenizer, load_network(description, device))


def load_network(description: Description, device: "torch.device | str" = "cpu") -> "Seq2Seq":
    """The model alone, in eval mode."""
    from transduce.model.build import build, load_weights

    model = build(description.config.model)
    load_weights(model, description.weights)
    return model.to(device).eval()


def publish_model(
    folder: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    weights: "dict[str, Tensor]",
    metrics: dict[str, Any],
    card: str,
) -> None:
    """Make `folder`, which may hold the run already, a finished model folder; raises UserError if the disk is full."""
    needed = sum(weight.numel() * weight.element_size() for weight in weights.values())
    with publish(folder, needed) as aside:
        fill(aside, config, tokenizer, weights, metrics, card)


def fill(
    folder: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    weights: "dict[str, Tensor]",
    metrics: dict[str, Any],
    card: str,
) -> None:
    """Write a model into an existing folder, without a manifest."""
    from safetensors.torch import save_file

    (folder / CONFIG).write_text(to_toml(config), encoding="utf-8")
    tokenizer.save(folder)
    save_file(weights, folder / WEIGHTS)
    (folder / METRICS).write_text(json.dumps(metrics, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / CARD).write_text(card, encoding="utf-8")


def average(checkpoints: Sequence[Path]) -> "dict[str, Tensor]":
    """The mean of the weights of several checkpoints, hashes checked (section 6.1: the last 5, or 20, checkpoints).

    Summed in float64: in float32 the average of equal checkpoints can differ from them.
    """
    import torch
    from safetensors.torch import load_file

    total: dict[str, Tensor] = {}
    for path in checkpoints:
        verify(path, hashes=True)
        last = load_file(path / WEIGHTS)
        for name, weight in last.items():
            total[name] = total.get(name, torch.zeros((), dtype=torch.float64)) + weight.double()
    return {name: (weight / len(checkpoints)).to(last[name].dtype) for name, weight in total.items()}
