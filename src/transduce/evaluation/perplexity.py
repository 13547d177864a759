"""Perplexity of references: how many equally likely choices the model has left, per token and per word."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Validation(NamedTuple):
    """What the loop learns from validating."""

    perplexity: float  # per target token, without label smoothing
    bleu: float | None  # by greedy search; None for symbols, which it is not made for

    def __str__(self) -> str:
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.1f} (greedy)"
        return f"validation perplexity {self.perplexity:.2f}{bleu}"


class Perplexity(NamedTuple):
    """Both figures; only the one per word can be compared between models with different vocabularies."""

    per_token: float
    per_word: float
    num_tokens: int  # pieces, EOS counted
    num_words: int  # separated by white space, and one per sentence for its end


def perplexity(log_probs: Sequence[float], num_tokens: Sequence[int], references: Sequence[str]) -> Perplexity:
    """exp(-sum of log-probabilities / number of tokens or words), over the whole text and not a mean of sentences.

    log_probs: ln p(reference | source) of every sentence by forced decoding, without label smoothing, EOS included.
    num_tokens: how many tokens each of them is the sum of, EOS counted; a sentence of none (a blank line, which no
    model is asked about) counts for nothing. Without any tokens both figures are nan.
    """
    log_prob, tokens, words = math.fsum(log_probs), sum(num_tokens), 0
    for reference, count in zip(references, num_tokens, strict=True):
        words += len(reference.split()) + 1 if count else 0
    return Perplexity(_exponential(log_prob, tokens), _exponential(log_prob, words), tokens, words)


def _exponential(log_prob: float, count: int) -> float:
    """An untrained model on long words can have more than a float can hold: inf."""
    if not count:
        return math.nan
    nats = -log_prob / count
    return math.exp(nats) if nats < 700 else math.inf
