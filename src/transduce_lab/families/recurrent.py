"""Deep recurrent encoder-decoder with attention (Bahdanau et al., 2015; Luong et al., 2015; GNMT: Wu et al., 2016).

With model.experts, it is the mixture of experts of Shazeer et al. (2017).

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, w = channels of the encoded source.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import attend_with_scores, dot_products
from transduce.model.embedding import Dropout, Embedding
from transduce.model.recording import record_attention
from transduce.model.seq2seq import Memory, Seq2Seq, State
from transduce_lab.families.additive import Additive
from transduce_lab.families.cells import CELLS, RecurrentLayer, run
from transduce_lab.families.experts import ExpertsBetween
from transduce_lab.options import RecurrentOptions

# The first layer, from 0, with a residual connection (section 3.1 of GNMT).
FIRST_RESIDUAL_LAYER = 2


class SourceAttention(nn.Module):
    """Single-head attention to the source, with the encoded source itself as values."""

    def __init__(self, config: ModelConfig, width: int):
        super().__init__()
        self.query = nn.Linear(config.d_model, config.d_model, bias=False)
        self.key = nn.Linear(width, config.d_model, bias=False)
        self.additive = Additive(1, config.d_model) if config.attention == "additive" else None
        self.scale = None if config.attention == "scaled" else 1.0

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """x (r, t, d_model), keys (b, 1, s, d_model), values (b, 1, s, w), mask (b, 1, 1, s) -> context (r, t, w)."""
        rows, length, _ = x.shape
        # (b, 1, r/b * t, d_model).
        q = self.query(x).unflatten(0, (keys.size(0), -1)).flatten(1, 2)[:, None]
        scores = self.additive(q, keys) if self.additive else dot_products(q, keys, self.scale)
        context, weights = attend_with_scores(scores, values, mask)
        record_attention(self, weights)
        return context.view(rows, length, -1)


class Recurrent(Seq2Seq):
    """Recurrent encoder-decoder with a bidirectional first encoder layer, and residual connections from layer 3 on.

    The first decoder layer reads the previous token and the previous attention context (input feeding). The output of
    this layer is the query for the new context, as in Luong et al. All higher decoder layers read the new context.

    The decoding state holds the hidden state of every decoder layer, and the context (r, w).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        d = config.d_model
        above = config.num_decoder_layers - 1
        width = d if config.num_encoder_layers > 1 else 2 * d
        self.embedding = Embedding(config.vocab_size, d)
        self.source_embedding = (
            Embedding(config.source_vocab_size, d) if config.source_vocab_size else None
        )
        self.both_ways = CELLS[RecurrentOptions.of(config).cell](
            d, d, batch_first=True, bidirectional=True
        )
        self.encoder = nn.ModuleList(
            RecurrentLayer(config, 2 * d if layer == 1 else d)
            for layer in range(1, config.num_encoder_layers)
        )
        self.source_attention = SourceAttention(config, width)
        self.decoder = nn.ModuleList(
            RecurrentLayer(config, d + width) for _ in range(config.num_decoder_layers)
        )
        # With a single layer, `combine` must add the context, because there are no higher layers to read it.
        self.combine = nn.Identity() if above else nn.Linear(d + width, d)
        self.encoder_experts = ExpertsBetween(config, range(2, config.num_encoder_layers + 1))
        self.decoder_experts = ExpertsBetween(config, range(1, config.num_decoder_layers + 1))
        self.dropout = Dropout(config.dropout)

    def encode(self, src: Tensor) -> Memory:
        """src (b, s) -> keys (b, 1, s, d_model) and values (b, 1, s, w)."""
        mask = src != PAD
        embed = self.source_embedding or self.embedding
        packed = pack_padded_sequence(
            self.dropout(embed(src)), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        x, _ = pad_packed_sequence(
            run(self.both_ways, packed)[0], batch_first=True, total_length=src.size(1)
        )
        for number, layer in enumerate(self.encoder, start=1):
            y, _ = layer(self.dropout(x))
            x = self.encoder_experts(y + x if number >= FIRST_RESIDUAL_LAYER else y, number + 1)
        return Memory([(self.source_attention.key(x)[:, None], x[:, None])], mask[:, None, None])

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        keys, values = memory.keys_values[0]
        first, *above = self.decoder
        hidden, context = state or (
            [None] * len(self.decoder),
            values.new_zeros(len(tgt), values.size(-1)),
        )
        below = hidden[0]
        outputs = []
        contexts = []
        for x in self.dropout(self.embedding(tgt)).unbind(1):
            y, below = first(torch.cat((x, context), dim=-1)[:, None], below)
            context = self.source_attention(y, keys, values, memory.mask)[:, 0]
            outputs.append(y[:, 0])
            contexts.append(context)
        x = self.decoder_experts(torch.stack(outputs, 1), 1)
        attended = torch.stack(contexts, 1)
        after = [below]
        for number, (layer, before) in enumerate(zip(above, hidden[1:], strict=True), start=1):
            y, now = layer(torch.cat((self.dropout(x), attended), dim=-1), before)
            x = self.decoder_experts(y + x if number >= FIRST_RESIDUAL_LAYER else y, number + 1)
            after.append(now)
        if not above:
            x = self.combine(torch.cat((x, attended), dim=-1)).tanh()
        return self.embedding.logits(self.dropout(x)), (after, context)
