"""Dropout (section 5.4 of the paper)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Each value is 0 with probability p, to within 1/65,536, else divided by 1 - p; nothing happens in eval mode."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or not self.p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        # On a CPU the library draws 32 random bits for every value, which takes a tenth of a training; 16 bits do,
        # and a 64-bit draw has four of them.
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        least = min(round(self.p * 2**16), 2**16 - 1) - 2**15  # not the 2^15 that 16 bits would read as -2^15
        keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= least
        return x * keep.to(x.dtype).mul_(1 / (1 - self.p))

    def extra_repr(self) -> str:
        """For `print(model)`."""
        return f"p={self.p}"
