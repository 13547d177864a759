"""Compute log-probabilities of the next token with one model or an ensemble.

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, v = vocabulary.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from transduce.config.schema import PAD
from transduce.model.seq2seq import Batch, Seq2Seq, State, select, target_log_probs
from transduce.system.profiling import count, phase


class Stepper(Protocol):
    """Computes log-probabilities of the next token for a search."""

    device: torch.device

    def __call__(self, tokens: Tensor) -> Tensor:
        """Last token of each row (r,) -> next log-probabilities (r, v), a tensor that the caller may overwrite."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep the rows at the indices `rows`, in this order. If `sentences` is set, keep only these sentences."""


class ModelStepper:
    """Averages the next-token probabilities of one or more models, and sets the models to eval mode."""

    @phase("encode")
    @torch.inference_mode()
    def __init__(self, models: Sequence[Seq2Seq], src: Tensor):
        """`src` (b, s) holds source ids with EOS after each sentence, on the models' device."""
        self.models = [model.eval() for model in models]
        self.memories = [model.encode(src) for model in self.models]
        self.states: list[State] = [None] * len(models)
        self.device = src.device
        count("source tokens", src.numel())
        count("sentences", len(src))

    @phase("decode")
    @torch.inference_mode()
    def __call__(self, tokens: Tensor) -> Tensor:
        """Last token of each row (r,) -> log-probabilities (r, v) of the next token."""
        count("hypotheses", tokens.numel())
        return average([self.log_probs(number, tokens) for number in range(len(self.models))])

    def log_probs(self, number: int, tokens: Tensor) -> Tensor:
        """The log-probabilities (r, v) of the next token after `tokens` (r,), of the model with this number."""
        logits, self.states[number] = self.models[number].decode(
            tokens[:, None], self.memories[number], self.states[number]
        )
        return logits[:, -1].float().log_softmax(dim=-1)

    @phase("decode")
    @torch.inference_mode()
    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.states = [select(state, rows) for state in self.states]
        if sentences is not None:
            self.memories = [select(memory, sentences) for memory in self.memories]


def average(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the models' mean probability, from one tensor of log-probabilities per model."""
    if len(log_probs) == 1:
        return log_probs[0]
    return reduce(torch.logaddexp, log_probs) - math.log(len(log_probs))


@torch.inference_mode()
def forced_log_probs(models: Sequence[Seq2Seq], batch: Batch) -> Tensor:
    """Log-probabilities (b, t) of target tokens and EOS, and 0 at padding. Sets the models to eval mode."""
    each = [
        target_log_probs(model.eval()(batch.src, batch.tgt_in), batch.tgt_out) for model in models
    ]
    return average(each).masked_fill(batch.tgt_out == PAD, 0.0)
