"""The Transformer (figure 1 of the paper) and its layers (sections 3.1 and 3.3).

b = sentences, r = rows (hypotheses), h = heads, s = source positions, t = target positions, v = vocabulary.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.families import make_part
from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import KeyValues, make_attention
from transduce.model.embedding import Dropout, Embedding, make_positions
from transduce.model.seq2seq import Memory, Packing, Seq2Seq, State


def make_norm(config: ModelConfig) -> nn.Module:
    """Layer normalization, or RMSNorm (Zhang and Sennrich, 2019)."""
    if config.rms_norm:
        return nn.RMSNorm(config.d_model, eps=1e-5)
    return nn.LayerNorm(config.d_model, bias=config.bias)


class Residual(nn.Module):
    """x + dropout(sublayer(x)), with layer norm after the sum (norm "post") or before the sublayer (norm "pre")."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = make_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x (r, t, d_model) -> the same shape."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))

    def with_state(
        self, x: Tensor, sublayer: Callable[[Tensor], tuple[Tensor, KeyValues]]
    ) -> tuple[Tensor, KeyValues]:
        """Like `forward`, for a sublayer that returns an output and a new state; returns both."""
        y, state = sublayer(self.norm(x) if self.pre else x)
        x = x + self.dropout(y)
        return x if self.pre else self.norm(x), state


class FeedForward(nn.Module):
    """The position-wise feed-forward layer (section 3.3); with the activation swiglu, with a gate (Shazeer, 2020)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.activation = F.silu if config.activation == "swiglu" else getattr(F, config.activation)
        self.inner = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.gate = (
            nn.Linear(config.d_model, config.d_ff, bias=config.bias)
            if config.activation == "swiglu"
            else None
        )
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> the same shape."""
        inner = self.activation(self.inner(x))
        return self.out(inner if self.gate is None else inner * self.gate(x))


def make_feed_forward(config: ModelConfig, layer: int) -> nn.Module:
    """Make the feed-forward module of a layer, or the module that the model's options put in its place.

    `layer` counts from 0.
    """
    other: nn.Module | None = make_part("feed-forward", config, layer) if config.more else None
    return other or FeedForward(config)


class EncoderLayer(nn.Module):
    """An encoder layer with self-attention and a feed-forward layer (left half of figure 1)."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.attention = make_attention(config, to_self=True)
        self.feed_forward = make_feed_forward(config, layer)
        self.residual = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (b, s, d_model), mask (b, 1, 1, s) -> (b, s, d_model)."""
        x = self.residual[0](x, lambda x: self.attention(x, self.attention.project(x), mask))
        return self.residual[1](x, self.feed_forward)


class DecoderLayer(nn.Module):
    """A decoder layer with causal self-attention, attention to the source and feed-forward (right half of figure 1)."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.attention = make_attention(config, to_self=True)
        self.source_attention = make_attention(config, to_self=False)
        self.feed_forward = make_feed_forward(config, layer)
        self.residual = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        source: KeyValues,
        source_mask: Tensor,
        past: KeyValues | None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, KeyValues]:
        """x (r, t, d_model) -> output (r, t, d_model), and keys and values of all tokens, including those in `past`.

        `mask` (r, 1, t, t) replaces the causal mask.
        """
        first = cast(Residual, self.residual[0])
        x, keys_values = first.with_state(x, lambda x: self.attend_to_self(x, past, mask))
        x = self.residual[1](x, lambda x: self.source_attention(x, source, source_mask))
        return self.residual[2](x, self.feed_forward), keys_values

    def attend_to_self(
        self, x: Tensor, past: KeyValues | None, mask: Tensor | None = None
    ) -> tuple[Tensor, KeyValues]:
        """x (r, t, d_model) -> (r, t, d_model), and keys and values of all tokens, including those in `past`."""
        start = 0 if past is None else past[0].size(2)
        k, v = self.attention.project(x, start)
        if past is not None:
            k = torch.cat((past[0], k), 2)
            v = torch.cat((past[1], v), 2)
        return self.attention(x, (k, v), mask, causal=mask is None), (k, v)


class Transformer(Seq2Seq):
    """The Transformer. Its state holds each decoder layer's keys and values (r, h, t, d) of the tokens so far."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.target_tag = config.target_tag
        # Rotated queries would need their positions, too.
        self.packs = not (config.more or config.target_tag or config.positions == "rotary")
        self.zero_start = config.zero_start
        # One position of the decoder may be for a tag.
        learned = config.max_positions - config.target_tag
        self.max_positions = learned if config.positions == "learned" else None
        self.embedding = Embedding(config.vocab_size, config.d_model)
        # Reads sources that are not text: src (b, s) -> vectors (b, p, d_model) of positions, and their mask (b, p).
        self.front_end: nn.Module | None = make_part("front end", config) if config.more else None
        self.source_embedding = (
            Embedding(config.source_vocab_size, config.d_model)
            if config.source_vocab_size and not self.front_end
            else None
        )
        self.source_positions = make_positions(config)
        self.target_positions = make_positions(config)
        self.dropout = Dropout(config.dropout)
        normalised = config.embedding_norm
        self.source_norm = make_norm(config) if normalised else nn.Identity()
        self.target_norm = make_norm(config) if normalised else nn.Identity()
        self.encoder = nn.ModuleList(
            EncoderLayer(config, layer) for layer in range(config.num_encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(config, layer) for layer in range(config.num_decoder_layers)
        )
        # With pre-norm the last sum is not normalised yet; the paper's post-norm needs no final norm.
        pre = config.norm == "pre"
        self.encoder_norm = make_norm(config) if pre else nn.Identity()
        self.decoder_norm = make_norm(config) if pre else nn.Identity()
        self.output_bias = (
            nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        )
        # In training, heads that predict further tokens can follow the last layer.
        self.ahead: nn.Module | None = make_part("heads ahead", config) if config.more else None

    def encode(self, src: Tensor, packing: Packing | None = None) -> Memory:
        """src (b, s) -> the keys and values of the source, for every decoder layer."""
        tag = None
        if self.target_tag:
            tag, src = src.split((1, src.size(1) - 1), dim=1)
        # (b, 1, 1, s) or (b, 1, s, s).
        mask = packing.source_mask if packing else (src != PAD)[:, None, None, :]
        start = packing.source_positions if packing else 0
        if self.front_end:
            x, has_values = self.front_end(src)
            mask = has_values[:, None, None, :]
        else:
            x = (self.source_embedding or self.embedding)(src)
        x = self.dropout(self.source_norm(x + self.source_positions(start, x.size(1))))
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        attentions = [cast(DecoderLayer, layer).source_attention for layer in self.decoder]
        if packing:
            mask = packing.cross_mask
        return Memory([attention.project(x) for attention in attentions], mask, tag)

    def decode(self, tgt: Tensor, memory: Memory, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        x, new_state = self.decoder_output(tgt, memory, state)
        return self.logits(x), new_state

    def forward(self, src: Tensor, tgt: Tensor, packing: Packing | None = None) -> Tensor:
        """src (b, s), tgt (b, t) -> logits (b, t, v)."""
        x, _ = self.decoder_output(tgt, self.encode(src, packing), packing=packing)
        return self.logits(self.ahead(x) if self.ahead and self.training else x)

    def decoder_output(
        self, tgt: Tensor, memory: Memory, state: State = None, packing: Packing | None = None
    ) -> tuple[Tensor, State]:
        """tgt (r, t) -> output of the last decoder layer (r, t, d_model), and the new state."""
        past = state or [None] * len(self.decoder)
        start = 0 if state is None else state[0][0].size(2)
        mask = None
        if packing:
            start = packing.target_positions
            mask = packing.target_mask
        tag = memory.tag if state is None else None
        if tag is not None:
            tags = tag.repeat_interleave(len(tgt) // len(tag), dim=0)
            tgt = torch.cat((tgt[:, :1], tags, tgt[:, 1:]), dim=1)
        embedded = self.embedding(tgt)
        if self.zero_start and packing:
            embedded = embedded.masked_fill((packing.target_positions == 0)[..., None], 0.0)
        elif self.zero_start and state is None:
            embedded = F.pad(embedded[:, 1:], (0, 0, 1, 0))
        embedded = embedded + self.target_positions(start, tgt.size(1))
        x = self.dropout(self.target_norm(embedded))
        new_state = []
        for layer, source, before in zip(self.decoder, memory.keys_values, past, strict=True):
            x, keys_values = layer(x, source, memory.mask, before, mask)
            new_state.append(keys_values)
        # What follows BOS is the tag: known, and no part of the translation.
        return self.decoder_norm(x if tag is None else x[:, 1:]), new_state

    def logits(self, x: Tensor) -> Tensor:
        """Output of the decoder (r, t, d_model) -> logits (r, t, v)."""
        logits = self.embedding.logits(x)
        return logits if self.output_bias is None else logits + self.output_bias
