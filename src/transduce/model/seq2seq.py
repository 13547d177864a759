"""The interface of translation models, and batches of sentence pairs.

A *row* is one hypothesis. A batch of b sentences with k hypotheses each has b * k rows. The k rows of a sentence
are adjacent. Memory has one entry for each sentence, and state has one entry for each row.

b = sentences, r = rows, h = heads, s = source positions, t = target positions, v = vocabulary.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transduce.config.schema import BOS, EOS, PAD

Ids = Sequence[int] | np.ndarray  # token ids of one sentence, without BOS and EOS
# Nested tuples and lists of tensors whose first dimension is the row; None: no tokens yet.
State = Any


class Memory(NamedTuple):
    """The encoded source, as keys and values for the decoder's attention."""

    # A pair for each decoder layer, or one pair for all layers: (b, h, s, d_k), (b, h, s, d_v).
    keys_values: list[tuple[Tensor, Tensor]]
    mask: Tensor  # (b, 1, 1, s), False at padding
    tag: Tensor | None = None  # (b, 1), which the decoder reads after BOS


class Seq2Seq(nn.Module):
    """A model of p(tgt | src) that predicts one token at a time.

    Training calls `decode` once, with the whole target and no state. A search calls `decode` once per token, with the
    state that the previous call returned.
    """

    max_positions: int | None = None  # maximum length of source and target; None: no limit
    vocab_size: int = 1  # of targets
    # Whether the first token of each source is for the decoder, which reads it between BOS and the translation.
    target_tag: bool = False
    packs: bool = False  # whether `forward` takes a `Packing` as a third argument

    def encode(self, src: Tensor) -> Any:
        """Encode src (b, s) as the memory that `decode` reads."""
        raise NotImplementedError

    def decode(self, tgt: Tensor, memory: Any, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        raise NotImplementedError

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """src (b, s), tgt (b, t) -> logits (b, t, v)."""
        logits, _ = self.decode(tgt, self.encode(src))
        return logits


def select(tree: Any, index: Tensor) -> Any:
    """Select rows of every tensor in a state, or sentences of every tensor in a memory."""
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


class Packing(NamedTuple):
    """Which tokens belong together, if a row of a batch holds several sentences (`packing.py`)."""

    source: Tensor  # (b, s), the number of the sentence; 0 at padding
    target: Tensor  # (b, t)
    source_positions: Tensor  # (b, s), in the sentence, from 0 on
    target_positions: Tensor  # (b, t)

    @property
    def source_mask(self) -> Tensor:
        """Source tokens that each source token attends to, (b, 1, s, s)."""
        return _same(self.source, self.source)

    @property
    def target_mask(self) -> Tensor:
        """Target tokens that each target token attends to, (b, 1, t, t)."""
        return _same(self.target, self.target).tril()

    @property
    def cross_mask(self) -> Tensor:
        """Source tokens that each target token attends to, (b, 1, t, s)."""
        # Padding must attend to something: the softmax of nothing is nan.
        return _same(self.target, self.source) | (self.target == 0)[:, None, :, None]


def _same(queries: Tensor, keys: Tensor) -> Tensor:
    return (queries[:, :, None] == keys[:, None, :])[:, None]


class Batch(NamedTuple):
    """A batch of sentence pairs. The decoder reads tgt_in and learns to predict tgt_out."""

    src: Tensor  # (b, s), EOS last
    tgt_in: Tensor  # (b, t), BOS first
    tgt_out: Tensor  # (b, t), EOS last
    num_tokens: int  # in tgt_out, EOS counted, padding not; losses are divided by this number
    packing: Packing | None = None
    num_pairs: int = 0  # in packed rows

    def to(self, device: torch.device) -> "Batch":
        """A copy on the device. From pinned memory, a GPU copies while the CPU goes on."""

        def copied(tensor: Tensor) -> Tensor:
            if device.type == "cuda":
                tensor = tensor.pin_memory()
            return tensor.to(device, non_blocking=True)

        src, tgt_in, tgt_out = map(copied, self[:3])
        packing = self.packing and Packing(*map(copied, self.packing))
        return Batch(src, tgt_in, tgt_out, self.num_tokens, packing, self.num_pairs)


def pad(rows: Sequence[Ids], *, before: Sequence[int] = (), after: Sequence[int] = ()) -> Tensor:
    """Put the ids `before` and `after` around each row, and pad the rows with PAD to a tensor (b, longest)."""
    ends = len(before) + np.fromiter(map(len, rows), dtype=np.int64)
    padded = np.full((len(rows), ends.max() + len(after)), PAD, dtype=np.int64)
    padded[:, : len(before)] = before
    places = np.arange(padded.shape[1])
    padded[(places >= len(before)) & (places < ends[:, None])] = np.concatenate(rows)
    padded[np.arange(len(rows))[:, None], ends[:, None] + np.arange(len(after))] = after
    return torch.from_numpy(padded)


def source_tensor(sources: Sequence[Ids]) -> Tensor:
    """The padded source ids (b, s) for the encoder, with EOS after each sentence."""
    return pad(sources, after=[EOS])


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """Make a batch from the source and target ids of sentence pairs."""
    num_tokens = sum(map(len, targets)) + len(targets)
    return Batch(
        source_tensor(sources), pad(targets, before=[BOS]), pad(targets, after=[EOS]), num_tokens
    )
