"""Record attention weights and the routing of experts during a forward pass, without a flag in every signature.

    with recording() as record:
        model(src, tgt)
    record.attention[0].weights        # of the attention computed first

Outside such a block, and in other threads, nothing is recorded and attention takes the fast path.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
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


@dataclass
class Record:
    """Everything recorded, in the order of computation."""

    attention: list[AttentionMap] = field(default_factory=list)
    routing: list[Routing] = field(default_factory=list)
    keeps_attention: bool = True  # slower: the weights are formed in full

    def of(self, module: nn.Module) -> list[Tensor]:
        """The weights (b, h, t, s) of one attention module, one tensor per call."""
        return [recorded.weights for recorded in self.attention if recorded.module is module]


_active: ContextVar[Record | None] = ContextVar("record", default=None)  # a server's threads share a model


@contextmanager
def recording(*, attention: bool = True) -> Iterator[Record]:
    """Record routing and, unless switched off, attention of the models that run inside the block."""
    record = Record(keeps_attention=attention)
    before = _active.set(record)
    try:
        yield record
    finally:
        _active.reset(before)


def record_attention(module: nn.Module, weights: Tensor) -> None:
    """Record weights (b, h, t, s), if attention is recorded here."""
    record = _active.get()
    if record is not None and record.keeps_attention:
        record.attention.append(AttentionMap(module, weights))


def records_attention() -> bool:
    """Whether the weights of attention are recorded here, so that they must be formed in full."""
    record = _active.get()
    return record is not None and record.keeps_attention


def active() -> Record | None:
    """The record of the surrounding block, if there is one."""
    return _active.get()
