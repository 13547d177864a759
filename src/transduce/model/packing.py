"""Packs several sentence pairs into each row of a batch, so that all batches of a training have one shape.

A row has as many source as target positions. Attention stays within sentences, and positions restart with each, so that
the loss and its gradient are those of padded batches. Compilers for a GPU want one shape; a CPU gains nothing.

r = rows, w = width of a row, n = sentence pairs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.config.schema import BOS, EOS
from transduce.model.seq2seq import Batch, Ids, Packing

Places = NDArray[np.int64]


def pack(sources: Sequence[Ids], targets: Sequence[Ids], width: int, rows: int) -> Batch:
    """Make a batch of `rows` rows of `width` positions on each side from sentence pairs, in their order.

    Raises ValueError if they need more rows.
    """
    lengths = np.array([[*map(len, sources)], [*map(len, targets)]]) + 1  # with EOS
    rows_of, columns = places(lengths, width)
    if rows_of[-1] >= rows:
        raise ValueError(f"the sentences need {rows_of[-1] + 1} rows, but the batch has {rows}")
    firsts = rows_of * width + columns
    source = _Side(firsts[0], lengths[0], (rows, width))
    target = _Side(firsts[1], lengths[1], (rows, width))
    return Batch(
        source.filled([part for ids in sources for part in (ids, [EOS])]),
        target.filled([part for ids in targets for part in ([BOS], ids)]),
        target.filled([part for ids in targets for part in (ids, [EOS])]),
        int(lengths[1].sum()),
        Packing(source.numbers, target.numbers, source.positions, target.positions),
        len(sources),
    )


def places(lengths: Places, width: int) -> tuple[Places, Places]:
    """The row (n) and the first columns (2, n) of each pair, by the lengths (2, n) of both sides."""
    rows = np.zeros(lengths.shape[1], dtype=np.int64)
    columns = np.zeros_like(lengths)
    row = 0
    used = [0, 0]
    for i, (source, target) in enumerate(lengths.T.tolist()):
        if max(used[0] + source, used[1] + target) > width:
            row += 1
            used = [0, 0]
        rows[i] = row
        columns[:, i] = used
        used = [used[0] + source, used[1] + target]
    return rows, columns


class _Side:
    """The places of one side's tokens in a batch."""

    def __init__(self, firsts: Places, lengths: Places, shape: tuple[int, int]) -> None:
        """`firsts` (n) are the places of the first tokens, counted through all rows."""
        self._shape = shape
        positions = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self._places = np.repeat(firsts, lengths) + positions
        self.positions = self._spread(positions)
        self.numbers = self._spread(np.repeat(np.arange(1, len(lengths) + 1), lengths))

    def filled(self, parts: Sequence[Ids]) -> Tensor:
        """The ids of all sentences (r, w), with PAD = 0 elsewhere."""
        return self._spread(np.concatenate(parts))

    def _spread(self, values: Places) -> Tensor:
        spread = np.zeros(self._shape, dtype=np.int64)
        spread.flat[self._places] = values
        return torch.from_numpy(spread)
