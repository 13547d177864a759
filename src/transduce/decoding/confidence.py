"""Estimates the probability that a translation is good, and that each of its words is right.

Training fits a logistic regression to the translations of held-out pairs. A translation counts as good if its chrF is
at least the median of these translations. A translation is called detached if it fits its source worse than nearly all
translations of held-out text. A word counts as right if the reference contains it.
"""

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from transduce.decoding.types import Scored, WordConfidence, length_penalty
from transduce.decoding.words import words
from transduce.model_folder import CONFIDENCE
from transduce.system.errors import UserError
from transduce.tokens.spans import Span

MIN_AREA = 0.6  # minimum area under the ROC curve; a confidence below it would mislead
FARTHEST = 4.0  # larger deviations from the mean, which are rare, are clipped to this many standard deviations


def features(log_prob: float, source_tokens: int, target_tokens: int) -> tuple[float, float, float]:
    """The log-probability per target token, and the logs of the target's length and of the lengths' ratio."""
    return (
        log_prob / target_tokens,
        math.log(target_tokens),
        math.log(target_tokens / source_tokens),
    )


def word_features(
    text: str, spans: Sequence[Span], log_probs: Sequence[float]
) -> dict[Span, tuple[float, ...]]:
    """For each word, the log-probability of its pieces and the mean over the text's tokens.

    `spans` holds the pieces' spans.
    """
    mean = sum(log_probs) / len(log_probs)
    found = dict[Span, tuple[float, ...]]()
    begins = [begin for begin, _ in spans]
    ends = [max(end, begin + 1) for begin, end in spans]  # one byte: (p, p)
    for begin, end in words(text, set(begins)):
        pieces = log_probs[bisect_right(ends, begin) : bisect_left(begins, end)]
        if pieces:
            found[begin, end] = sum(pieces), mean
    return found


@dataclass(frozen=True)
class Regression:
    """A logistic regression, with the figures of its cross-validation."""

    means: tuple[float, ...]  # means of the features
    scales: tuple[float, ...]  # standard deviations of the features
    weights: tuple[float, ...]  # weights of the standardised features
    bias: float
    pairs: int  # held-out pairs that it was fitted to
    area: float  # area under the ROC curve, cross-validated
    calibration_error: float  # expected calibration error in ten bins, cross-validated

    def probability(self, values: Sequence[float]) -> float:
        """The probability that a translation or a word with these features is good."""
        standardised = (
            (x - mean) / scale
            for x, mean, scale in zip(values, self.means, self.scales, strict=True)
        )
        near = (max(-FARTHEST, min(FARTHEST, each)) for each in standardised)
        logit = self.bias + sum(weight * x for weight, x in zip(self.weights, near, strict=True))
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


@dataclass(frozen=True)
class Confidence(Regression):
    """Logistic regressions for translations and for words, and the bounds of good and of detached translations."""

    min_chrf: float  # minimum of a good translation: the median of the held-out translations
    min_log_prob: float  # mean over the tokens; a translation below it is detached
    words: Regression | None = None

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The estimate of a model, or None if its folder has none. Raises UserError if the file is damaged."""
        path = folder / CONFIDENCE
        try:
            values: dict[str, Any] = json.loads(path.read_bytes(), object_hook=_tuples)
            of_words = values.pop("words", None)
            loaded = cls(**values, words=of_words and Regression(**of_words))
            loaded.probability(features(0.0, 1, 1))  # fails unless its numbers fit
            return loaded
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError, RecursionError, ArithmeticError):
            raise UserError(
                f"{path} is damaged.", "Delete it, or replace it by another copy."
            ) from None

    def to_json(self) -> str:
        """The content of CONFIDENCE."""
        return json.dumps(asdict(self), indent=1) + "\n"


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(each) if isinstance(each, list) else each for name, each in values.items()}


def estimate(
    confidence: Confidence | None, log_prob: float, source_tokens: int, target_tokens: int
) -> tuple[float | None, bool]:
    """The probability that a translation is good, and whether it is detached. The token counts include EOS."""
    if not confidence:
        return None, False
    values = features(log_prob, source_tokens, target_tokens)
    return confidence.probability(values) if confidence.area >= MIN_AREA else None, values[
        0
    ] < confidence.min_log_prob


def scored_translation(
    confidence: Confidence | None,
    source: Sequence[int],
    log_probs: Sequence[float],
    alpha: float,
    text: str,
    spans: Sequence[Span],
) -> Scored:
    """The probability of a translation and the estimates of its quality, from the log-probabilities of its tokens.

    `alpha` is the strength of the length penalty. `spans` holds the spans of the tokens in `text`, or nothing if the
    words have no estimates.
    """
    log_prob = sum(log_probs)
    length = len(log_probs)
    of_words = tuple[WordConfidence, ...]()
    if confidence and confidence.words:
        found = word_features(text, spans, log_probs)
        of_words = tuple(
            WordConfidence(span, confidence.words.probability(each)) for span, each in found.items()
        )
    estimates = estimate(confidence, log_prob, len(source) + 1, length)
    return Scored(log_prob, length, log_prob / length_penalty(length, alpha), *estimates, of_words)
