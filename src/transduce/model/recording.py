"""Record attention weights and the routing of experts during a forward pass, without a flag in every signature.

    with recording() as record:
        model(src, tgt)
    record.attention[0].weights        # of the attention computed first

Outside such a block, and in other threads, nothing is recorded and attention takes the fast path.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from torch import Tensor, nn


class AttentionMap(NamedTuple):
    """The weights of one attention call."""

    module: nn.Module
    weights: Tensor  # (b, h, t, s)


class Routing(NamedTuple):
    """How a layer of experts distributed its tokens in one call."""

    probabilities: Tensor  # (n, experts)
    chosen: Tensor  # (n, k), indices of experts


class Record(NamedTuple):
    """Everything recorded, in the order of computation."""

    attention: list[AttentionMap]
    routing: list[Routing]

    def of(self, module: nn.Module) -> list[Tensor]:
        """The weights (b, h, t, s) of one attention module, one tensor per call."""
        return [recorded.weights for recorded in self.attention if recorded.module is module]


# Where models record, if anywhere. Context variables, because a server's threads share a model.
attention_record: ContextVar[list[AttentionMap] | None] = ContextVar("attention", default=None)
routing_record: ContextVar[list[Routing] | None] = ContextVar("routing", default=None)


@contextmanager
def recording(*, attention: bool = True) -> Iterator[Record]:
    """Record routing and, unless switched off, attention, which is slower when its weights are formed in full."""
    record = Record([], [])
    before = attention_record.set(record.attention if attention else None), routing_record.set(record.routing)
    try:
        yield record
    finally:
        attention_record.reset(before[0])
        routing_record.reset(before[1])


def record_attention(module: nn.Module, weights: Tensor) -> None:
    """Record weights (b, h, t, s), if attention is recorded here."""
    maps = attention_record.get()
    if maps is not None:
        maps.append(AttentionMap(module, weights))
