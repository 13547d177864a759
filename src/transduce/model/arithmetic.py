"""How many operations a model needs, and how many a machine can do."""

import time
import warnings
from functools import cache
from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from transduce.config.schema import ModelConfig
from transduce.model.build import build
from transduce.model.recording import recording

SIDE = 2048  # of the matrices that a machine is measured with
SECONDS = 0.5


class Operations(NamedTuple):
    """Floating-point operations of the matrix products of a forward pass."""

    encode: float  # of a source sentence
    decode: float  # of a target sentence


@cache
def operations(model: ModelConfig, source_length: int, target_length: int) -> Operations:
    """Of one sentence pair, by counting; lengths in tokens. The backward pass of a training needs twice as many."""
    network = build(model).eval()
    src = torch.full((1, source_length), 4)
    tgt = torch.full((1, target_length), 4)
    # The counter knows neither oneDNN's recurrent layers nor fused attention; recording takes the plain path.
    off = torch.backends.mkldnn.flags(enabled=False, allow_tf32=False)
    with warnings.catch_warnings(action="ignore"), off, recording(), FlopCounterMode(display=False) as counter:
        memory = network.encode(src)
        encode = counter.get_total_flops()
        network.decode(tgt, memory)
    return Operations(encode, counter.get_total_flops() - encode)


def per_target_token(model: ModelConfig, source_length: int, target_length: int) -> float:
    """Operations of an update: forward, and twice as much backward; matrix products alone."""
    return 3 * sum(operations(model, source_length, target_length)) / target_length


@torch.inference_mode()
def ceiling(device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of large matrix products, with torch's threads: what nothing can be faster than."""
    a, b = (torch.rand(SIDE, SIDE, device=device).to(dtype) for _ in range(2))
    best = 0.0
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        torch.mm(a, b)
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = max(best, 2 * SIDE**3 / (time.perf_counter() - began))
    return best
