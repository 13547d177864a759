"""The laws of minimum Bayes risk: it chooses from the beam, and prefers what resembles the rest of the beam."""

import itertools
import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from phrases import SOURCES, phrases
from transduce.decoding.minimum_bayes_risk import by_expected_chrf
from transduce.decoding.types import (
    Hypothesis,
)

TEXTS = st.lists(st.text("abc ", min_size=1, max_size=8), min_size=1, max_size=6, unique=True)


@given(TEXTS, st.data())
def test_the_first_text_has_the_highest_expected_chrf(
    texts: list[str], data: st.DataObject
) -> None:
    scores = data.draw(st.lists(st.floats(-9, 0), min_size=len(texts), max_size=len(texts)))
    hypotheses = {text: Hypothesis(score, []) for text, score in zip(texts, scores, strict=True)}

    def expected(text: str) -> float:
        chrf = CHRF()
        weighted = [
            math.exp(score) * chrf.sentence_score(text, [other]).score
            for other, (score, _) in found.items()
        ]
        return sum(weighted) / sum(math.exp(score) for score in scores)

    found = by_expected_chrf(hypotheses, 0.0)
    assert found == hypotheses
    values = list(map(expected, found))
    assert all(first > second - 1e-6 for first, second in itertools.pairwise(values))


def test_a_text_that_resembles_others_beats_the_most_probable_one() -> None:
    hypotheses = {"zzz": -0.5, "a red house": -0.6, "a red horse": -0.6, "the red house": -0.6}
    ordered = by_expected_chrf(
        {text: Hypothesis(score, []) for text, score in hypotheses.items()}, 0.0
    )
    assert next(iter(ordered)) == "a red house" and list(ordered)[-1] == "zzz"
    assert (
        next(
            iter(
                by_expected_chrf(
                    {"zzz": Hypothesis(-0.5, []), "a red house": Hypothesis(-50, [])}, 0.0
                )
            )
        )
        == "zzz"
    )


def test_minimum_risk_orders_the_beam_by_expected_chrf(translator):
    sources = [
        *phrases(5, seed=3),
        "zebra",
        "dog zebra cat",
        *(" ".join(SOURCES[i : i + 4]) for i in range(10)),
    ]
    mbr = replace(translator, config=replace(translator.config, mbr="chrf", retry_loops=False))
    plain = replace(translator, config=replace(translator.config, retry_loops=False))
    changed = 0
    for n_best in (1, 2, 4):
        found = mbr.translate(sources, n_best=n_best)
        for best, other in zip(plain.translate(sources, n_best=4), found, strict=True):
            beam = {
                each.text: Hypothesis(each.score, list(each.tokens))
                for each in (best, *best.alternatives)
            }
            chosen = [(each.text, each.score) for each in (other, *other.alternatives)]
            ordered = by_expected_chrf(beam, mbr.config.length_penalty)
            assert chosen == [(text, score) for text, (score, _) in ordered.items()][:n_best]
            changed += best.text != other.text
    assert changed


def test_the_probability_counts_the_end_of_a_hypothesis() -> None:
    """Texts without a common letter: the more probable one is first. The length penalties are 1 and 2."""
    for score, first in ((-0.48, "y"), (-0.52, "x")):
        hypotheses = {"x": Hypothesis(-1.0, []), "y": Hypothesis(score, [4] * 6)}
        assert next(iter(by_expected_chrf(hypotheses, 1.0))) == first
