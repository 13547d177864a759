"""Self-attention restricted to nearby positions (section 4 of the paper).

b = sentences, h = heads, t = query positions, s = key positions, n = t = s in full sequences, d = channels of a head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config.schema import ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.recording import attention_record
from transduce_lab.options import WindowOptions


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
    """Attend to the keys less than `window` positions away, in time and memory O(n window).

    q, k, v (b, h, n, d), key mask (b, 1, 1, n) -> (b, h, n, d). Positions are divided into blocks of `window`. Queries
    are multiplied only with the keys of their own block, of the previous block and, unless `causal`, of the next block.
    The output is undefined for a query whose keys are all masked.
    """
    b, h, n, _ = q.shape
    after = 0 if causal else 1
    rest = -n % window
    blocks = (n + rest) // window

    def cut(x: Tensor) -> Tensor:
        """x (b, h, n, d) -> overlapping blocks (b * h, blocks, 2 or 3 x window, d)."""
        x = F.pad(x, (0, 0, window, rest + after * window)).flatten(0, 1)
        return x.unfold(1, (2 + after) * window, window).transpose(-2, -1)

    query = torch.arange(blocks * window, device=q.device).view(1, blocks, window, 1)
    key = F.pad(torch.arange(n, device=q.device), (window, rest + after * window), value=-1)
    key = key.unfold(0, (2 + after) * window, window)[None, :, None, :]  # (1, blocks, 1, keys)
    near = (
        ((query - key) < window)
        & ((query >= key) if causal else (key - query < window))
        & (key >= 0)
    )
    if mask is not None:
        keys = F.pad(mask[:, 0, 0], (window, rest + after * window)).unfold(
            1, (2 + after) * window, window
        )
        near = (near & keys[:, :, None, :]).repeat_interleave(h, dim=0)
    # Without any key to attend to, the softmax would be NaN.
    near = near | ~near.any(dim=-1, keepdim=True)
    q = F.pad(q, (0, 0, 0, rest)).flatten(0, 1).unflatten(1, (blocks, window))
    y = F.scaled_dot_product_attention(q, cut(k), cut(v), near, dropout, scale=scale)
    return y.flatten(1, 2)[:, :n].unflatten(0, (b, h))


def window_mask(
    t: int,
    s: int,
    window: int,
    causal: bool = True,
    device: torch.device | None = None,
    valid: Tensor | None = None,
) -> Tensor:
    """A mask (t, s) that lets the last t of s positions attend to keys less than `window` positions away.

    If `causal` is true, keys after the query are masked, too. If `valid` (b, 1, 1, s) is set, keys where it is False
    are masked, and the mask is (b, 1, t, s). Every query attends to itself, because without keys its softmax is NaN.
    """
    query = torch.arange(s - t, s, device=device)[:, None]
    key = torch.arange(s, device=device)
    mask = (query - key).abs() < window
    if causal:
        mask = mask & (key <= query)
    return mask if valid is None else valid & mask | (query == key)


class RestrictedAttention(MultiHeadAttention):
    """Self-attention to the keys less than `model.window` positions away."""

    def __init__(self, config: ModelConfig, *, rotary: bool = False):
        super().__init__(config, rotary=rotary)
        self.window = WindowOptions.of(config).window

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend in the window. q (b, h, t, d_k); k, v (b, h, s, d); key mask (b, 1, 1, s) -> (b, h, t, d_v)."""
        t = q.size(2)
        s = k.size(2)
        if t < s:  # a step of decoding: the keys before the window are not needed
            s = min(s, t + self.window - 1)
            k = k[:, :, -s:]
            v = v[:, :, -s:]
        if causal and t == 1:
            return super().attend(q, k, v, mask, False)
        if self.fused and t == s > 2 * self.window and attention_record.get() is None:
            dropout = self.dropout if self.training else 0.0
            return attend_nearby(
                q, k, v, self.window, mask, causal=causal, dropout=dropout, scale=self.scale
            )
        return super().attend(
            q, k, v, window_mask(t, s, self.window, causal, q.device, mask), False
        )


def make_restricted(
    kind: type[MultiHeadAttention], config: ModelConfig, *, to_self: bool
) -> MultiHeadAttention | None:
    """Make self-attention of a kind within model.window. Returns None without a window, or if not `to_self`."""
    if not (to_self and WindowOptions.of(config).window):
        return None
    restricted = type(f"Restricted{kind.__name__}", (RestrictedAttention, kind), {})
    attention: MultiHeadAttention = restricted(config, rotary=config.positions == "rotary")
    return attention
