"""Count a model's floating-point operations, and measure a machine's floating-point operations per second."""

import time
import warnings
from functools import cache
from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from transduce.config.schema import ModelConfig
from transduce.model.build import build
from transduce.model.recording import recording

MATRIX_SIZE = {"cpu": 2048, "cuda": 8192}  # rows and columns of the matrices that `ceiling` multiplies
MEASURING_SECONDS = 0.5


class Operations(NamedTuple):
    """Floating-point operations of the matrix products in a forward pass."""

    encode: float  # for one source sentence
    decode: float  # for one target sentence


@cache
def operations(model: ModelConfig, source_length: int, target_length: int) -> Operations:
    """Count the operations of a forward pass for a sentence pair with these lengths in tokens."""
    if model.kind != "transformer" or model.experts:
        return _count(model, source_length, target_length, "cpu")  # they compute with values
    for side in ("num_encoder_layers", "num_decoder_layers"):
        if (layers := getattr(model, side)) > 2:  # all layers of a side have the same operations
            shallow = [ModelConfig(**(vars(model) | {side: few})) for few in (1, 2)]
            one, two = (operations(each, source_length, target_length) for each in shallow)
            return Operations(*(first + (layers - 1) * (more - first) for first, more in zip(one, two, strict=True)))
    return _count(model, source_length, target_length, "meta")  # tensors without values, which need no memory


def _count(model: ModelConfig, source_length: int, target_length: int, device: str) -> Operations:
    with torch.device(device):
        network = build(model).eval()
        src, tgt = torch.full((1, source_length), 4), torch.full((1, target_length), 4)
    # The counter misses oneDNN's recurrent layers and fused attention; `recording` makes attention use plain products.
    off = torch.backends.mkldnn.flags(enabled=False, allow_tf32=False)
    with warnings.catch_warnings(action="ignore"), off, recording(), FlopCounterMode(display=False) as counter:
        memory = network.encode(src)
        encode = counter.get_total_flops()
        network.decode(tgt, memory)
    return Operations(encode, counter.get_total_flops() - encode)


def per_target_token(model: ModelConfig, source_length: int, target_length: int) -> float:
    """The operations of a training update per target token, three times those of a forward pass."""
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
