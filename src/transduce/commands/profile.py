"""`--profile`: where the time of a command went, and what part of the machine's matrix products it used."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from transduce.config.schema import ModelConfig, RunConfig
from transduce.system.journal import say
from transduce.system.profiling import Profile, profiling

if TYPE_CHECKING:
    import torch

UPDATE = "data", "forward", "backward", "optimiser"
TRAIN = "start", *UPDATE, "validation", "checkpoints", "finish"
OWN_SEARCH = "encode", "decode", "search"
TRANSLATE = "start", "files", "text", *OWN_SEARCH


def profiled(wanted: bool, phases: Sequence[str]) -> AbstractContextManager[Profile | None]:
    """A block whose phases are measured, if that is wanted, and told at its end, whatever ends it."""
    return _profiled(phases) if wanted else nullcontext()


@contextmanager
def _profiled(phases: Sequence[str]) -> Iterator[Profile]:
    profile = None
    try:
        with profiling(phases, _synchronize) as profile:
            yield profile
    finally:
        for line in profile.table() if profile else ():
            say(line)


def _synchronize() -> None:
    """Wait for the GPU, if one is in use; what needs no torch goes on without it."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def say_training(profile: Profile, config: RunConfig) -> None:
    """How fast the updates were, if there were any."""
    counts = profile.counts
    if not counts["pairs"]:
        return
    import torch

    from transduce.model.arithmetic import per_target_token

    source_length, target_length = (
        round(counts[side] / counts["pairs"]) for side in ("source tokens", "target tokens")
    )
    each = per_target_token(config.model, source_length, target_length)
    rate = counts["target tokens"] / sum(profile.seconds[name] for name in UPDATE)
    dtype = torch.bfloat16 if config.train.precision == "bfloat16" else torch.float32
    say(f"{rate:,.0f} target tokens/s in updates, {each / 1e6:,.1f} MFLOP each: {_share(each * rate, dtype)}")


def say_search(profile: Profile, models: Sequence[ModelConfig]) -> None:
    """How fast our own search with these models was, if it was used."""
    counts = profile.counts
    if not counts["sentences"]:
        return
    import torch

    from transduce.model.arithmetic import operations

    length = round(counts["source tokens"] / counts["sentences"])
    each = [operations(model, length, length) for model in models]
    needed = sum(counts["sentences"] * one.encode + counts["hypotheses"] * one.decode / length for one in each)
    seconds = sum(profile.seconds[name] for name in OWN_SEARCH)
    say(
        f"{counts['sentences'] / seconds:,.1f} sentences/s in our own search: {_share(needed / seconds, torch.float32)}"
    )


def _share(rate: float, dtype: "torch.dtype") -> str:
    import torch

    from transduce.model.arithmetic import ceiling

    most = ceiling(torch.device("cuda" if torch.cuda.is_available() else "cpu"), dtype)
    kind = str(dtype).removeprefix("torch.")
    return (
        f"{rate / 1e9:,.0f} of the {most / 1e9:,.0f} GFLOP/s that large {kind} products reach here, {rate / most:.0%}."
    )
