"""Estimates the probability that a translation is good, from its own probability and its length.

Training fits a logistic regression to the translations of held-out pairs. A translation counts as good if its chrF is
at least the median of these translations. A translation is called detached if it fits its source so badly that hardly
any translation of held-out text does.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from transduce.model_folder import CONFIDENCE
from transduce.system.errors import UserError

FEATURES = (
    "mean log-probability of the target tokens",
    "logarithm of the number of target tokens",
    "logarithm of the number of target tokens per source token",
)


def features(log_prob: float, source_tokens: int, target_tokens: int) -> tuple[float, float, float]:
    """The FEATURES of a translation, whose token counts include EOS."""
    return log_prob / target_tokens, math.log(target_tokens), math.log(target_tokens / source_tokens)


@dataclass(frozen=True)
class Confidence:
    """A logistic regression on FEATURES, with the figures of its cross-validation."""

    means: tuple[float, ...]  # of the features
    scales: tuple[float, ...]  # their standard deviations
    weights: tuple[float, ...]  # of the standardised features
    bias: float
    min_chrf: float  # of a good translation: the median of the held-out translations
    min_log_prob: float  # mean over the tokens; a translation below it is detached
    pairs: int  # held-out pairs that the regression was fitted to
    area: float  # under the ROC curve, cross-validated
    calibration_error: float  # expected, in ten bins, cross-validated

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The estimate of a model, or None if its folder has none. Raises UserError if the file is damaged."""
        path = folder / CONFIDENCE
        try:
            content = json.loads(path.read_bytes()).items()
            values: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in content}
            return cls(**values)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            raise UserError(f"{path} is damaged. Delete it, or replace it by another copy.") from None

    def to_json(self) -> str:
        """The content of CONFIDENCE."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def probability(self, values: Sequence[float]) -> float:
        """The probability that a translation with these features is good."""
        standardised = ((x - mean) / scale for x, mean, scale in zip(values, self.means, self.scales, strict=True))
        logit = self.bias + sum(weight * x for weight, x in zip(self.weights, standardised, strict=True))
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))

    def is_detached(self, values: Sequence[float]) -> bool:
        """Whether a translation with these features has hardly anything to do with its source."""
        return values[0] < self.min_log_prob


def estimate(
    confidence: Confidence | None, log_prob: float, source: Sequence[int], target: Sequence[int]
) -> tuple[float | None, bool]:
    """The probability that a translation is good, and whether it is detached, from its ids without EOS."""
    if not confidence:
        return None, False
    values = features(log_prob, len(source) + 1, len(target) + 1)
    return confidence.probability(values), confidence.is_detached(values)
