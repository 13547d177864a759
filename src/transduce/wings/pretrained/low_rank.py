"""Low-rank updates of a model's matrices (LoRA, Hu et al., 2021), for fine-tuning with little memory.

Each matrix W (out, in) becomes W + U D with U (out, r) and D (r, in). Only U and D are trained. To everyone else, the
model has its usual weights: `state_dict` returns W + U D, and loading W sets U to zero.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LowRankLinear(nn.Linear):
    """A linear layer with frozen weights and a trained update of low rank."""

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator):
        """Take over the weights of `layer`."""
        super().__init__(layer.in_features, layer.out_features, device="meta")
        self.weight = layer.weight
        self.bias = layer.bias
        down = torch.randn(rank, layer.in_features, generator=generator) / layer.in_features**0.5
        self.down = nn.Parameter(down.to(layer.weight))
        self.up = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        return super().forward(x) + F.linear(F.linear(x, self.down), self.up)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        update = destination.pop(f"{prefix}up") @ destination.pop(f"{prefix}down")
        destination[f"{prefix}weight"] = destination[f"{prefix}weight"] + update

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *more: Any) -> None:
        updates = {f"{prefix}down": self.down, f"{prefix}up": torch.zeros_like(self.up)}
        super()._load_from_state_dict(state_dict | updates, prefix, *more)


def use_low_rank(model: nn.Module, rank: int, seed: int) -> None:
    """Freeze all weights of a model, and give its linear layers low-rank updates, drawn with the random seed `seed`."""
    generator = torch.Generator().manual_seed(seed)
    model.requires_grad_(False)
    for parent in [*model.modules()]:
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Linear):
                setattr(parent, name, LowRankLinear(layer, rank, generator))
