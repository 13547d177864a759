"""Dropout (section 5.4 of the paper)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Set each value to 0 with probability p (to within 1/65,536), else divide it by 1 - p; only in training mode."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or not self.p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        # On a CPU torch draws 32 random bits a value, a tenth of the training time. 16 bits are enough, and a 64-bit
        # draw holds four of them.
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        threshold = min(round(self.p * 2**16), 2**16 - 1) - 2**15  # below 2^15, which 16 bits would read as -2^15
        keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
        return x * keep.to(x.dtype).mul_(1 / (1 - self.p))

    def extra_repr(self) -> str:
        """Shown by `print(model)`."""
        return f"p={self.p}"
