"""Saves, loads and deletes checkpoints with the weights, the optimizer state and the progress of a training run."""

import dataclasses
import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transduce.model.build import load_weights
from transduce.model_folder import WEIGHTS, checkpoints_in, step_of
from transduce.system.errors import DamagedError
from transduce.system.files import read_manifest, verify, write_folder
from transduce.training.distributed import ALONE, Ranks, full_tensor, shard_like
from transduce.training.update import AVERAGE

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
VALUE = "value"  # key of a low-rank update in OPTIMIZER


@dataclass
class TrainState:
    """The progress of a training run, as saved in a checkpoint."""

    step: int = 0  # updates made
    epoch: int = 0
    block: int = 0  # finished blocks of this epoch
    position: int = 0  # updates made in this block
    tokens_seen: int = 0  # target tokens
    seconds: float = 0.0  # time of training and validation, counted across restarts
    best: float | None = None  # lowest Validation.cost
    best_step: int = 0
    stale: int = 0  # validations since the best one
    skipped: int = 0  # consecutive updates, up to now, whose loss or gradient was not finite
    journal_size: int = 0  # bytes of the journal at this position
    loss: float = 0.0  # this and the next three fields are sums since the last journal line
    nll: float = 0.0
    correct: float = 0.0
    num_tokens: int = 0
    limits: str = ""  # see training.schedule.limits
    # Options of the schedule that follow the clock, with their values.
    schedule: dict[str, Any] = field(default_factory=dict)
    # Later values of `schedule`, by step, that a resumed training repeats.
    recorded: dict[str, dict[str, Any]] = field(default_factory=dict)
    update_seconds: float = 0.0  # duration of a recent update
    validation_seconds: float = 0.0  # duration of the last validation
    saving_seconds: float = 0.0  # time to save the last checkpoint


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    ranks: Ranks = ALONE,
) -> Path:
    """Write a checkpoint to `folder`/step-00001234 unless it exists, and return its path (collective call)."""
    path = folder / f"step-{state.step:08d}"
    if ranks.agree(path.exists()):
        return path
    weights = _full_tensors(model.state_dict(), ranks)
    moments = _full_tensors(_optimizer_tensors(model, optimizer), ranks)
    moments |= _full_tensors(
        {f"{name}/{VALUE}": weight for name, weight in _updates(model).items()}, ranks
    )
    if ranks.first:
        needed = sum(tensor.nbytes for tensor in [*weights.values(), *moments.values()])
        with write_folder(path, needed) as staging:
            save_file(weights, staging / WEIGHTS)
            save_file(moments, staging / OPTIMIZER)
            (staging / STATE).write_text(
                json.dumps(dataclasses.asdict(state), indent=1), encoding="utf-8"
            )
    ranks.agree(None)
    return path


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainState:
    """Restore weights, optimizer state and progress. Raises UserError if a file is damaged."""
    verify(path, hashes=True)
    if missing := {WEIGHTS, OPTIMIZER, STATE} - read_manifest(path).keys():
        raise DamagedError(f"{path} is no checkpoint: it has no {min(missing)}.")
    # Later weights contain the low-rank updates.
    first = path.with_name("step-00000000") if _updates(model) else path
    load_weights(model, first / WEIGHTS)
    _restore_optimizer(model, optimizer, load_file(path / OPTIMIZER))
    return TrainState(**json.loads((path / STATE).read_text(encoding="utf-8")))


def moving_average(path: Path) -> dict[str, Tensor]:
    """The moving average of the weights in a checkpoint of a training run with train.ema."""
    verify(path, hashes=True)
    averages = load_file(path / OPTIMIZER)
    return {
        name: averages.get(f"{name}/{AVERAGE}", weight)
        for name, weight in load_file(path / WEIGHTS).items()
    }


def regular(folder: Path, save_every: int) -> list[Path]:
    """The checkpoints whose step is a multiple of `save_every`, and the newest checkpoint."""
    paths = checkpoints_in(folder)
    return [path for path in paths if step_of(path) % save_every == 0 or path == paths[-1]]


def remove_old(folder: Path, save_every: int, keep_last: int, steps: Collection[int]) -> None:
    """Delete all checkpoints except those at `steps` and the last `keep_last` regular checkpoints."""
    kept = regular(folder, save_every)[-keep_last:]
    for path in checkpoints_in(folder):
        if path not in kept and step_of(path) not in steps:
            shutil.rmtree(path)


def _full_tensors(tensors: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """Gather full tensors on the CPU of rank 0 (collective call), and return an empty dictionary on other ranks."""
    full = {}
    for name, tensor in tensors.items():
        value = full_tensor(tensor.detach())
        if ranks.first:
            full[name] = value.cpu().contiguous()
    return full


def _updates(model: nn.Module) -> dict[str, Tensor]:
    """The low-rank updates of a model, which its weights contain (train.low_rank); empty for other models."""
    known = model.state_dict()
    return {name: weight for name, weight in model.named_parameters() if name not in known}


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    names = {weight: name for name, weight in model.named_parameters()}
    return {
        f"{names[weight]}/{key}": value
        for weight, values in cast(dict[nn.Parameter, dict[str, Any]], optimizer.state).items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }


def _restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    numbers = {name: number for number, (name, _) in enumerate(model.named_parameters())}
    # May be sharded.
    parameters = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        weight, key = name.rsplit("/", 1)
        own = parameters[numbers[weight]]
        if key == VALUE:
            own.data.copy_(value)
            continue
        state.setdefault(numbers[weight], {})[key] = (
            shard_like(value, own) if value.shape == own.shape else value
        )
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )
