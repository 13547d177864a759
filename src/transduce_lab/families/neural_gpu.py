"""Extended Neural GPU, with active memory instead of attention (Kaiser and Bengio, 2016; Kaiser and Sutskever, 2016).

A sentence of n tokens is a memory of CELL_COLUMNS by n cells. Convolutional gated recurrent units (CGRU, section 2)
change all cells n times. Then each output token changes all cells once, and is read from the cell at its position. It
depends on all earlier tokens through a tape of their embeddings (section 3, "active memory decoder").

Unlike the original, the memory has no fixed size. It has the source's length, and grows with the target, so that a
sentence's translation depends neither on its batch nor on the tokens that follow.

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, d = d_model, c = CELL_COLUMNS.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.embedding import Dropout, Embedding
from transduce.model.seq2seq import Seq2Seq, State

CELL_COLUMNS = 4
CELL_KERNEL = 3  # cells to each side and the cell itself, in both dimensions


class CellMemory(NamedTuple):
    """The encoded source: cells (b, d, c, s), and the length of each sentence (b,)."""

    cells: Tensor
    lengths: Tensor


class ConvGRU(nn.Module):
    """A convolutional gated recurrent unit, which may also read a tape (CGRU and CGRU^d)."""

    def __init__(self, d_model: int, inputs: int):
        super().__init__()
        padding = CELL_KERNEL // 2
        self.gates = nn.Conv2d(inputs, 2 * d_model, CELL_KERNEL, padding=padding)
        self.new = nn.Conv2d(inputs, d_model, CELL_KERNEL, padding=padding)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw kernels by Xavier's method. The gates have biases of 1, so that cells keep their values at first."""
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight, generator=generator)
            else:
                nn.init.constant_(weight, float(name.startswith("gates")))

    def forward(self, cells: Tensor, mask: Tensor, tape: tuple[Tensor, ...] = ()) -> Tensor:
        """cells (r, d, c, n), mask (r, 1, 1, n), and a tape of the shape of cells -> new cells, 0 outside the mask."""
        keep, read = self.gates(torch.cat((cells, *tape), dim=1)).sigmoid().chunk(2, dim=1)
        new = self.new(torch.cat((read * cells, *tape), dim=1)).tanh()
        return (keep * cells + (1 - keep) * new) * mask


class NeuralGPU(Seq2Seq):
    """The Extended Neural GPU. Its state: the next position (r,), the cells (r, d, c, n) and the tape (r, d, n)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d = config.d_model
        self.embedding = Embedding(config.vocab_size, d)
        self.source_embedding = (
            Embedding(config.source_vocab_size, d) if config.source_vocab_size else None
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(ConvGRU(d, d) for _ in range(config.num_encoder_layers))
        self.decoder = nn.ModuleList(ConvGRU(d, 2 * d) for _ in range(config.num_decoder_layers))

    def encode(self, src: Tensor) -> CellMemory:
        """Embed src (b, s) in the first column, and change all cells of a sentence as often as it has tokens."""
        is_token = src != PAD
        mask = is_token[:, None, None]
        x = self.dropout((self.source_embedding or self.embedding)(src))
        cells = first_column(x.transpose(1, 2)) * mask
        for active in is_token.unbind(1):
            changed = cells
            for unit in self.encoder:
                changed = unit(changed, mask)
            cells = torch.where(active[:, None, None, None], changed, cells)
        return CellMemory(cells, is_token.sum(1))

    def decode(self, tgt: Tensor, memory: CellMemory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        repeats = len(tgt) // len(memory.lengths)
        lengths = memory.lengths.repeat_interleave(repeats)[:, None]
        cells = memory.cells.repeat_interleave(repeats, dim=0)
        position, cells, tape = state or (
            tgt.new_zeros(len(tgt)),
            cells,
            torch.zeros_like(cells[:, :, 0]),
        )
        outputs = []
        for place, token in enumerate(
            self.dropout(self.embedding(tgt)).unbind(1), int(position[0])
        ):
            missing = max(place + 1 - cells.size(-1), 0)
            cells = F.pad(cells, (0, missing))
            places = torch.arange(cells.size(-1), device=tgt.device)
            tape = torch.where(places == place, token[..., None], F.pad(tape, (0, missing)))
            mask = (places < lengths) | (places <= place)
            for unit in self.decoder:
                cells = unit(cells, mask[:, None, None], (first_column(tape),))
            outputs.append(cells[:, :, 0, place])
        logits = self.embedding.logits(self.dropout(torch.stack(outputs, dim=1)))
        return logits, (position + tgt.size(1), cells, tape)


def first_column(x: Tensor) -> Tensor:
    """x (r, d, n) -> (r, d, c, n), with zeros in all columns but the first."""
    return F.pad(x[:, :, None], (0, 0, 0, CELL_COLUMNS - 1))
