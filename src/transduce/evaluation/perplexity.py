"""The perplexity of a model on reference translations, per token and per word."""

import math
from collections.abc import Sequence
from typing import NamedTuple

MIN_BLEU = 1.0  # below it, BLEU and chrF do not tell a better model from a worse one


class Validation(NamedTuple):
    """The result of a validation during training."""

    perplexity: float  # per target token, without label smoothing
    # BLEU by greedy search; None if the targets are symbols, or if the perplexity is infinite.
    bleu: float | None = None
    chrf: float | None = None  # chrF of the same translations
    general: float | None = None  # chrF on the validation pairs of data.remember
    general_perplexity: float | None = None  # on the same pairs

    def __str__(self) -> str:
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.1f} (greedy)"
        general = ""
        if self.general is not None:
            general = f", chrF {self.chrf:.1f}, other text {self.general:.1f}"
        elif self.general_perplexity is not None:
            general = f", other text {shown(self.general_perplexity)}"
        return f"validation perplexity {shown(self.perplexity)}{bleu}{general}"

    def cost(self, select_by: str) -> float:
        """The score of train.select_by, lower for better models; the perplexity while BLEU is below MIN_BLEU.

        With data.remember, what the general text loses counts as much as what the new text gains.
        """
        if self.general_perplexity is not None:
            return -sum(self.qualities(select_by))
        score = {"bleu": self.bleu, "chrf": self.chrf}.get(select_by)
        return (
            self.perplexity
            if score is None or self.bleu is None or self.bleu < MIN_BLEU
            else -score
        )

    def qualities(self, select_by: str) -> tuple[float, float]:
        """How good the model is on the new text and on that of data.remember, by chrF.

        With train.select_by=perplexity, and without chrF: by the mean log-probability of a token.
        """
        if select_by == "perplexity" or self.chrf is None:
            return _log_prob(self.perplexity), _log_prob(self.general_perplexity)
        return self.chrf, self.general or 0.0


def _log_prob(perplexity: float | None) -> float:
    """The mean log-probability of a token, or a very low one if it is not finite."""
    return -min(math.log(perplexity or 1.0), 700.0)


def shown(perplexity: float) -> str:
    """A perplexity with two decimals, or in scientific notation from a million on."""
    return f"{perplexity:{'.2f' if perplexity < 1e6 else '.2e'}}"


def mean_validation(results: Sequence[Validation]) -> Validation | None:
    """The means over several directions, the geometric mean for perplexity, or None without results."""
    if len(results) < 2:
        return results[0] if results else None
    perplexity = _exponential(
        -math.fsum(math.log(each.perplexity) for each in results), len(results)
    )
    means = (
        None if None in values else math.fsum(values) / len(results)
        for values in zip(*(r[1:] for r in results), strict=True)
    )
    return Validation(perplexity, *means)


class Perplexity(NamedTuple):
    """Perplexity per token and per word. Across vocabularies, only the perplexity per word is comparable."""

    per_token: float
    per_word: float
    num_tokens: int  # pieces, EOS counted
    num_words: int  # separated by white space; the end of each sentence counts as one


def perplexity(
    log_probs: Sequence[float], num_tokens: Sequence[int], references: Sequence[str]
) -> Perplexity:
    """Compute the perplexity of a whole text per token and per word, or NaN if there are no tokens.

    `log_probs` holds ln p(reference | source) of each sentence, EOS included. `num_tokens` holds the number of tokens
    of each reference with EOS, and 0 for blank lines.
    """
    log_prob = math.fsum(log_probs)
    tokens = sum(num_tokens)
    counted = (reference for reference, count in zip(references, num_tokens, strict=True) if count)
    words = sum(len(reference.split()) + 1 for reference in counted)
    return Perplexity(_exponential(log_prob, tokens), _exponential(log_prob, words), tokens, words)


def _exponential(log_prob: float, count: int) -> float:
    """exp(-log_prob / count), or infinity if this is too large for a float, or NaN if `count` is 0."""
    if not count:
        return math.nan
    nats = -log_prob / count
    return math.exp(nats) if nats < 700 else math.inf
