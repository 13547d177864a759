"""Blockwise parallel decoding: a greedy search in which the model predicts k tokens at once (Stern et al., 2018).

r = rows (hypotheses), t = target positions, k = model.block_size, n = tokens in a block, v = vocabulary.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn

from transduce.config.schema import BOS, EOS, DecodeConfig, ModelConfig
from transduce.decoding.beam import forbid
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.torch_engine import open_engine as open_torch
from transduce.decoding.types import (
    Hypothesis,
    ModelToOpen,
    NBestLists,
    Refusal,
    Request,
    length_penalty,
)
from transduce.model.seq2seq import State, source_tensor
from transduce.model.transformer import FeedForward, Residual, Transformer
from transduce.system.profiling import count, phase
from transduce_lab.options import BlockwiseOptions


class Head(nn.Module):
    """Predicts a token after the next one from the decoder's output, by a feed-forward layer and a residual sum."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.feed_forward = FeedForward(config)
        self.residual = Residual(config)

    def forward(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> the same shape, from which the logits are computed."""
        y: Tensor = self.residual(x, self.feed_forward)
        return y


class Ahead(nn.Module):
    """The heads of a Transformer for the second, third … k-th of the next tokens."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(config) for _ in range(BlockwiseOptions.of(config).block_size - 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Replace half of the rows by the outputs of heads, for training: (r, t, d_model) -> the same shape.

        In a row of the head that predicts i tokens further, position p comes from position p - i. So the logits at each
        position are for the same token in all rows, and the loss needs no change. The first i positions are not
        changed. Stern et al. draw one head for each batch.
        """
        others = len(self.heads)
        # Drawn on the CPU, so equal on a GPU. A row with a number below 1 does not change.
        chosen = torch.randint(2 * others, (x.size(0),)) - others + 1
        mixed = x.clone()
        for i, head in enumerate(self.heads, start=1):
            rows = (chosen == i).nonzero().squeeze(1).to(x.device)
            mixed[rows, i:] = head(x[rows, :-i]).to(x.dtype)
        return mixed


def make_heads(config: ModelConfig) -> Ahead | None:
    """Make the heads of a Transformer, or none if it predicts one token at a time."""
    return Ahead(config) if BlockwiseOptions.of(config).block_size > 1 else None


@phase("search")
@torch.inference_mode()
def search_in_blocks(model: Transformer, source: Tensor, limit: int, alpha: float) -> Hypothesis:
    """Find the translation of greedy search for source ids (1, s). Counts "hypotheses" and "decoder calls".

    A call of the decoder reads a block: the last token and the tokens that the heads predicted after it. Tokens are
    accepted up to the first token that greedy search would not choose; greedy search's token replaces it.
    """
    with phase("encode"):
        memory = model.encode(source)
    count("source tokens", source.numel())
    count("sentences", 1)
    tokens = list[int]()
    block = [BOS]
    state = cast(State, None)
    total = 0.0
    while EOS not in tokens:
        with phase("decode"):
            x, state = model.decoder_output(
                torch.tensor([block], device=source.device), memory, state
            )
            log_probs = model.logits(x)[0].float().log_softmax(dim=-1)  # (n, v)
        lengths = torch.arange(len(tokens), len(tokens) + len(block), device=source.device)
        forbid(log_probs[:, None], lengths >= limit)
        scores, best = (each.tolist() for each in log_probs.max(dim=-1))
        right = next((i for i, token in enumerate(block[1:]) if token != best[i]), len(block) - 1)
        tokens += best[: right + 1]
        total += sum(scores[: right + 1])
        count("decoder calls", 1)
        count("hypotheses", right + 1)
        state = [(keys[:, :, : len(tokens)], values[:, :, : len(tokens)]) for keys, values in state]
        block = (tokens[-1:] + predict(model, x[:, right]))[: limit + 1 - len(tokens)]
    return Hypothesis(total / length_penalty(len(tokens), alpha), tokens[:-1])


def predict(model: Transformer, x: Tensor) -> list[int]:
    """The tokens that the heads predict after the next one, without EOS, from the decoder's output x (1, d_model)."""
    outputs = torch.stack([head(x) for head in cast(Ahead, model.ahead).heads])
    predicted = model.logits(outputs).argmax(dim=-1).flatten().tolist()
    return predicted[: predicted.index(EOS)] if EOS in predicted else predicted


class BlockwiseEngine(TorchEngine):
    """The torch engine, with greedy search in blocks."""

    def run(self, request: Request, config: DecodeConfig, n_best: int) -> NBestLists:
        """Search sentence by sentence; with constraints, prefixes or without repetitions, as the torch engine does."""
        is_free = not (config.no_repeat_ngram or request.selector or request.token_filter)
        if config.beam_size > 1 or not is_free:
            return super().run(request, config, n_best)
        model = cast(Transformer, self.models[0].eval())
        alpha = config.length_penalty
        sources = (source_tensor([ids]).to(self.device) for ids in request.sources)
        found = [
            search_in_blocks(model, *each, alpha)
            for each in zip(sources, request.limits, strict=True)
        ]
        # Nan: the weights are damaged.
        return [[each] if each.score > -math.inf else [] for each in found]


def open_engine(model: ModelToOpen) -> TorchEngine | Refusal:
    """Open the engine for greedy search with a model that has heads."""
    if model.config.decode.beam_size > 1:
        return Refusal("it needs greedy search, decode.beam_size=1")
    if len(model.folders) > 1 or BlockwiseOptions.of(model.config.model).block_size == 1:
        return Refusal("it needs one model that was trained with model.block_size above 1")
    return open_torch(model, name="blockwise", engine=BlockwiseEngine)
