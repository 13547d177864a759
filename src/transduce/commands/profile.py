"""The option `--profile` measures a command's time in each phase and its FLOP/s."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transduce.config.schema import ModelConfig, RunConfig
from transduce.system.console import log
from transduce.system.profiling import Profile, profiling

if TYPE_CHECKING:
    import torch

UPDATE_PHASES = "data", "forward", "backward", "optimiser"
TRAIN_PHASES = "start", *UPDATE_PHASES, "validation", "checkpoints", "finish"
SEARCH_PHASES = "encode", "decode", "search"  # of the torch engine
TRANSLATE_PHASES = "start", "files", "text", *SEARCH_PHASES


@contextmanager
def profiled(phases: Sequence[str]) -> Iterator[Profile]:
    """Time the phases of a `with` block, and print the times even after an error."""
    with profiling(phases, _synchronize) as profile:
        try:
            yield profile
        finally:
            profile.charge()
            for line in profile.table():
                log(line)


def _synchronize() -> None:
    """Wait until the GPU has finished its work; does nothing if torch is not loaded or uses no GPU."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def print_training_speed(profile: Profile, config: RunConfig) -> None:
    """Print the speed of a training run; print nothing if it made no updates, or drew samples, which aren't counted."""
    counts = profile.counts
    if not counts["pairs"] or config.train.risk_steps:
        return
    import torch

    from transduce.model.arithmetic import per_target_token
    from transduce.training.objectives import num_passes

    source_length, target_length = (
        round(counts[side] / counts["pairs"]) for side in ("source tokens", "target tokens")
    )
    each = per_target_token(config.model, source_length, target_length) * num_passes(config.train)
    rate = counts["target tokens"] / sum(profile.seconds[name] for name in UPDATE_PHASES)
    dtype = torch.bfloat16 if config.train.precision == "bfloat16" else torch.float32
    log(f"{rate:,.0f} target tokens/s in updates, {each / 1e6:,.1f} MFLOP per token: {_share(each * rate, dtype)}")


def print_search_speed(profile: Profile, models: Sequence[ModelConfig]) -> None:
    """Print the translation speed of the torch engine; print nothing if the engine was not used."""
    counts = profile.counts
    if not counts["sentences"]:
        return
    import torch

    from transduce.model.arithmetic import operations

    length = round(counts["source tokens"] / counts["sentences"])
    each = [operations(model, length, length) for model in models]
    needed = sum(counts["sentences"] * one.encode + counts["hypotheses"] * one.decode / length for one in each)
    seconds = sum(profile.seconds[name] for name in SEARCH_PHASES)
    rate = counts["sentences"] / seconds
    log(f"{rate:,.1f} sentences/s with the torch engine: {_share(needed / seconds, torch.float32)}")


def _share(rate: float, dtype: "torch.dtype") -> str:
    from transduce.model.arithmetic import ceiling
    from transduce.model.device import choose_device

    limit = ceiling(choose_device(), dtype)
    kind = str(dtype).removeprefix("torch.")
    return f"{rate / 1e9:,.0f} of the {limit / 1e9:,.0f} GFLOP/s of large {kind} matrix products, {rate / limit:.0%}."
