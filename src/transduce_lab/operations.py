"""Count a model's floating-point operations, and measure a machine's floating-point operations per second."""

import time
import warnings
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from transduce.commands.profile import SEARCH_PHASES, UPDATE_PHASES
from transduce.config.schema import ModelConfig, RunConfig
from transduce.model.build import build
from transduce.model.device import choose_device
from transduce.model.recording import recording
from transduce.system.console import log
from transduce.system.profiling import Profile

# Rows and columns of the matrices that `ceiling` multiplies.
MATRIX_SIZE = {
    "cpu": 2048,
    "cuda": 8192,
}
MEASURING_SECONDS = 0.5


class Operations(NamedTuple):
    """Floating-point operations of the matrix products in a forward pass."""

    encode: float  # operations for one source sentence
    decode: float  # operations for one target sentence


@cache
def operations(model: ModelConfig, source_length: int, target_length: int) -> Operations:
    """Count the operations of a forward pass for a sentence pair with these lengths in tokens."""
    # Tensors without values need no memory. The lab's models need tensors with values.
    has_values = model.kind != "transformer" or bool(model.more)
    with torch.device("cpu" if has_values else "meta"):
        network = build(model).eval()
        src = torch.full((1, source_length), 4)
        tgt = torch.full((1, target_length), 4)
    # The counter misses oneDNN's recurrent layers and fused attention; `recording` makes attention use plain products.
    off = torch.backends.mkldnn.flags(enabled=False, allow_tf32=False)
    with (
        warnings.catch_warnings(action="ignore"),
        off,
        recording(),
        FlopCounterMode(display=False) as counter,
    ):
        memory = network.encode(src)
        encode = counter.get_total_flops()
        network.decode(tgt, memory)
    return Operations(encode, counter.get_total_flops() - encode)


def per_target_token(model: ModelConfig, source_length: int, target_length: int) -> float:
    """The operations of a training update per target token: three times the operations of a forward pass."""
    return 3 * sum(operations(model, source_length, target_length)) / target_length


@torch.inference_mode()
def ceiling(device: torch.device, dtype: torch.dtype) -> float:
    """Measure a device's maximum operations per second on large matrix products."""
    size = MATRIX_SIZE[device.type]
    a, b = (torch.rand(size, size, device=device).to(dtype) for _ in range(2))
    best = 0.0
    end = time.perf_counter() + MEASURING_SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        torch.mm(a, b)
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best


def print_training_speed(profile: Profile, config: RunConfig) -> None:
    """Print the speed of a training run; print nothing if it made no updates, or drew samples, which aren't counted."""
    counts = profile.counts
    if not counts["pairs"] or config.train.risk_steps:
        return
    source_length, target_length = (
        round(counts[side] / counts["pairs"]) for side in ("source tokens", "target tokens")
    )
    each = per_target_token(config.model, source_length, target_length)
    rate = counts["target tokens"] / sum(profile.seconds[name] for name in UPDATE_PHASES)
    dtype = torch.bfloat16 if config.train.precision == "bfloat16" else torch.float32
    log(
        f"{rate:,.0f} target tokens/s in updates, {each / 1e6:,.1f} MFLOP per token: {_share(each * rate, dtype)}"
    )


def print_search_speed(profile: Profile, models: Sequence[ModelConfig]) -> None:
    """Print the translation speed of the torch engine; print nothing if the engine was not used."""
    counts = profile.counts
    if not counts["sentences"]:
        return
    length = round(counts["source tokens"] / counts["sentences"])
    each = [operations(model, length, length) for model in models]
    needed = sum(
        counts["sentences"] * one.encode + counts["hypotheses"] * one.decode / length
        for one in each
    )
    seconds = sum(profile.seconds[name] for name in SEARCH_PHASES)
    rate = counts["sentences"] / seconds
    log(f"{rate:,.1f} sentences/s with the torch engine: {_share(needed / seconds, torch.float32)}")


def _share(rate: float, dtype: torch.dtype) -> str:
    limit = ceiling(choose_device(), dtype)
    kind = str(dtype).removeprefix("torch.")
    return f"{rate / 1e9:,.0f} of the {limit / 1e9:,.0f} GFLOP/s of large {kind} matrix products, {rate / limit:.0%}."
