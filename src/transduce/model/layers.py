"""The layers of encoder and decoder (section 3.1 of the paper).

r = rows (hypotheses), h = heads, s = source positions, t = target positions.
"""

from collections.abc import Callable
from pkgutil import resolve_name

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.model.attention import KeyValues
from transduce.model.dropout import Dropout
from transduce.model.restricted import make_attention

EXPERTS = "transduce.wings.families.experts:Experts"  # the feed-forward layer of model.experts, imported if used
ACTIVATION_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class Residual(nn.Module):
    """x + dropout(sublayer(x)), normalised after the sum ("post", the paper) or before ("pre")."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x (r, t, d_model) -> the same shape."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, the same at every position (section 3.3)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.out = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> the same shape."""
        return self.out(self.activation(self.inner(x)))


def make_feed_forward(config: ModelConfig, layer: int) -> nn.Module:
    """The feed-forward layer of layer number `layer`, from 0: the paper's, or experts in model.expert_layers."""
    if config.experts and (not config.expert_layers or layer + 1 in config.expert_layers):
        experts: nn.Module = resolve_name(EXPERTS)(config)
        return experts
    return FeedForward(config)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward: left half of figure 1."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.attention = make_attention(config, to_self=True)
        self.feed_forward = make_feed_forward(config, layer)
        self.residual = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (b, s, d_model), mask (b, 1, 1, s) -> (b, s, d_model)."""
        x = self.residual[0](x, lambda x: self.attention(x, self.attention.project(x), mask))
        return self.residual[1](x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, feed-forward: right half of figure 1."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.attention = make_attention(config, to_self=True)
        self.source_attention = make_attention(config, to_self=False)
        self.feed_forward = make_feed_forward(config, layer)
        self.residual = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(
        self, x: Tensor, source: KeyValues, source_mask: Tensor, past: KeyValues | None
    ) -> tuple[Tensor, KeyValues]:
        """x (r, t, d_model) -> the same shape, and the keys and values up to here; `past`: those before x."""
        seen: KeyValues

        def attend_to_self(x: Tensor) -> Tensor:
            nonlocal seen
            seen = self.attention.project(x)
            if past is not None:
                seen = torch.cat((past[0], seen[0]), 2), torch.cat((past[1], seen[1]), 2)
            return self.attention(x, seen, causal=True)

        x = self.residual[0](x, attend_to_self)
        x = self.residual[1](x, lambda x: self.source_attention(x, source, source_mask))
        return self.residual[2](x, self.feed_forward), seen
