"""Record attention weights and expert routing during a forward pass.

    with recording() as record:
        model(src, tgt)
    record.attention[0].weights        # weights of the first attention module

Only calls in the current thread are recorded. Attention is slower while its weights are recorded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from torch import Tensor, nn


class AttentionMap(NamedTuple):
    """The attention weights of one call of a module."""

    module: nn.Module
    weights: Tensor  # (b, h, t, s)


class Routing(NamedTuple):
    """The k experts that an expert layer chose for each of n tokens in one call."""

    chosen: Tensor  # (n, k), indices of experts
    balance_loss: Tensor  # 0-dimensional; small if the experts get equally many tokens


class Record(NamedTuple):
    """Everything that a `with recording()` block recorded, in the order of computation."""

    attention: list[AttentionMap]
    routing: list[Routing]

    def of(self, module: nn.Module) -> list[Tensor]:
        """The weights (b, h, t, s) of one attention module, one tensor per call."""
        return [recorded.weights for recorded in self.attention if recorded.module is module]


# The lists that models record to; None: no recording. Context variables, because a server's threads share models.
attention_record: ContextVar[list[AttentionMap] | None] = ContextVar("attention", default=None)
routing_record: ContextVar[list[Routing] | None] = ContextVar("routing", default=None)


@contextmanager
def recording(*, attention: bool = True) -> Iterator[Record]:
    """Record expert routing and, unless `attention` is false, attention weights."""
    record = Record([], [])
    before = (
        attention_record.set(record.attention if attention else None),
        routing_record.set(record.routing),
    )
    try:
        yield record
    finally:
        attention_record.reset(before[0])
        routing_record.reset(before[1])


def record_attention(module: nn.Module, weights: Tensor) -> None:
    """Add a module's attention weights (b, h, t, s) to the current recording, if there is one."""
    maps = attention_record.get()
    if maps is not None:
        maps.append(AttentionMap(module, weights))
