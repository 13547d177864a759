"""Recurrent layers: LSTM and GRU, with Xavier's initialisation of each gate.

r = rows (hypotheses), t = target positions.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce_lab.options import RecurrentOptions

# Tensors (r, d_model): an LSTM's output and cell state, or a GRU's output.
Hidden = tuple[Tensor, ...]


class Gates(nn.RNNBase):
    """A recurrent layer of PyTorch with separate initialisation of each gate."""

    def draw_weights(self, generator: torch.Generator) -> None:
        """Initialise each gate by Xavier's method, and an LSTM's forget biases to 1 (Jozefowicz et al., 2015)."""
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                for gate in weight.detach().split(self.hidden_size):
                    nn.init.xavier_uniform_(gate, generator=generator)
            else:
                nn.init.zeros_(weight)
                if isinstance(self, nn.LSTM) and name.startswith("bias_ih"):
                    nn.init.ones_(weight.detach()[self.hidden_size : 2 * self.hidden_size])


class LSTM(Gates, nn.LSTM):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""


class GRU(Gates, nn.GRU):
    """Gated recurrent units (Cho et al., 2014)."""


CELLS: dict[str, type[LSTM] | type[GRU]] = {"lstm": LSTM, "gru": GRU}


def run(rnn: LSTM | GRU, x: Any, hidden: Any = None) -> Any:
    """Apply `rnn` to a tensor or packed sequence, in float32 on CUDA and on CPUs where autocast would fail."""
    if not x.is_cuda and (
        not torch.is_autocast_enabled("cpu") or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    ):
        return rnn(x, hidden)
    with torch.autocast("cuda" if x.is_cuda else "cpu", enabled=False):
        parts = tuple(part.float() for part in hidden) if isinstance(hidden, tuple) else hidden
        return rnn(x.float(), parts.float() if isinstance(parts, Tensor) else parts)


class RecurrentLayer(nn.Module):
    """A recurrent layer with the cell that model.cell names."""

    def __init__(self, config: ModelConfig, inputs: int):
        super().__init__()
        self.rnn = CELLS[RecurrentOptions.of(config).cell](inputs, config.d_model, batch_first=True)

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:
        """x (r, t, inputs) and the old hidden state -> outputs (r, t, d_model) and the new hidden state."""
        if hidden is None:
            y, after = run(self.rnn, x)
        else:
            before = tuple(part[None] for part in hidden)
            y, after = run(self.rnn, x, before if len(before) > 1 else before[0])
        return y, tuple(part[0] for part in (after if isinstance(after, tuple) else (after,)))
