"""Read and write folders that hold a model and the files of its training.

    config.toml  tokenizer.model  model.safetensors  metrics.json  README.md  manifest.json   the model
    confidence.json                                               an estimate of its translations' quality
    sources.json                                                      where each value of config.toml came from
    run.json                                                          inputs, code, command and machine of the training
    journal.jsonl  data/  checkpoints/step-00001234/  back-translation/  remembered/          the training
    pairs/                                                            its corpus, if it was given as Python objects

If manifest.json is missing, the training is not finished, and the newest intact checkpoint is the model.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.config.parse import TRAINED_WITH, configure, options_in, read_toml, to_toml
from transduce.config.schema import RunConfig
from transduce.system.cache import remembered_digest
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, digest, read_manifest, to_json, verify, write_text
from transduce.tokens.tokenizer import FILES, Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from transduce.model.seq2seq import Seq2Seq

CONFIG, SOURCES = "config.toml", "sources.json"
WEIGHTS, METRICS, CARD = "model.safetensors", "metrics.json", "README.md"
CONFIDENCE, RUN = "confidence.json", "run.json"
SEAL = "\n# SHA-256 of the text above: "  # at the end of config.toml
NOT_NEEDED = (CARD, METRICS, CONFIDENCE, SOURCES, RUN)  # files that translation does not need
JOURNAL = "journal.jsonl"
CHECKPOINTS, DATA, BACK_TRANSLATION = "checkpoints", "data", "back-translation"
REMEMBERED = "remembered"  # other text that a fine-tuning repeats
GIVEN_PAIRS = "pairs"
CHECKPOINT_PATTERN = "step-" + 8 * "[0-9]"  # excludes copies with longer names


class Bundle(NamedTuple):
    """A model with its folder, configuration and tokenizer."""

    folder: Path
    config: RunConfig
    tokenizer: Tokenizer
    model: "Seq2Seq"


class Description(NamedTuple):
    """Facts about a model that are known without loading its weights."""

    config: RunConfig
    weights: Path
    finished: bool
    metrics: dict[str, Any]
    size: int  # bytes of the weights


def describe(folder: Path | str) -> Description:
    """Read a model folder without its weights. Raises UserError if a file is missing or damaged.

    Only the size of the weights is checked here. `load_network` checks their hash.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is a file, not a model folder."
            if folder.is_file()
            else f"There is no model folder {folder}."
        )
    config = read_config(folder)
    finished = (folder / MANIFEST).exists()
    if finished:
        verify(folder, hashes=True, but=(*NOT_NEEDED, WEIGHTS))
        if WEIGHTS not in read_manifest(folder):
            raise UserError(
                f"{folder} is an export without {WEIGHTS}.",
                "Give the model folder that was exported.",
            )
        verify(folder, only=WEIGHTS)
        weights = folder / WEIGHTS
        metrics = read_metrics(folder)
    else:
        _check_vocabulary(folder)
        weights = newest_intact(folder) / WEIGHTS
        metrics = {}
    return Description(config, weights, finished, metrics, weights.stat().st_size)


def _check_vocabulary(folder: Path) -> None:
    """Raise UserError if the vocabulary of an unfinished training run differs from that of its corpus."""
    files = read_manifest(folder / DATA) if (folder / DATA / MANIFEST).is_file() else {}
    for name in files.keys() & FILES:
        if not (folder / name).is_file() or digest(folder / name) != files[name].sha256:
            raise UserError(
                f"{folder / name} is missing or damaged.",
                f"Copy {folder / DATA / name} to this place.",
            )


def read_config(folder: Path) -> RunConfig:
    """The configuration of a model folder. Raises UserError if config.toml is missing, damaged or of a newer format."""
    path = folder / CONFIG
    if not path.is_file():
        raise UserError(
            f"{folder} is not a model folder: {path} is missing.",
            "A model folder is what `transduce train --out` wrote.",
        )
    if is_finished := (folder / MANIFEST).exists():
        verify(folder, hashes=True, only=CONFIG)
    text, _, seal = path.read_bytes().decode("utf-8", "replace").rpartition(SEAL)
    config = configure(options_in(read_toml(text or seal, str(path)), str(path), is_model=True))
    if not is_finished and seal != _seal(text):
        raise UserError(
            f"{path} is damaged, or was edited.",
            "Restore it, and set options on the command line, or train in a new folder.",
        )
    try:
        if is_finished:
            verify(folder, hashes=True, only=SOURCES)
        sources = {**json.loads((folder / SOURCES).read_bytes())}
    except FileNotFoundError:  # imported models have no such file
        return config
    except (UserError, ValueError, TypeError, RecursionError):
        log(f"Warning: {folder / SOURCES} is damaged, so where the options came from is unknown.")
        return config
    return dataclasses.replace(config, sources=sources)


def check_trainable(folder: Path) -> None:
    """Raise UserError if a training can't be resumed because it used an option that this version lacks."""
    path = folder / CONFIG
    tables = read_toml(path.read_text(encoding="utf-8"), str(path))
    for name, expected in TRAINED_WITH.items():
        section, key = name.split(".")
        value = tables[section].get(key, expected)
        if value != expected:
            raise UserError(
                f"{folder} was trained with {name} = {value}, which this version can't do.",
                "Use the earlier version of transduce, or start a new training.",
            )


def write_config(folder: Path, config: RunConfig) -> None:
    """Write config.toml with its hash, and sources.json if `config.sources` is set."""
    if config.sources is not None:
        write_text(folder / SOURCES, to_json(config.sources))
    text = to_toml(config)
    write_text(folder / CONFIG, f"{text}{SEAL}{_seal(text)}")


def _seal(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n"


def read_metrics(folder: Path) -> dict[str, Any]:
    """The content of metrics.json, with None for NaN and infinity. If it is damaged, warn and return nothing."""
    try:
        verify(folder, hashes=True, only=METRICS)
    except UserError as error:
        log(f"Warning: {error} The model can be used, but its scores are unknown.")
        return {}
    metrics: dict[str, Any] = json.loads(
        (folder / METRICS).read_bytes(), parse_constant=lambda _: None
    )
    return metrics


def checkpoints_in(folder: Path) -> list[Path]:
    """The checkpoints in `folder`, oldest first, including damaged checkpoints."""
    return sorted(folder.glob(CHECKPOINT_PATTERN))


def checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a training run after step 0, oldest first, including damaged checkpoints."""
    return [path for path in checkpoints_in(run / CHECKPOINTS) if step_of(path)]


def step_of(checkpoint: Path) -> int:
    """The number of training updates before a checkpoint was written."""
    return int(checkpoint.name.removeprefix("step-"))


def newest_intact(run: Path) -> Path:
    """The newest checkpoint in which every file has the right size. Raises UserError if there is none."""
    errors = []
    for path in reversed(checkpoints(run)):
        try:
            verify(path)
        except UserError as error:
            errors.append(error)
        else:
            return path
    if errors:
        newest = errors[0]
        raise UserError(f"There is no intact model in {run}: {newest.cause}", newest.hint)
    raise UserError(
        f"There is no intact model in {run}: {run} holds neither {MANIFEST} nor a checkpoint."
    )


def load(folder: Path | str, device: "torch.device | str" = "cpu", threads: int = 1) -> Bundle:
    """Load a model in eval mode. Raises UserError if a file is missing, damaged or of a newer format."""
    description = describe(folder)
    tokenizer = Tokenizer.load(folder, threads)
    return Bundle(Path(folder), description.config, tokenizer, load_network(description, device))


def load_network(description: Description, device: "torch.device | str" = "cpu") -> "Seq2Seq":
    """Build a model's network in eval mode with its trained weights. Raises UserError if these can't be loaded."""
    from transduce.model.build import build, load_weights

    folder = description.weights.parent
    if not description.finished:
        log(
            f"Warning: {folder.parent.parent} has no {MANIFEST}: it is unfinished or damaged. {folder.name} is used."
        )
    verify(folder, hashes=True, remembered=remembered_digest, only=WEIGHTS)
    model = build(description.config.model)
    load_weights(model, description.weights)
    try:
        return model.to(device).eval()
    except (
        RuntimeError,
        AssertionError,
    ) as error:  # there is no such device, or it has too little memory
        raise UserError(f"{folder} can't be loaded onto the device {device}: {error}") from None


def fill(
    folder: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    weights: "dict[str, Tensor]",
    metrics: dict[str, Any],
    card: str,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a model's files, except the manifest, into an existing folder; `more` maps names of files to texts."""
    from safetensors.torch import save_file

    write_config(folder, config)
    tokenizer.save(folder)
    save_file(weights, folder / WEIGHTS)
    for name, text in {METRICS: to_json(metrics), CARD: card, **more}.items():
        (folder / name).write_text(text, encoding="utf-8")


def average(checkpoints: Sequence[Path]) -> "dict[str, Tensor]":
    """The mean of several checkpoints' weights (section 6.1). Raises UserError if a file is damaged."""
    from safetensors import safe_open

    for path in checkpoints:
        verify(path, hashes=True)
    means: dict[str, Tensor] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(path / WEIGHTS, "pt")) for path in checkpoints]
        for name in files[0].keys():  # noqa: SIM118 (not a dict)
            weights = [file.get_tensor(name) for file in files]
            # Float64: in float32 the average of equal checkpoints can differ from them.
            total = sum(weight.double() for weight in weights)
            means[name] = (total / len(weights)).to(weights[0].dtype)
    return means
