"""Tests of transduce/decoding/confidence.py."""

import dataclasses
import json
import math

import pytest

from fitted import CHRF, VALUES
from transduce.decoding.confidence import Confidence, Regression, features, word_features
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
    for damaged in ("", "[]", json.dumps(values | {"more": 1}), json.dumps({"bias": 1}), no_scale):
        (tmp_path / CONFIDENCE).write_text(damaged)
        with pytest.raises(UserError, match=r"confidence\.json is damaged"):
            Confidence.load(tmp_path)
