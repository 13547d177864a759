"""Scaled dot-product attention and multi-head attention (section 3.2 of the paper).

b = sentences, r = rows (hypotheses), h = heads, t = query positions, s = key positions, d = channels of a head.
Masks are boolean: True where a query may attend to a key. Faster ways to compute what this file describes are in
`kernels.py`.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.families import DOT_PRODUCTS, make_part
from transduce.config.schema import ModelConfig
from transduce.model.embedding import RotaryPositions
from transduce.model.kernels import attend_by_sentence, prefers_fused_attention
from transduce.model.recording import record_attention

# Keys (b, g, s, d_k), values (b, g, s, d_v) of g = h heads, or fewer.
KeyValues = tuple[Tensor, Tensor]


def dot_products(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """Compute the products q k^T scale: q (b, h, t, d_k), k (b, h, s, d_k) -> (b, h, t, s)."""
    return (q * (1 / math.sqrt(q.size(-1)) if scale is None else scale)) @ k.transpose(-2, -1)


def attend_with_scores(
    scores: Tensor, v: Tensor, mask: Tensor | None = None, *, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Compute softmax(scores) v: scores (b, h, t, s), v (b, h, s, d) -> output (b, h, t, d), weights (b, h, t, s).

    `mask` broadcasts to (b, h, t, s).
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return F.dropout(weights, dropout) @ v, weights


def causal_mask(t: int, s: int, device: torch.device | None = None) -> Tensor:
    """A causal mask (t, s) for queries at the last t of s positions."""
    return torch.arange(s, device=device) <= torch.arange(s - t, s, device=device)[:, None]


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2).

    `project` computes the keys and values that `forward` attends to. With model.num_kv_heads, several query heads share
    a head of keys and values: multi-query attention (Shazeer, 2019) if there is one, otherwise grouped-query attention
    (Ainslie et al., 2023).
    """

    fused = True  # whether torch's fused kernel can be used; False if `scores` are not dot products

    def __init__(self, config: ModelConfig, *, rotary: bool = False):
        """If `rotary` is true, queries and keys are rotated by their positions."""
        super().__init__()
        d_model = config.d_model
        self.num_heads = config.num_heads
        self.num_kv_heads = config.num_kv_heads or self.num_heads
        d_k = config.d_k or d_model // self.num_heads
        d_v = config.d_v or d_model // self.num_heads
        self.positions = RotaryPositions(d_k) if rotary else None
        self.dropout = config.attention_dropout
        self.scale = 1.0 if config.attention == "dot" else None  # None: 1 / sqrt(d_k)
        self.query = nn.Linear(d_model, self.num_heads * d_k, bias=config.bias)
        self.key = nn.Linear(d_model, self.num_kv_heads * d_k, bias=config.bias)
        self.value = nn.Linear(d_model, self.num_kv_heads * d_v, bias=config.bias)
        self.out = nn.Linear(self.num_heads * d_v, d_model, bias=config.bias)

    def project(self, x: Tensor, start: int = 0) -> KeyValues:
        """x (b, s, d_model) at positions from `start` on -> keys (b, g, s, d_k), values (b, g, s, d_v) of g heads."""
        keys = self._split(self.key(x), self.num_kv_heads)
        return self._rotated(keys, start), self._split(self.value(x), self.num_kv_heads)

    def forward(
        self, x: Tensor, keys_values: KeyValues, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """x (r, t, d_model) attends to keys and values of b sentences with r / b rows each -> (r, t, d_model).

        `mask` broadcasts to (b, h, t, s). If `causal` is true, a causal mask for the last t of s positions replaces it.
        """
        k, v = keys_values
        # (r, h, t, d_k).
        q = self._rotated(self._split(self.query(x), self.num_heads), k.size(2) - x.size(1))
        if self.num_kv_heads != self.num_heads:
            share = self.num_heads // self.num_kv_heads
            k = k.repeat_interleave(share, dim=1)
            v = v.repeat_interleave(share, dim=1)
        y = attend_by_sentence(self.attend, q, k, v, mask, causal)  # (r, h, t, d_v)
        return self.out(y.transpose(1, 2).flatten(2))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend in each head. q (b, h, t, d_k), k (b, h, s, d_k), v (b, h, s, d_v) -> (b, h, t, d_v)."""
        t = q.size(2)
        s = k.size(2)
        dropout = self.dropout if self.training else 0.0
        if causal and t == 1:
            causal = False  # the last position may attend to every key
        elif causal and t < s:
            mask = causal_mask(t, s, q.device)
            causal = False
        if self.fused and prefers_fused_attention(q, k, dropout):
            return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=self.scale)
        if causal:
            mask = causal_mask(t, s, q.device)
        y, weights = attend_with_scores(self.scores(q, k), v, mask, dropout=dropout)
        record_attention(self, weights)
        return y

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Attention scores before the softmax: q (b, h, t, d_k), k (b, h, s, d_k) -> (b, h, t, s)."""
        return dot_products(q, k, self.scale)

    def _rotated(self, x: Tensor, start: int) -> Tensor:
        return self.positions.rotate(x, start) if self.positions else x

    def _split(self, x: Tensor, heads: int) -> Tensor:
        """(b, s, h * d) -> (b, h, s, d)."""
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def make_attention(config: ModelConfig, *, to_self: bool) -> MultiHeadAttention:
    """Make the attention module that `config` describes. Only self-attention (`to_self`) has rotary positions."""
    kind: type[MultiHeadAttention] = MultiHeadAttention
    if config.attention not in DOT_PRODUCTS:
        kind = make_part(config.attention)
    other: MultiHeadAttention | None = None
    if config.more:
        other = make_part("self-attention", kind, config, to_self=to_self)
    return other or kind(config, rotary=to_self and config.positions == "rotary")
