"""The Transformer (figure 1 of the paper).

b = sentences, r = rows (hypotheses), h = heads, s = source positions, t = target positions, v = vocabulary.
"""

from typing import cast

import torch
from torch import Tensor, nn

from transduce.config import PAD, ModelConfig
from transduce.model.attention import causal_mask
from transduce.model.dropout import Dropout
from transduce.model.embedding import Embedding, LearnedPositions, SinusoidalPositions
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.seq2seq import Memory, Seq2Seq, State


class Transformer(Seq2Seq):
    """State: per decoder layer, the keys and values (r, h, t, d) of the tokens decoded so far."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.window = config.window
        self.max_positions = config.max_positions if config.positions == "learned" else None
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.source_embedding = (
            Embedding(config.source_vocab_size, config.d_model) if config.source_vocab_size else None
        )
        self.source_positions = _positions(config)
        self.target_positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        # Pre-norm leaves the last sum unnormalised; the paper's post-norm needs no final norm.
        pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()

    def encode(self, src: Tensor) -> Memory:
        """src (b, s) -> the keys and values of the source for every decoder layer."""
        mask = (src != PAD)[:, None, None, :]  # (b, 1, 1, s)
        embed = self.source_embedding or self.embedding
        x = self.dropout(embed(src) + self.source_positions(0, src.size(1)))
        local = self._local(mask) if self.window else mask
        for layer in self.encoder:
            x = layer(x, local)
        x = self.encoder_norm(x)
        attentions = [cast(DecoderLayer, layer).source_attention for layer in self.decoder]
        return Memory([attention.project(x) for attention in attentions], mask)

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        past = state or [None] * len(self.decoder)
        start = 0 if state is None else state[0][0].size(2)
        length = tgt.size(1)
        x = self.dropout(self.embedding(tgt) + self.target_positions(start, length))
        mask = None  # a single new token sees everything, a whole target is causal: both need no tensor
        if self.window or (start and length > 1):
            mask = causal_mask(length, start + length, self.window, tgt.device)
        seen = []
        for layer, source, before in zip(self.decoder, memory.keys_values, past, strict=True):
            x, after = layer(x, mask, source, memory.mask, before)
            seen.append(after)
        return self.embedding.logits(self.decoder_norm(x)), seen

    def _local(self, mask: Tensor) -> Tensor:
        """(b, 1, 1, s) -> (b, 1, s, s): the encoder's positions see window - 1 neighbours on each side (section 4)."""
        position = torch.arange(mask.size(-1), device=mask.device)
        distance = (position[:, None] - position).abs()
        # Padding far from any real token sees itself: the softmax of nothing is not a number.
        return mask & (distance < self.window) | (distance == 0)


def _positions(config: ModelConfig) -> nn.Module:
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_positions)
    return SinusoidalPositions(config.d_model)
