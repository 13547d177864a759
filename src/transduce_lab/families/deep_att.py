"""Deep-Att: deep recurrent model with fast-forward connections and attention (Zhou et al., 2016).

Layer k multiplies its inputs with one matrix to the sums f of its four gates, without recurrence. Half of f is also an
input of layer k + 1: gradients pass all layers on a path without nonlinear functions (section 3.1, "fast-forward
connections"). Unlike the original, target embedding and output layer share one matrix, as in all our models.

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, d = d_model, w = 5 d / 2.
"""

from typing import cast

import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import attend_with_scores
from transduce.model.embedding import Dropout, Embedding
from transduce.model.recording import record_attention
from transduce.model.seq2seq import Memory, Seq2Seq, State
from transduce_lab.families.additive import Additive

GATES = 4  # the new value, the input gate, the forget gate and the output gate
Cell = tuple[Tensor, Tensor]  # the state of a layer: output (r, d) and cell state (r, d)


class FastForwardLayer(nn.Module):
    """An LSTM with peepholes that gets the sums of its gates from `sums`."""

    def __init__(self, inputs: int, d_model: int, dropout: float):
        super().__init__()
        self.sums = nn.Linear(inputs, GATES * d_model)
        self.recur = nn.Linear(d_model, GATES * d_model, bias=False)
        # The input gate, the forget gate and the output gate see the cell state.
        self.peepholes = nn.Parameter(torch.zeros(GATES - 1, d_model))
        self.dropout = Dropout(dropout)

    def step(self, sums: Tensor, before: Cell) -> Cell:
        """One position: sums (r, 4 d) and the state before it -> the state after it (equation 5)."""
        output, cell = before
        value, enter, forget, leave = (sums + self.recur(output)).chunk(GATES, dim=-1)
        to_enter, to_forget, to_leave = self.peepholes
        kept = (forget + cell * to_forget).sigmoid() * cell
        cell = kept + (enter + cell * to_enter).sigmoid() * value.tanh()
        return (leave + cell * to_leave).sigmoid() * cell.tanh(), cell

    def forward(self, sums: Tensor, state: Cell, mask: Tensor) -> tuple[Tensor, Cell]:
        """sums (r, t, 4 d), mask (r, t, 1) -> outputs (r, t, d), and the new state, which is 0 at padding."""
        outputs = []
        for each, is_token in zip(sums.unbind(1), mask.unbind(1), strict=True):
            output, cell = self.step(each, state)
            state = output * is_token, cell * is_token
            outputs.append(state[0])
        return torch.stack(outputs, dim=1), state


class Column(nn.Module):
    """A column of the encoder, whose layers read the source in turn forward and backward (section 3.2)."""

    def __init__(self, config: ModelConfig, *, is_second: bool):
        super().__init__()
        self.layers = make_layers(config, config.d_model, config.num_encoder_layers)
        self.is_second = is_second  # the first layer of the second column reads backward

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x (b, s, d), mask (b, s, 1) -> f (b, s, 4 d) and outputs (b, s, d) of the last layer."""
        inputs = x
        for number, layer in enumerate(map(_layer, self.layers), start=self.is_second):
            dims = [1] if number % 2 else []  # flipped to read backward
            sums = layer.sums(inputs)
            x, _ = layer(sums.flip(dims), start(x), mask.flip(dims))
            x = x.flip(dims)
            inputs = joined(sums, layer.dropout(x))
        return sums, x


class SourceAttention(nn.Module):
    """Attention by a network with one hidden layer: v tanh(W q + U k)."""

    def __init__(self, d_model: int, width: int):
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(width, d_model, bias=False)
        self.additive = Additive(1, d_model)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """x (r, d) -> context (r, w)."""
        keys, values = memory.keys_values[0]
        q = self.query(x).view(len(keys), 1, -1, x.size(-1))  # (b, 1, r / b, d)
        context, weights = attend_with_scores(self.additive(q, keys), values, memory.mask)
        record_attention(self, weights)
        return context.reshape(len(x), -1)


class DeepAtt(Seq2Seq):
    """The Deep-Att model. Its state holds the output and the cell state of each decoder layer."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d = config.d_model
        width = 5 * d // 2  # a quarter of f and the outputs of both columns together
        self.embedding = Embedding(config.vocab_size, d)
        self.source_embedding = (
            Embedding(config.source_vocab_size, d) if config.source_vocab_size else None
        )
        self.encoder = nn.ModuleList(Column(config, is_second=each) for each in (False, True))
        self.narrow = nn.Linear(4 * width, width, bias=False)
        self.source_attention = SourceAttention(d, width)
        self.decoder = make_layers(config, d + width, config.num_decoder_layers)
        self.leave = nn.Linear(3 * d, d)
        self.dropout = Dropout(config.dropout)

    def encode(self, src: Tensor) -> Memory:
        """src (b, s) -> keys (b, 1, s, d) and values (b, 1, s, w)."""
        mask = src != PAD
        x = self.dropout((self.source_embedding or self.embedding)(src))
        one, other = (column(x, mask[..., None]) for column in self.encoder)
        values = self.narrow(torch.cat(one + other, dim=-1))[:, None]
        return Memory([(self.source_attention.key(values), values)], mask[:, None, None])

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        first, *above = map(_layer, self.decoder)
        embedded = self.dropout(self.embedding(tgt))
        cell, *cells = state or [start(embedded)] * len(self.decoder)
        all_sums = []
        outputs = []
        for token in embedded.unbind(1):
            # The context of a token depends on the output of the first layer at the token before.
            context = self.source_attention(cell[0], memory)
            all_sums.append(first.sums(torch.cat((token, context), dim=-1)))
            cell = first.step(all_sums[-1], cell)
            outputs.append(cell[0])
        x = joined(torch.stack(all_sums, dim=1), first.dropout(torch.stack(outputs, dim=1)))
        after = [cell]
        for layer, before in zip(above, cells, strict=True):
            sums = layer.sums(x)
            y, now = layer(sums, before, torch.ones_like(tgt)[..., None])
            x = joined(sums, layer.dropout(y))
            after.append(now)
        return self.embedding.logits(self.leave(x)), after


def start(x: Tensor) -> Cell:
    """The state of a layer before the first position of x (r, t, d)."""
    zeros = torch.zeros_like(x[:, 0])
    return zeros, zeros


def joined(sums: Tensor, outputs: Tensor) -> Tensor:
    """What the next layer reads (r, t, 3 d): half of f (r, t, 4 d), and the outputs (r, t, d)."""
    return torch.cat((sums.chunk(2, dim=-1)[0], outputs), dim=-1)


def make_layers(config: ModelConfig, inputs: int, count: int) -> nn.ModuleList:
    """A stack of layers, of which the first has `inputs` channels as input."""
    d = config.d_model
    return nn.ModuleList(
        FastForwardLayer(3 * d if below else inputs, d, config.dropout) for below in range(count)
    )


def _layer(module: nn.Module) -> FastForwardLayer:
    return cast(FastForwardLayer, module)  # nn.ModuleList is not generic
