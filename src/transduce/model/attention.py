"""Scaled dot-product attention and its heads (section 3.2 of the paper).

b = sentences, r = rows (hypotheses), h = heads, t = query positions, s = key positions, d = channels per head.
Masks are boolean and True means *may attend*.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ModelConfig
from transduce.model.recording import AttentionMap, active

KeyValues = tuple[Tensor, Tensor]  # (b, h, s, d_k), (b, h, s, d_v)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """softmax(q k^T / sqrt(d_k)) v: q (b, h, t, d_k); k, v (b, h, s, d); mask like (b, h, t, s), or causal."""
    if q.requires_grad and q.device.type == "cpu" and q.dtype != torch.float32 and not dropout:
        # For sentences the gradient of the fused kernel takes up to eight times as long in bfloat16 (torch 2.13).
        return attend_with_weights(q, k, v, mask, causal=causal)[0]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout)


def attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """The same in plain sight, with the weights (b, h, t, s) for plots and for testing `attend`."""
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1)
    if causal:
        mask = causal_mask(q.size(-2), k.size(-2), device=q.device)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def causal_mask(num_new: int, num_keys: int, window: int = 0, device: torch.device | None = None) -> Tensor:
    """(num_new, num_keys): the last num_new of num_keys positions see themselves and the past."""
    query = torch.arange(num_keys - num_new, num_keys, device=device)[:, None]
    key = torch.arange(num_keys, device=device)
    mask = key <= query
    return mask & (query - key < window) if window else mask


class MultiHeadAttention(nn.Module):
    """Keys and values come from `project`, queries from `forward`; who calls decides what is
    self-attention, cached self-attention or attention over the encoder."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d_model, self.num_heads = config.d_model, config.num_heads
        d_k, d_v = config.d_k or d_model // self.num_heads, config.d_v or d_model // self.num_heads
        self.dropout = config.attention_dropout
        self.query = nn.Linear(d_model, self.num_heads * d_k)
        self.key = nn.Linear(d_model, self.num_heads * d_k)
        self.value = nn.Linear(d_model, self.num_heads * d_v)
        self.out = nn.Linear(self.num_heads * d_v, d_model)

    def project(self, x: Tensor) -> KeyValues:
        """x (b, s, d_model) -> keys (b, h, s, d_k) and values (b, h, s, d_v)."""
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(self, x: Tensor, keys_values: KeyValues, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """x (r, t, d_model), keys and values of b sentences, r = b * k -> (r, t, d_model)."""
        k, v = keys_values
        rows, length, _ = x.shape
        batch = k.size(0)
        q = self._split(self.query(x))  # (r, h, t, d_k)
        if rows != batch:  # the rows of a sentence share its keys: queries of one long sequence
            q = q.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)  # (b, h, r/b * t, d_k)
        record = active()
        if record is None:
            y = attend(q, k, v, mask, causal=causal, dropout=self.dropout if self.training else 0.0)
        else:
            y, weights = attend_with_weights(q, k, v, mask, causal=causal)
            record.attention.append(AttentionMap(self, weights))
        if rows != batch:
            y = y.unflatten(2, (-1, length)).transpose(1, 2).flatten(0, 1)  # (r, h, t, d_v)
        return self.out(y.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        """(b, s, h * d) -> (b, h, s, d)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
