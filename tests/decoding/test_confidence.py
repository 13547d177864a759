"""Tests of transduce/decoding/confidence.py."""

import dataclasses
import json
import math

import pytest

from fitted import CHRF, VALUES
from transduce.decoding.confidence import (
    FARTHEST,
    Confidence,
    Regression,
    estimate,
    features,
    scored_translation,
    word_features,
)
from transduce.decoding.types import WordConfidence
from transduce.evaluation.calibration import (
    fit,
)
from transduce.model_folder import CONFIDENCE
from transduce.system.errors import UserError


def test_features_by_hand():
    assert features(-6.0, 3, 6) == pytest.approx((-1.0, math.log(6), math.log(2)))


def test_features_of_words_by_hand():
    spans, log_probs = [(0, 3), (3, 5), (5, 5), (5, 11)], [-1.0, -2.0, -0.5, -0.25, -0.25]
    assert word_features("Haus, weit", spans[:2], log_probs) == {
        (0, 4): (-3, -0.8),
        (4, 5): (-2, -0.8),
    }
    assert word_features("Haus, weit", [], log_probs) == {}
    assert word_features("Haus, weit", spans, log_probs)[6, 10] == (-0.25, -0.8)
    of_bytes = [(0, 1), (1, 2), (2, 2), (2, 2), (2, 2), (2, 3)]
    assert word_features("a 😀", of_bytes, [-1.0] * 6)[2, 3] == (-4, -1)


def test_confidence_survives_saving_and_loading(tmp_path):
    confidence = fit(VALUES, CHRF)
    assert Confidence.load(tmp_path) is None
    (tmp_path / CONFIDENCE).write_text(confidence.to_json())
    assert Confidence.load(tmp_path) == confidence
    of_words = Regression((0.0,) * 3, (1.0,) * 3, (0.1, 0.2, 0.3), 0.5, 100, 0.9, 0.1)
    (tmp_path / CONFIDENCE).write_text(dataclasses.replace(confidence, words=of_words).to_json())
    assert Confidence.load(tmp_path) == dataclasses.replace(confidence, words=of_words)
    values = dataclasses.asdict(confidence)
    no_scale = json.dumps(values | {"scales": [0] * 3})
    deep = "[" * 100_000
    for damaged in (
        "",
        "[]",
        "null",
        deep,
        json.dumps(values | {"more": 1}),
        json.dumps({"bias": 1}),
        no_scale,
    ):
        (tmp_path / CONFIDENCE).write_text(damaged)
        with pytest.raises(UserError, match=r"confidence\.json is damaged"):
            Confidence.load(tmp_path)
    (tmp_path / CONFIDENCE).unlink()
    (tmp_path / CONFIDENCE).mkdir()
    with pytest.raises(UserError, match=r"confidence\.json is damaged"):
        Confidence.load(tmp_path)


FIGURES = {"pairs": 100, "area": 0.9, "calibration_error": 0.1}


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def test_the_probability_by_hand():
    regression = Regression((1.0, -2.0), (0.5, 4.0), (2.0, -3.0), 0.25, **FIGURES)
    # (1.5 - 1) / 0.5 is 1, (-4 + 2) / 4 is -0.5.
    assert regression.probability((1.5, -4.0)) == pytest.approx(logistic(0.25 + 2 + 1.5))
    far = regression.probability((1.0 + 0.5 * FARTHEST, -2.0))
    assert far == pytest.approx(logistic(0.25 + 8)) == regression.probability((99.0, -2.0))
    assert regression.probability((-99.0, -2.0)) == pytest.approx(logistic(0.25 - 8))
    sure = Regression((0.0,), (1.0,), (100.0,), 0.0, **FIGURES)
    assert sure.probability((1.0,)) == pytest.approx(1) and 0 < sure.probability((-1.0,)) < 1e-20


def made(**changes: object) -> Confidence:
    words = Regression((0.0, 0.0), (1.0, 1.0), (1.0, 0.5), 0.5, **FIGURES)
    values = {"means": (0.0,) * 3, "scales": (1.0,) * 3, "weights": (1.0, 0.5, 0.25), "bias": 0.1}
    return Confidence(
        **(values | FIGURES | {"min_chrf": 50, "min_log_prob": -1.5, "words": words} | changes)
    )


def test_an_estimate_by_hand():
    assert estimate(None, -3.0, 4, 2) == (None, False)
    assert estimate(made(), -3.0, 4, 2) == (
        pytest.approx(logistic(0.1 - 1.5 + 0.5 * math.log(2) + 0.25 * math.log(0.5))),
        False,  # -1.5 a token is not below -1.5
    )
    assert estimate(made(area=0.6), -3.1, 4, 2)[1] is True
    assert estimate(made(area=0.6), -3.0, 4, 2)[0] is not None
    assert estimate(made(area=0.59), -3.1, 4, 2) == (None, True)


def test_a_scored_translation_by_hand():
    found = scored_translation(
        made(), [7, 8, 9], [-1.0, -2.0, -0.5], 1.0, "a dog", [(0, 1), (1, 5)]
    )
    assert (found.log_prob, found.num_tokens) == (-3.5, 3)
    assert found.score == pytest.approx(-3.5 / (8 / 6))
    assert (found.confidence, found.detached) == estimate(made(), -3.5, 4, 3)
    mean = -3.5 / 3
    assert found.words == (
        WordConfidence((0, 1), pytest.approx(logistic(0.5 - 1.0 + 0.5 * mean))),
        WordConfidence((2, 5), pytest.approx(logistic(0.5 - 2.0 + 0.5 * mean))),
    )
    for confidence in (None, made(words=None)):
        plain = scored_translation(confidence, [7], [-1.0, -2.0], 0.0, "a", [(0, 1)])
        assert plain.words == () and plain.score == -3.0
