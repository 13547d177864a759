"""The interface of every translation model, and operations on its memory and state.

A *row* is one hypothesis. A batch of b sentences with k hypotheses each has b * k rows; the k rows of a
sentence are adjacent. Memory is stored once per sentence, state once per row.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

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
