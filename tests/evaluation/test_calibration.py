"""Confidence is a calibrated probability, kept with the model."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF as CHRF_METRIC_TYPE

from aligned import lively
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
    calibrate,
    calibration_error,
    fit,
    fit_words,
    regression,
)
from transduce.model.build import build
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer

CHRF_METRIC = CHRF_METRIC_TYPE()


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


def test_weights_minimise_the_penalised_loss():
    """Its gradient is 0: the penalty is a thousandth of the squared weights, per pair, without the bias."""
    inputs = np.column_stack((VALUES[:200], np.ones(200)))
    weights = regression(inputs, GOOD[:200])
    errors = 1 / (1 + np.exp(-inputs @ weights)) - GOOD[:200]
    penalties = 1e-3 * 200 * weights * [1, 1, 1, 0]
    assert inputs.T @ errors + penalties == pytest.approx(np.zeros(4), abs=1e-6)


def test_the_area_is_that_of_pairs_that_were_not_fitted():
    """Many features tell any few pairs apart, but not new ones: every fifth pair is rated by the others."""
    random = np.random.default_rng(2)
    values, chrf = random.normal(size=(90, 30)), random.random(90)
    is_good = chrf >= np.median(chrf)
    inputs = np.column_stack(((values - values.mean(0)) / values.std(0), np.ones(90)))
    logits = np.zeros(90)
    for fold in range(5):
        own = np.arange(fold, 90, 5)
        others = np.setdiff1d(np.arange(90), own)
        logits[own] = inputs[own] @ regression(inputs[others], is_good[others])
    confidence = fit(values, chrf)
    assert confidence.area == pytest.approx(area_under_curve(logits, is_good))
    assert confidence.area < 0.7 < area_under_curve(inputs @ regression(inputs, is_good), is_good)
    expected = calibration_error(1 / (1 + np.exp(-logits)), is_good)
    assert confidence.calibration_error == pytest.approx(expected)


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


def test_the_area_by_hand():
    """Nine pairs: six in the right order, one equal."""
    scores, good = (
        np.array([0.9, 0.5, 0.4, 0.5, 0.45, 0.1]),
        np.array([1, 1, 1, 0, 0, 0], dtype=bool),
    )
    assert area_under_curve(scores, good) == pytest.approx((3 + 2.5 + 1) / 9)


def test_the_calibration_error_by_hand():
    probabilities, good = np.array([0.11, 0.19, 0.9, 1.0]), np.array([False, False, True, True])
    assert calibration_error(probabilities, good) == pytest.approx(
        (abs(0.30 - 0) + abs(1.9 - 2)) / 4
    )


FITTED = dict.fromkeys(("means", "scales"), ()) | {"weights": (1.0,), "bias": 0.0}
FITTED |= {"area": 1.0, "calibration_error": 0.0}


@pytest.fixture
def seen(monkeypatch) -> list[bool]:
    """Which words count as right. Private, since the public result does not show it."""
    seen = list[bool]()
    monkeypatch.setattr(
        calibration, "_fit", lambda _, is_right, __: seen.extend(is_right) or FITTED
    )
    return seen


def words_of(texts: list[str], references: list[str], **options: object) -> Regression | None:
    """The regression for the words of translations that an untrained model scores."""
    tokenizer = Tokenizer.train([*texts, *references], [*texts, *references], vocab_size=300)
    sizes = {**SIZES, "model.vocab_size": tokenizer.target.size}
    model = build(
        configure({**sizes, **{f"model.{name}": each for name, each in options.items()}}).model
    )
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


def test_words_beyond_the_positions_of_a_model_are_not_rated(seen):
    """Of six positions, one is for BOS."""
    assert words_of(["a b c d e f g h"], ["a b x"], positions="learned", max_positions=6)
    assert seen == [True, True, False, False, False]


@pytest.mark.parametrize(("weight", "is_used"), [(0.1, True), (0.0, False), (-0.1, False)])
def test_likely_words_are_right_more_often(monkeypatch, weight, is_used):
    fitted = {**FITTED, "weights": (weight, 1.0)}
    monkeypatch.setattr(calibration, "_fit", lambda *_: fitted)
    found = words_of(["a b", "c"], ["a", "c"])
    assert bool(found) is is_used and (found is None or found.pairs == 2)


def test_a_model_is_calibrated_by_its_own_translations(monkeypatch):
    monkeypatch.setattr(calibration, "MIN_FITTED_PAIRS", 12)
    monkeypatch.setattr(calibration, "MAX_FITTED_PAIRS", 20)
    texts = [
        f"{one} {two}"
        for one in ("ka", "lo", "mi", "nu", "re")
        for two in ("zu", "fe", "ga", "po wi")
    ]
    tokenizer = Tokenizer.train(texts, texts, vocab_size=290)
    model = lively(configure({**SIZES, "model.vocab_size": tokenizer.target.size}).model)
    config = DecodeConfig(beam_size=2, max_extra_tokens=3)
    translator = Translator(TorchEngine([model]), tokenizer, config)
    outputs = translator.translate(texts)
    # A third of the references are what the model translates.
    pairs = [
        Pair(text, out.text if i % 3 else f"{text} x", Origin("", i))
        for i, (text, out) in enumerate(zip(texts, outputs, strict=True))
    ]
    more = [Pair("ka", "zu", Origin("", 99))]
    found = calibrate(model, tokenizer, pairs + more, config)
    values, chrf = [], []
    for pair, ids, out in zip(pairs, tokenizer.encode_source(texts), outputs, strict=True):
        length = len(out.tokens) + 1
        log_prob = out.score * ((5 + length) / 6) ** config.length_penalty
        values.append((log_prob / length, math.log(length), math.log(length / (len(ids) + 1))))
        chrf.append(CHRF_METRIC.sentence_score(out.text, [pair.target]).score)
    expected = fit(np.array(values), np.array(chrf))
    assert dataclasses.replace(found, words=None) == expected and found.pairs == 20
    assert found.means == pytest.approx(np.mean(values, axis=0))
    assert found.scales == pytest.approx(np.std(values, axis=0), abs=1e-8)
    assert found.min_chrf == pytest.approx(np.median(chrf))
    assert found.min_log_prob == pytest.approx(np.quantile([row[0] for row in values], 0.01))
    assert found.words == fit_words(translator, pairs, tokenizer.encode_source(texts), outputs)
    assert calibrate(model, tokenizer, pairs[:11], config) is None
    right = [pair._replace(target=out.text) for pair, out in zip(pairs, outputs, strict=True)]
    assert calibrate(model, tokenizer, right, config) is None, "no translation is worse"
    # The same text with other spaces has the same translation: 20 for 40 sources are enough, 20 for 60 are not.
    for copies, is_none in ((2, False), (3, True)):
        monkeypatch.setattr(calibration, "MAX_FITTED_PAIRS", 99)
        spaced = [
            pair._replace(source=pair.source + " " * n) for n in range(copies) for pair in pairs
        ]
        assert (calibrate(model, tokenizer, spaced, config) is None) == is_none
    equal = [pair._replace(source=f"{pair.source} {i}") for i, pair in enumerate(pairs)]
    flat = lively(configure({**SIZES, "model.vocab_size": tokenizer.target.size}).model)
    for name, weight in flat.named_parameters():
        if name.startswith("encoder"):
            weight.data.zero_()
    assert calibrate(flat, tokenizer, equal, config) is None, "all have the translation of another"
    monkeypatch.undo()
    assert calibrate(model, tokenizer, (pairs * 5)[:99], config) is None
    assert calibrate(model, tokenizer, pairs * 5, config).pairs == 100


def test_words_that_are_all_right_or_all_wrong_teach_nothing(seen):
    assert words_of(["dog cat", "cat"], ["cat dog", "cat"]) is None
    assert words_of(["dog", "cat"], ["x", "y"]) is None and not seen


def test_a_sure_hypothesis_is_in_the_last_bin():
    found = calibration_error(np.array([0.95, 1.0]), np.array([True, False]))
    assert found == pytest.approx((0.95 + 1 - 1) / 2)
    found = calibration_error(np.array([0.85, 0.95]), np.array([False, True]))
    assert found == pytest.approx((0.85 + 0.05) / 2)
