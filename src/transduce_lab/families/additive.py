"""Additive attention with scores v tanh(q + k) (Bahdanau et al., 2015; section 3.2.1 of the paper).

b = sentences, h = heads, t = query positions, s = key positions, d_k = channels of a head.
"""

import torch
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.attention import MultiHeadAttention


class Additive(nn.Module):
    """Computes the scores v tanh(q + k), with a trained vector v for each head."""

    def __init__(self, num_heads: int, d_k: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, d_k))

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw the vectors by Xavier's uniform initialisation."""
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """q (b, h, t, d_k), k (b, h, s, d_k) -> scores (b, h, t, s)."""
        sums = (q[:, :, :, None] + k[:, :, None]).tanh()  # (b, h, t, s, d_k)
        return torch.einsum("bhtsd,hd->bhts", sums, self.weight)


class AdditiveAttention(MultiHeadAttention):
    """Multi-head attention with additive scores instead of dot products."""

    fused = False

    def __init__(self, config: ModelConfig, *, rotary: bool = False):
        super().__init__(config, rotary=rotary)
        self.additive = Additive(self.num_heads, config.d_k or config.d_model // self.num_heads)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q (b, h, t, d_k), k (b, h, s, d_k) -> scores (b, h, t, s)."""
        scores: Tensor = self.additive(q, k)
        return scores


def additive_attention() -> type[MultiHeadAttention]:
    """The attention modules of a Transformer with model.attention=additive."""
    return AdditiveAttention
