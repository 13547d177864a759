"""The Transformer (figure 1 of the paper).

b = sentences, r = rows (hypotheses), h = heads, s = source positions, t = target positions, v = vocabulary.
"""

from typing import cast

import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.embedding import Embedding, make_positions
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.seq2seq import Memory, Seq2Seq, State


class Transformer(Seq2Seq):
    """State: per decoder layer, the keys and values (r, h, t, d) of the tokens decoded so far."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.max_positions = config.max_positions if config.positions == "learned" else None
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.source_embedding = (
            Embedding(config.source_vocab_size, config.d_model) if config.source_vocab_size else None
        )
        self.source_positions = make_positions(config)
        self.target_positions = make_positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config, layer) for layer in range(config.num_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.num_decoder_layers))
        # Pre-norm leaves the last sum unnormalised; the paper's post-norm needs no final norm.
        pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None

    def encode(self, src: Tensor) -> Memory:
        """src (b, s) -> the keys and values of the source, for every decoder layer."""
        mask = (src != PAD)[:, None, None, :]  # (b, 1, 1, s)
        embed = self.source_embedding or self.embedding
        x = self.dropout(embed(src) + self.source_positions(0, src.size(1)))
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        attentions = [cast(DecoderLayer, layer).source_attention for layer in self.decoder]
        return Memory([attention.project(x) for attention in attentions], mask)

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        past = state or [None] * len(self.decoder)
        start = 0 if state is None else state[0][0].size(2)
        x = self.dropout(self.embedding(tgt) + self.target_positions(start, tgt.size(1)))
        new_state = []
        for layer, source, before in zip(self.decoder, memory.keys_values, past, strict=True):
            x, keys_values = layer(x, source, memory.mask, before)
            new_state.append(keys_values)
        logits = self.embedding.logits(self.decoder_norm(x))
        return logits if self.output_bias is None else logits + self.output_bias, new_state
