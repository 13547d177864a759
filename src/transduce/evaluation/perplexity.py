"""Perplexity of references: how many equally likely choices the model has left, per token and per word."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Validation(NamedTuple):
    """The result of a validation during training."""

    perplexity: float  # per target token, without label smoothing
    bleu: float | None  # by greedy search; None for symbols, which BLEU is not made for

    def __str__(self) -> str:
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.1f} (greedy)"
        return f"validation perplexity {self.perplexity:.2f}{bleu}"


class Perplexity(NamedTuple):
    """Perplexity per token and per word; only the latter compares models with different vocabularies."""

    per_token: float
    per_word: float
    num_tokens: int  # pieces, EOS counted
    num_words: int  # separated by white space; the end of each sentence counts as one


def perplexity(log_probs: Sequence[float], num_tokens: Sequence[int], references: Sequence[str]) -> Perplexity:
    """exp(-sum of log-probabilities / number of tokens or words), over the whole text and not a mean of sentences.

    log_probs: ln p(reference | source) of every sentence by forced decoding, EOS included. num_tokens: of every
    sentence, EOS counted; 0 for a blank line, which does not count. NaN if there are no tokens.
    """
    log_prob, tokens = math.fsum(log_probs), sum(num_tokens)
    counted = (reference for reference, count in zip(references, num_tokens, strict=True) if count)
    words = sum(len(reference.split()) + 1 for reference in counted)
    return Perplexity(_exponential(log_prob, tokens), _exponential(log_prob, words), tokens, words)


def _exponential(log_prob: float, count: int) -> float:
    """exp(-log_prob / count); infinity where a float can't hold it, as for an untrained model."""
    if not count:
        return math.nan
    nats = -log_prob / count
    return math.exp(nats) if nats < 700 else math.inf
