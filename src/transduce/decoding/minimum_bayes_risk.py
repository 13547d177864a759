"""Minimum Bayes risk: prefers the translation that is most similar to all others (Eikema and Aziz, 2022)."""

import math
from collections.abc import Mapping

from transduce.decoding.types import Hypothesis


def by_expected_chrf(hypotheses: Mapping[str, Hypothesis]) -> dict[str, Hypothesis]:
    """The hypotheses by their texts, ordered by expected chrF, best first.

    The expected chrF of a text is its mean sentence chrF with all texts of the mapping as references, weighted by
    exp(score). Because of the length penalty, these weights are flatter than the model's probabilities.
    """
    from sacrebleu.metrics.chrf import CHRF  # here, because most searches do not need it

    metric, highest = CHRF(), max((hypothesis.score for hypothesis in hypotheses.values()), default=0.0)
    weights = {text: math.exp(hypothesis.score - highest) for text, hypothesis in hypotheses.items()}
    expected = {
        text: sum(weight * metric.sentence_score(text, [other]).score for other, weight in weights.items())
        for text in hypotheses
    }
    return dict(sorted(hypotheses.items(), key=lambda each: -expected[each[0]]))
