"""Minimum Bayes risk: prefers the translation that is most similar to all others (Eikema and Aziz, 2022)."""

import math
from collections.abc import Mapping

from transduce.decoding.types import Hypothesis, length_penalty


def by_expected_chrf(hypotheses: Mapping[str, Hypothesis], alpha: float) -> dict[str, Hypothesis]:
    """The hypotheses by their texts, ordered by expected chrF, best first.

    The expected chrF of a text is its mean sentence chrF with all texts of the mapping as references, weighted by their
    probabilities. `alpha` is the exponent of the length penalty in the scores.
    """
    from sacrebleu.metrics.chrf import CHRF  # imported here because most searches do not need it

    log_probs = {
        text: score * length_penalty(len(tokens) + 1, alpha)
        for text, (score, tokens) in hypotheses.items()
    }
    metric = CHRF()
    highest = max(log_probs.values())
    weights = {text: math.exp(log_prob - highest) for text, log_prob in log_probs.items()}
    expected = {
        text: sum(
            weight * metric.sentence_score(text, [other]).score for other, weight in weights.items()
        )
        for text in hypotheses
    }
    return dict(sorted(hypotheses.items(), key=lambda each: -expected[each[0]]))
