"""Confidence is a calibrated probability, kept with the model."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitted import CHRF, GOOD, LOGITS, RANDOM, VALUES
from models import SIZES
from transduce.config.parse import configure
from transduce.config.schema import DecodeConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation
from transduce.evaluation import calibration
from transduce.evaluation.calibration import (
    DETACHED_SHARE,
    Regression,
    area_under_curve,
    calibration_error,
    fit,
    fit_words,
    regression,
)
from transduce.model.build import build
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer


def test_fit_recovers_the_true_probabilities():
    balanced = np.concatenate((np.flatnonzero(GOOD)[:1500], np.flatnonzero(~GOOD)[:1500]))
    confidence = fit(VALUES[balanced], CHRF[balanced])
    shift = math.log((~GOOD).sum() / GOOD.sum())  # as many good as bad ones were chosen
    found = np.array([confidence.probability(each) for each in VALUES])
    expected = 1 / (1 + np.exp(-LOGITS - shift))
    assert np.abs(found - expected).mean() < 0.02
    assert 40 < confidence.min_chrf <= 100 and confidence.pairs == 3000
    assert confidence.calibration_error < 0.03
    assert confidence.area == pytest.approx(
        area_under_curve(expected[balanced], GOOD[balanced]), abs=0.01
    )
    detached = np.mean([each[0] < confidence.min_log_prob for each in VALUES[balanced]])
    assert detached == pytest.approx(DETACHED_SHARE, abs=0.002)


def test_features_that_say_nothing_give_a_half():
    chrf = RANDOM.random(2000)
    confidence = fit(RANDOM.normal(size=(2000, 3)), chrf)
    assert confidence.area == pytest.approx(0.5, abs=0.05) and confidence.calibration_error < 0.05
    assert confidence.probability((0.0, 0.0, 0.0)) == pytest.approx(0.5, abs=0.05)


def test_the_mean_probability_is_the_share_of_good_translations():
    """As in every logistic regression whose bias is not penalised."""
    chosen = np.concatenate((np.flatnonzero(GOOD)[:1000], np.flatnonzero(~GOOD)[:50]))
    inputs = np.column_stack((VALUES[chosen], np.ones(len(chosen))))
    weights = regression(inputs, GOOD[chosen])
    assert np.mean(1 / (1 + np.exp(-inputs @ weights))) == pytest.approx(1000 / 1050, abs=1e-6)


def test_confidence_does_not_extrapolate_beyond_held_out_translations():
    confidence = fit(VALUES, CHRF)
    far, farther = (
        np.array(confidence.means) + factor * np.array(confidence.scales) for factor in (4, 4000)
    )
    assert confidence.probability(farther) == pytest.approx(confidence.probability(far))


def test_equal_translations_have_no_confidence():
    assert fit(VALUES, np.zeros(len(VALUES))) is None


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2).filter(
        lambda x: len({b for _, b in x}) == 2
    )
)
def test_the_area_counts_pairs(rows):
    scores, good = (
        np.array([score / 5 for score, _ in rows]),
        np.array([is_good for _, is_good in rows]),
    )
    pairs = [(a > b) + (a == b) / 2 for a in scores[good] for b in scores[~good]]
    assert area_under_curve(scores, good) == pytest.approx(np.mean(pairs))


def test_the_calibration_error_by_hand():
    probabilities, good = np.array([0.11, 0.19, 0.9, 1.0]), np.array([False, True, True, True])
    assert calibration_error(probabilities, good) == pytest.approx(
        (abs(0.30 - 1) + abs(1.9 - 2)) / 4
    )


@pytest.fixture
def seen(monkeypatch) -> list[bool]:
    """Which words count as right. Private, since the public result does not show it."""
    seen = list[bool]()
    made = dict.fromkeys(("means", "scales"), ()) | {"weights": (1.0,), "bias": 0.0}
    made |= {"area": 1.0, "calibration_error": 0.0}
    monkeypatch.setattr(calibration, "_fit", lambda _, is_right, __: seen.extend(is_right) or made)
    return seen


def words_of(texts: list[str], references: list[str]) -> Regression | None:
    """The regression for the words of translations that an untrained model scores."""
    tokenizer = Tokenizer.train([*texts, *references], [*texts, *references], vocab_size=300)
    model = build(configure({**SIZES, "model.vocab_size": tokenizer.target.size}).model)
    translator = Translator(TorchEngine([model]), tokenizer, DecodeConfig())
    pairs = [Pair("a", text, Origin("", 1)) for text in references]
    sources = tokenizer.encode_source(["a"] * len(texts))
    return fit_words(translator, pairs, sources, [Translation(text, 0.0, ()) for text in texts])


def test_words_without_blanks_between_them_are_right_if_the_reference_has_them(seen):
    texts = ["".join(order) for order in itertools.permutations(("我们", "昨天", "北京", "今天"))]
    assert words_of([*texts[:20], *["她不知道"] * 4], texts)
    assert sum(seen) > 30 and seen == sorted(seen, reverse=True)


def test_a_word_is_right_as_often_as_the_reference_has_it(seen):
    texts = ["dog dog dog cat", "the the", "cat", ""]
    references = ["a dog and dog", "the Cat", "dog", "x"]
    assert words_of(texts, references)
    # Of each text by itself.
    assert seen == [True, True, False, False, True, False, False]


def test_words_that_are_all_right_or_all_wrong_teach_nothing(seen):
    assert words_of(["dog cat", "cat"], ["cat dog", "cat"]) is None
    assert words_of(["dog", "cat"], ["x", "y"]) is None and not seen
