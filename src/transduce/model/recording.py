"""What is recorded on the way through a model, without a flag in every signature.

    with recording() as record:
        model(src, tgt)
    record.attention[0].weights        # of the first attention that was computed

Outside such a block nothing is kept and the fast path is taken.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor, nn


class AttentionMap(NamedTuple):
    """The weights of one attention, in the order of computation."""

    module: nn.Module
    weights: Tensor  # (b, h, t, s)


@dataclass
class Record:
    """All that was recorded."""

    attention: list[AttentionMap] = field(default_factory=list)

    def of(self, module: nn.Module) -> list[Tensor]:
        """The weights (b, h, t, s) of one attention module, a tensor a call."""
        return [kept.weights for kept in self.attention if kept.module is module]


_active: Record | None = None


@contextmanager
def recording() -> Iterator[Record]:
    """Keep what the models compute inside the block."""
    global _active
    before, _active = _active, Record()
    try:
        yield _active
    finally:
        _active = before


def active() -> Record | None:
    """The record of the block that we are in, if any."""
    return _active
