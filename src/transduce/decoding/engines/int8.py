"""Matrix products in 8 bits, put into a finished model from outside: for our own search of any family on a CPU.

Weights are rounded once, with a scale for every output channel; activations as they come, with a scale for every row,
so that what else is in a batch changes nothing. Sums are exact, in 32 bits.
"""

import threading
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model.embedding import Embedding
from transduce.model.seq2seq import Seq2Seq

LARGEST = 127
ROWS, SIDE = 128, 512  # of the products by which speed is judged


class _Rounding(threading.local):
    """The last activations that were rounded in a thread: query, key and value are projected from the same ones."""

    x: Tensor | None = None
    rounded: tuple[Tensor, Tensor]

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, d) -> (rows, d) in 8 bits and the scale (rows, 1) of each."""
        if self.x is not x:
            rows = x.flatten(0, -2)
            largest = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-6)
            values = (rows * (LARGEST / largest)).round_().to(torch.int8)
            self.x, self.rounded = x, (values, largest.mul_(1 / LARGEST))
        return self.rounded


class _Product(nn.Module):
    """x (…, d) -> x weight^T + bias (…, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rounding: _Rounding):
        super().__init__()
        scale = weight.detach().abs().amax(dim=1).clamp(min=1e-8) / LARGEST
        self.weight = (weight.detach() / scale[:, None]).round().to(torch.int8).t().contiguous()  # (d, out)
        self.scale, self.bias, self._rounding = scale, bias if bias is None else bias.detach(), rounding

    def forward(self, x: Tensor) -> Tensor:
        values, scale = self._rounding(x)
        y = torch._int_mm(values, self.weight).float().mul_(scale)
        y = y.mul_(self.scale) if self.bias is None else torch.addcmul(self.bias, y, self.scale, out=y)
        return y.view(*x.shape[:-1], -1)


class _Predicting(Embedding):
    """An embedding whose product with all tokens is in 8 bits."""

    def __init__(self, embedding: Embedding, rounding: _Rounding):
        super().__init__(*embedding.weight.shape)
        self.weight = embedding.weight
        self.product = _Product(embedding.weight, None, rounding)

    def logits(self, x: Tensor) -> Tensor:
        y: Tensor = self.product(x)
        return y


def quantise(model: Seq2Seq) -> Seq2Seq:
    """The same model, which can't be trained any more, with all its linear layers in 8 bits."""
    rounding = _Rounding()
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear) and child.in_features > 1:  # of one, torch 2.13 returns what was in memory
                setattr(module, name, _Product(child.weight, child.bias, rounding))
            elif isinstance(child, Embedding):
                setattr(module, name, _Predicting(child, rounding))
    return model


@torch.inference_mode()
def is_faster() -> bool:
    """Whether this processor, and this torch, are faster with 8 bits than with 32, whatever else they have to do."""
    x, weight = torch.ones(ROWS, SIDE), torch.ones(SIDE, SIDE)
    product = _Product(weight, None, _Rounding())
    seconds: list[tuple[float, float]] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # whose own time can be told
    try:
        for _ in range(10):
            seconds.append((_seconds(lambda: product(x.clone())), _seconds(lambda: F.linear(x.clone(), weight))))
    except (AttributeError, RuntimeError):  # it can't
        return False
    finally:
        torch.set_num_threads(threads)
    with_8, with_32 = map(min, zip(*seconds, strict=True))
    return with_8 < with_32


def _seconds(run: Callable[[], Tensor]) -> float:
    """Of this thread on a processor."""
    began = time.thread_time()
    run()
    return time.thread_time() - began
