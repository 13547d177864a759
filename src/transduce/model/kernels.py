"""Faster versions of code in other files that follows the paper: fused attention, beams in one product, dropout.

b = sentences, r = rows (hypotheses), h = heads, t = query positions, s = key positions, d = channels of a head.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.model.recording import attention_record

# With one query and at least this many keys, torch's kernel is slower than plain products.
SLOW_KEYS = 12


def prefers_fused_attention(q: Tensor, k: Tensor, dropout: float) -> bool:
    """Whether torch's fused kernel should compute attention: q (b, h, t, d), k (b, h, s, d).

    The kernel returns no weights, so it can't be used while weights are recorded.
    """
    # A compiler can't read the record, and a compiled model records nothing.
    if not torch.compiler.is_compiling() and attention_record.get() is not None:
        return False
    # On a CPU (torch 2.13) the fused kernel is slower than plain products: up to eight times for gradients in bfloat16,
    # and up to three times for one query and many keys, as in a search.
    has_slow_gradient = q.requires_grad and q.dtype != torch.float32
    has_slow_step = q.size(-2) == 1 and k.size(-2) >= SLOW_KEYS
    is_slow = has_slow_gradient or has_slow_step
    return not is_slow or dropout > 0 or q.device.type != "cpu"


def attend_by_sentence(
    attend: Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
) -> Tensor:
    """Call `attend` once for all rows of a sentence, which share keys: their queries are joined into one sequence.

    q (r, h, t, d_k), k (b, h, s, d_k), v (b, h, s, d_v) -> (r, h, t, d_v).
    """
    rows = q.size(0)
    batch = k.size(0)
    t = q.size(2)
    if rows == batch:
        return attend(q, k, v, mask, causal)
    q = q.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)  # (b, h, r/b * t, d_k)
    y = attend(q, k, v, mask, causal)
    return y.unflatten(2, (-1, t)).transpose(1, 2).flatten(0, 1)


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each value to 0 with probability p, and divide the others by 1 - p."""
    if x.device.type != "cpu":
        return F.dropout(x, p)
    # On a CPU, torch's draws of 32 random bits per value take a tenth of the training time; 16 bits are enough.
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    threshold = min(round(p * 2**16), 2**16 - 1) - 2**15  # at most 2^15 - 1, which fits into int16
    keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
    return x * keep.to(x.dtype).mul_(1 / (1 - p))
