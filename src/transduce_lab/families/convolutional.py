"""Convolutional encoder-decoder with gated linear units (ConvS2S; Gehring et al., 2017).

Unlike the original, this model neither normalises weights nor scales the encoder's gradient by the number of attention
layers. Target embedding and output layer share one matrix. Positions are sinusoidal by default.

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, c = channels of a layer.
"""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import attend_with_scores, dot_products
from transduce.model.embedding import Dropout, Embedding, make_positions
from transduce.model.recording import record_attention
from transduce.model.seq2seq import Memory, Seq2Seq, State
from transduce_lab.families.gated_convolution import GatedConvolution, Shape, shapes

ROOT_HALF = math.sqrt(0.5)  # scales the sum of two values to the variance of one value
# Initial standard deviation of embeddings (section 3.5 of ConvS2S). This deviation keeps the unscaled dot products
# small, so that attention begins uniform, as the factor sqrt(m) in SourceAttention assumes; otherwise activations
# explode.
DEVIATION = 0.1


class SourceAttention(nn.Module):
    """Dot-product attention from a decoder layer to the source."""

    def __init__(self, d_model: int, channels: int):
        super().__init__()
        self.query = nn.Linear(channels, d_model)
        self.out = nn.Linear(d_model, channels)

    def forward(
        self, x: Tensor, embedded: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> Tensor:
        """x (r, t, c), embedded (r, t, d_model), keys and values (b, 1, s, d_model) -> (r, t, c)."""
        q = (
            ((self.query(x) + embedded) * ROOT_HALF)
            .unflatten(0, (keys.size(0), -1))
            .flatten(1, 2)[:, None]
        )
        context, weights = attend_with_scores(dot_products(q, keys, 1.0), values, mask)
        record_attention(self, weights)
        # A mean of m vectors has a variance of 1 / m.
        context = context * mask.sum(-1, keepdim=True).sqrt()
        return self.out(context.view_as(embedded))


class DecoderLayer(nn.Module):
    """A decoder layer with a convolution over previous positions and attention to the source."""

    def __init__(self, config: ModelConfig, shape: Shape):
        super().__init__()
        self.convolution = GatedConvolution(shape, config)
        self.source_attention = SourceAttention(config.d_model, shape.channels)


class Convolutional(Seq2Seq):
    """The ConvS2S model. Its state is the next position (r,) and each layer's last inputs (r, kernel - 1, c)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d = config.d_model
        encoder = shapes(config, config.num_encoder_layers)
        decoder = shapes(config, config.num_decoder_layers)
        self.max_positions = config.max_positions if config.positions == "learned" else None
        self.embedding = Embedding(config.vocab_size, d)
        self.source_embedding = (
            Embedding(config.source_vocab_size, d) if config.source_vocab_size else None
        )
        self.source_positions = make_positions(config)
        self.target_positions = make_positions(config)
        self.dropout = Dropout(config.dropout)
        self.source_enter = nn.Linear(d, encoder[0].inputs)
        self.source_leave = nn.Linear(encoder[-1].channels, d)
        self.enter = nn.Linear(d, decoder[0].inputs)
        self.leave = nn.Linear(decoder[-1].channels, d)
        self.encoder = nn.ModuleList(GatedConvolution(shape, config) for shape in encoder)
        self.decoder = nn.ModuleList(DecoderLayer(config, shape) for shape in decoder)

    def encode(self, src: Tensor) -> Memory:
        """src (b, s) -> keys and values (b, 1, s, d_model)."""
        mask = src != PAD
        embed = self.source_embedding or self.embedding
        embedded = self.dropout(DEVIATION * (embed(src) + self.source_positions(0, src.size(1))))
        x = self.source_enter(embedded)
        for module in self.encoder:
            layer = cast(GatedConvolution, module)
            x = x * mask[..., None]  # otherwise, windows at the end would include padding
            left = (layer.kernel - 1) // 2
            y = layer(F.pad(x, (0, 0, left, layer.kernel - 1 - left)))
            x = (y + layer.shortcut(x)) * ROOT_HALF
        x = self.source_leave(x)
        return Memory([(x[:, None], ((x + embedded) * ROOT_HALF)[:, None])], mask[:, None, None])

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        keys, values = memory.keys_values[0]
        position, past = state or (tgt.new_zeros(len(tgt)), [None] * len(self.decoder))
        positions = self.target_positions(int(position[0]), tgt.size(1))
        embedded = self.dropout(DEVIATION * (self.embedding(tgt) + positions))
        x = self.enter(embedded)
        recent = []
        for module, before in zip(self.decoder, past, strict=True):
            layer = cast(DecoderLayer, module)
            convolution = layer.convolution
            history = convolution.kernel - 1
            window = (
                F.pad(x, (0, 0, history, 0)) if before is None else torch.cat((before, x), dim=1)
            )
            recent.append(window[:, window.size(1) - history :])
            y = convolution(window)
            y = (y + layer.source_attention(y, embedded, keys, values, memory.mask)) * ROOT_HALF
            x = (y + convolution.shortcut(x)) * ROOT_HALF
        return self.embedding.logits(self.dropout(self.leave(x))), (position + tgt.size(1), recent)
