"""What is recorded on the way through a model, without a flag in every signature.

    with recording() as record:
        model(src, tgt)
    record.attention[0].weights        # of the first attention that was computed

Outside such a block, and in other threads, nothing is kept and the fast path is taken.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor, nn


class AttentionMap(NamedTuple):
    """The weights of one attention, in the order of computation."""

    module: nn.Module
    weights: Tensor  # (b, h, t, s)


class Routing(NamedTuple):
    """How a layer of experts spread its tokens, in the order of computation."""

    probabilities: Tensor  # (n, experts), of every token
    chosen: Tensor  # (n, k), experts by number


@dataclass
class Record:
    """All that was recorded."""

    attention: list[AttentionMap] = field(default_factory=list)
    routing: list[Routing] = field(default_factory=list)
    keeps_attention: bool = True  # which costs time: the weights are formed in full

    def of(self, module: nn.Module) -> list[Tensor]:
        """The weights (b, h, t, s) of one attention module, a tensor a call."""
        return [kept.weights for kept in self.attention if kept.module is module]


_active: ContextVar[Record | None] = ContextVar("record", default=None)  # a server's threads share a model


@contextmanager
def recording(*, attention: bool = True) -> Iterator[Record]:
    """Keep what the models compute inside the block: routing, and attention unless it is not wanted."""
    record = Record(keeps_attention=attention)
    before = _active.set(record)
    try:
        yield record
    finally:
        _active.reset(before)


def record_attention(module: nn.Module, weights: Tensor) -> None:
    """Keep weights (b, h, t, s), if that is wanted."""
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
