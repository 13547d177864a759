"""Sentences as tensors. b = sentences, s = source positions, t = target positions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD

Ids = Sequence[int] | np.ndarray  # token ids of one sentence, without BOS and EOS


class Batch(NamedTuple):
    """Sentence pairs: the decoder reads tgt_in and learns to predict tgt_out."""

    src: Tensor  # (b, s), EOS last
    tgt_in: Tensor  # (b, t), BOS first
    tgt_out: Tensor  # (b, t), EOS last
    num_tokens: int  # of tgt_out, without padding, with EOS: what losses are divided by

    def to(self, device: torch.device) -> "Batch":
        """Copy the batch to a device."""
        src, tgt_in, tgt_out = (tensor.to(device, non_blocking=True) for tensor in self[:3])
        return Batch(src, tgt_in, tgt_out, self.num_tokens)


def pad(rows: Sequence[Ids], *, before: Sequence[int] = (), after: Sequence[int] = ()) -> Tensor:
    """Rows of ids -> (b, longest): each row between `before` and `after`, padded with PAD."""
    extra = len(before) + len(after)
    padded = np.full((len(rows), max(map(len, rows)) + extra), PAD, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row) + extra] = np.concatenate((before, row, after))
    return torch.from_numpy(padded)


def source_tensor(sources: Sequence[Ids]) -> Tensor:
    """Source ids as the encoder reads them: (b, s), EOS last."""
    return pad(sources, after=[EOS])


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """A training batch of the source and target ids of the same sentences."""
    num_tokens = sum(map(len, targets)) + len(targets)
    return Batch(source_tensor(sources), pad(targets, before=[BOS]), pad(targets, after=[EOS]), num_tokens)
