"""Scaled dot-product attention and its heads (section 3.2 of the paper).

b = sentences, r = rows (hypotheses), h = heads, t = query positions, s = key positions, d = channels per head.
Masks are boolean and True means *may attend*.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.recording import active, record_attention

KeyValues = tuple[Tensor, Tensor]  # (b, h, s, d_k), (b, h, s, d_v)
MANY_KEYS = 12  # of a single query


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """softmax(q k^T scale) v, by default 1 / sqrt(d_k) (section 3.2.1).

    q (b, h, t, d_k); k, v (b, h, s, d); mask like (b, h, t, s), or causal -> (b, h, t, d).
    """
    # On a CPU (torch 2.13) the fused kernel takes up to eight times as long for the gradient of sentences in bfloat16,
    # and up to three times as long for one query of many keys, as in a search.
    slow = (q.requires_grad and q.dtype != torch.float32) or (q.size(-2) == 1 and k.size(-2) >= MANY_KEYS)
    if slow and q.device.type == "cpu" and not dropout:
        return attend_with_scores(dot_products(q, k, scale), v, mask, causal=causal)[0]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout, scale=scale)


def dot_products(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """q (b, h, t, d_k), k (b, h, s, d_k) -> q k^T scale (b, h, t, s)."""
    return (q * (1 / math.sqrt(q.size(-1)) if scale is None else scale)) @ k.transpose(-2, -1)


def attend_with_scores(
    scores: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The same in plain sight, from scores (b, h, t, s), and with the weights (b, h, t, s) beside the result."""
    if causal:
        mask = position_mask(scores.size(-2), scores.size(-1), device=scores.device)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return F.dropout(weights, dropout) @ v, weights


def attend_nearby(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Attention to the keys less than `window` positions away: time and memory are O(n window), not O(n^2).

    q, k, v (b, h, n, d), mask (b, 1, 1, n) of the keys. Positions are cut into blocks as long as the window, and each
    block of queries meets its own, the one before, and unless causal the one behind (section 4, restricted
    self-attention). A query all of whose keys are masked gets a mean of values that means nothing.
    """
    b, h, n, _ = q.shape
    after = 0 if causal else 1
    rest = -n % window
    blocks = (n + rest) // window

    def cut(x: Tensor) -> Tensor:
        """(b, h, n, d) -> (b * h, blocks, 2 or 3 windows, d)."""
        x = F.pad(x, (0, 0, window, rest + after * window)).flatten(0, 1)
        return x.unfold(1, (2 + after) * window, window).transpose(-2, -1)

    query = torch.arange(blocks * window, device=q.device).view(1, blocks, window, 1)
    key = F.pad(torch.arange(n, device=q.device), (window, rest + after * window), value=-1)
    key = key.unfold(0, (2 + after) * window, window)[None, :, None, :]  # (1, blocks, 1, keys)
    near = ((query - key) < window) & ((query >= key) if causal else (key - query < window)) & (key >= 0)
    if mask is not None:
        keys = F.pad(mask[:, 0, 0], (window, rest + after * window)).unfold(1, (2 + after) * window, window)
        near = (near & keys[:, :, None, :]).repeat_interleave(h, dim=0)
    near = near | ~near.any(dim=-1, keepdim=True)  # the softmax of nothing is not a number
    q = F.pad(q, (0, 0, 0, rest)).flatten(0, 1).unflatten(1, (blocks, window))
    y = F.scaled_dot_product_attention(q, cut(k), cut(v), near, dropout, scale=scale)
    return y.flatten(1, 2)[:, :n].unflatten(0, (b, h))


def position_mask(
    num_new: int,
    num_keys: int,
    window: int = 0,
    causal: bool = True,
    device: torch.device | None = None,
    valid: Tensor | None = None,
) -> Tensor:
    """(num_new, num_keys): the last num_new of num_keys positions see themselves, the past, unless causal the future.

    window: they see less than so many positions to either side; 0: all. valid (b, 1, 1, num_keys): padding is not seen
    either, except by itself, for the softmax of nothing is not a number; the mask is (b, 1, num_new, num_keys) then.
    """
    query = torch.arange(num_keys - num_new, num_keys, device=device)[:, None]
    key = torch.arange(num_keys, device=device)
    mask = key <= query if causal else (key == key).expand(num_new, -1)
    if window:
        mask = mask & ((query - key).abs() < window)
    return mask if valid is None else valid & mask | (query == key)


class Additive(nn.Module):
    """v tanh(q + k), with a v for each head: the attention function of Bahdanau et al. (2015); see section 3.2.1."""

    def __init__(self, num_heads: int, d_k: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, d_k))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """q (b, h, t, d_k), k (b, h, s, d_k) -> scores (b, h, t, s)."""
        sums = (q[:, :, :, None] + k[:, :, None]).tanh()  # (b, h, t, s, d_k)
        return torch.einsum("bhtsd,hd->bhts", sums, self.weight)


class MultiHeadAttention(nn.Module):
    """Keys and values come from `project`, queries from `forward`; who calls decides what is
    self-attention, cached self-attention or attention over the encoder."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d_model, self.num_heads = config.d_model, config.num_heads
        d_k, d_v = config.d_k or d_model // self.num_heads, config.d_v or d_model // self.num_heads
        self.dropout = config.attention_dropout
        self.scale = None if config.attention == "scaled" else 1.0
        self.additive = Additive(self.num_heads, d_k) if config.attention == "additive" else None
        self.query = nn.Linear(d_model, self.num_heads * d_k)
        self.key = nn.Linear(d_model, self.num_heads * d_k)
        self.value = nn.Linear(d_model, self.num_heads * d_v)
        self.out = nn.Linear(self.num_heads * d_v, d_model)

    def project(self, x: Tensor) -> KeyValues:
        """x (b, s, d_model) -> keys (b, h, s, d_k) and values (b, h, s, d_v)."""
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(
        self, x: Tensor, keys_values: KeyValues, mask: Tensor | None = None, *, causal: bool = False, window: int = 0
    ) -> Tensor:
        """x (r, t, d_model), keys and values of b sentences, r = b * k -> (r, t, d_model).

        causal: the last t keys belong to the same positions as x, and none sees what follows it. window: they see less
        than so many positions to either side; 0: all.
        """
        k, v = keys_values
        rows, length, _ = x.shape
        batch = k.size(0)
        q = self._split(self.query(x))  # (r, h, t, d_k)
        if rows != batch:  # the rows of a sentence share its keys: queries of one long sequence
            q = q.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)  # (b, h, r/b * t, d_k)
        y = self._attend(q, k, v, mask, causal, window)
        if rows != batch:
            y = y.unflatten(2, (-1, length)).transpose(1, 2).flatten(0, 1)  # (r, h, t, d_v)
        return self.out(y.transpose(1, 2).flatten(2))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, window: int) -> Tensor:
        """(b, h, t, d_v), by the cheapest way."""
        record, dropout = active(), self.dropout if self.training else 0.0
        plain = self.additive is None and not (record is not None and record.keeps_attention)
        new, keys = q.size(2), k.size(2)
        if window and new < keys:  # a step of decoding: what lies before the window need not be looked at
            keys = min(keys, new + window - 1)
            k, v = k[:, :, -keys:], v[:, :, -keys:]
        if causal and new == 1:
            causal, window = False, 0  # the last position sees all
        if window and plain and new == keys > 2 * window:
            return attend_nearby(q, k, v, window, mask, causal=causal, dropout=dropout, scale=self.scale)
        if window or (causal and new < keys):
            mask, causal = position_mask(new, keys, window, causal, q.device, mask), False
        if plain:
            return attend(q, k, v, mask, causal=causal, dropout=dropout, scale=self.scale)
        scores = self.additive(q, k) if self.additive else dot_products(q, k, self.scale)
        y, weights = attend_with_scores(scores, v, mask, causal=causal, dropout=dropout)
        record_attention(self, weights)
        return y

    def _split(self, x: Tensor) -> Tensor:
        """(b, s, h * d) -> (b, h, s, d)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
