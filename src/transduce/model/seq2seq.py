"""The interface of every translation model: batches of sentences, and operations on its memory and state.

A *row* is one hypothesis. A batch of b sentences with k hypotheses each has b * k rows; the k rows of a
sentence are adjacent. Memory is stored once per sentence, state once per row.

b = sentences, r = rows, h = heads, s = source positions, t = target positions, v = vocabulary.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transduce.config.schema import BOS, EOS, PAD

Ids = Sequence[int] | np.ndarray  # token ids of one sentence, without BOS and EOS
State = Any  # nested tuples and lists of tensors whose first dimension is the row; None: empty


class Memory(NamedTuple):
    """The encoded source, as the decoder layers attend to it."""

    keys_values: list[tuple[Tensor, Tensor]]  # per decoder layer, or one for all: (b, h, s, d_k), (b, h, s, d_v)
    mask: Tensor  # (b, 1, 1, s), True: not padding


class Seq2Seq(nn.Module):
    """p(tgt | src), one token at a time.

    `decode` is the only path through the decoder. Training calls it once with the whole target and no state; search
    calls it token by token, with the state that it returned before.
    """

    max_positions: int | None = None  # maximum length of source and target; None: no limit

    def encode(self, src: Tensor) -> Any:
        """src (b, s) -> memory."""
        raise NotImplementedError

    def decode(self, tgt: Tensor, memory: Any, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        raise NotImplementedError

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """(b, s), (b, t) -> logits (b, t, v)."""
        logits, _ = self.decode(tgt, self.encode(src))
        return logits


def select(tree: Any, index: Tensor) -> Any:
    """Select rows of every tensor in a state, or sentences of a memory."""
    if tree is None:
        return None
    if isinstance(tree, Tensor):
        return tree.index_select(0, index)
    if hasattr(tree, "_fields"):
        return type(tree)(*(select(leaf, index) for leaf in tree))
    return type(tree)(select(leaf, index) for leaf in tree)


def target_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """logits (r, t, v), targets (r, t) -> log-probabilities (r, t) of the targets, in float32."""
    chosen = logits.gather(-1, targets[..., None]).squeeze(-1).float()
    return chosen - torch.logsumexp(logits.float(), dim=-1)


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
