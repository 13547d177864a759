"""The engine `int8` is the torch engine with 8-bit linear layers on a CPU.

Weights are quantised with one scale per output channel, and activations with one scale per vector.
"""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.torch_engine import open_engine as open_torch
from transduce.decoding.types import ModelToOpen, Refusal
from transduce.model.embedding import Embedding
from transduce.model.seq2seq import Seq2Seq

MAX_INT8 = 127
TRIAL_ROWS, TRIAL_SIDE = 128, 512  # sizes of the products whose speed is measured
TRIALS = 10


class Int8Linear(nn.Module):
    """A linear layer with 8-bit weights: x (…, d) -> x weight^T + bias (…, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        scale = weight.detach().abs().amax(dim=1).clamp(min=1e-8) / MAX_INT8
        # (d, out).
        self.weight = (weight.detach() / scale[:, None]).round().to(torch.int8).t().contiguous()
        self.scale = scale
        self.bias = bias if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        largest = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-6)
        values = (rows * (MAX_INT8 / largest)).round_().to(torch.int8)
        y = torch._int_mm(values, self.weight).float().mul_(largest.mul_(1 / MAX_INT8))
        y = (
            y.mul_(self.scale)
            if self.bias is None
            else torch.addcmul(self.bias, y, self.scale, out=y)
        )
        return y.view(*x.shape[:-1], -1)


class Int8Embedding(Embedding):
    """An embedding that computes logits by a matrix product in 8 bits."""

    def __init__(self, embedding: Embedding):
        super().__init__(*embedding.weight.shape)
        self.weight = embedding.weight
        self.product = Int8Linear(embedding.weight, None)

    def logits(self, x: Tensor) -> Tensor:
        y: Tensor = self.product(x)
        return y


def open_engine(model: ModelToOpen) -> TorchEngine | Refusal:
    """Open the torch engine with 8-bit layers on a CPU; returns a Refusal on a GPU or without a gain in speed."""
    if model.device is not None and str(model.device) != "cpu":
        return Refusal(f"it is for CPUs, not for {model.device}")
    if not is_exact():
        return Refusal("this processor has no exact 8-bit products")
    if not is_faster():
        return Refusal("8-bit products are no faster than 32-bit products on this processor")
    return open_torch(model._replace(device="cpu"), name="torch, int8", transform=quantise)


def quantise(model: Seq2Seq) -> Seq2Seq:
    """Replace the linear layers and the embeddings of a model by 8-bit layers for inference."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            # With 1, torch 2.13 returns garbage.
            if isinstance(child, nn.Linear) and child.in_features > 1:
                setattr(module, name, Int8Linear(child.weight, child.bias))
            elif isinstance(child, Embedding):
                setattr(module, name, Int8Embedding(child))
    return model


@torch.inference_mode()
def is_exact() -> bool:
    """Whether 8-bit matrix products are exact: on processors without VNNI, oneDNN's sums overflow 16 bits."""
    largest = torch.full((TRIAL_ROWS, TRIAL_SIDE), MAX_INT8, dtype=torch.int8)
    try:
        return bool(
            (torch._int_mm(largest, largest.t().contiguous()) == TRIAL_SIDE * MAX_INT8**2).all()
        )
    except (AttributeError, RuntimeError):  # torch has no 8-bit product on this machine
        return False


@torch.inference_mode()
def is_faster() -> bool:
    """Measure whether 8-bit matrix products are faster than 32-bit products on this processor."""
    x = torch.ones(TRIAL_ROWS, TRIAL_SIDE)
    weight = torch.ones(TRIAL_SIDE, TRIAL_SIDE)
    product = Int8Linear(weight, None)
    seconds: list[tuple[float, float]] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # only this thread's time is measured
    try:
        for _ in range(TRIALS):
            seconds.append(
                (
                    _seconds(lambda: product(x.clone())),
                    _seconds(lambda: F.linear(x.clone(), weight)),
                )
            )
    finally:
        torch.set_num_threads(threads)
    in_8_bits, in_32_bits = map(min, zip(*seconds, strict=True))
    return in_8_bits < in_32_bits


def _seconds(run: Callable[[], Tensor]) -> float:
    began = time.thread_time()
    run()
    return time.thread_time() - began
