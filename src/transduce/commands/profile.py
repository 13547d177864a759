"""The option `--profile` measures a command's time in each phase and, with the lab, its FLOP/s."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from transduce.config.commands import option
from transduce.system.console import log
from transduce.system.errors import NotInstalledError
from transduce.system.profiling import Profile, profiling

UPDATE_PHASES = "data", "forward", "backward", "optimiser"
TRAIN_PHASES = "start", *UPDATE_PHASES, "validation", "checkpoints", "finish"
SEARCH_PHASES = "encode", "decode", "search"  # phases of the torch engine
TRANSLATE_PHASES = "start", "files", "text", *SEARCH_PHASES


@contextmanager
def profiled(phases: Sequence[str]) -> Iterator[Profile]:
    """Time the phases of a `with` block, and print the times even after an error."""
    try:
        with profiling(phases, _synchronize) as profile:
            yield profile
    finally:
        for line in profile.table():
            log(line)


def _synchronize() -> None:
    """Wait until the GPU has finished its work; does nothing if torch is not loaded or uses no GPU."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def print_speed(command: str, profile: Profile, models: Any) -> None:
    """Print the FLOP/s of `train` or of the torch engine, if the lab is installed to count them."""
    with suppress(NotInstalledError):
        option(f"{command} --profile")(profile, models)
