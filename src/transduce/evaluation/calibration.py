"""Fits the confidence of a model, in translations and in their words, to its translations of held-out pairs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF

from transduce.config.schema import DecodeConfig
from transduce.decoding.confidence import Confidence, Regression, features, word_features
from transduce.decoding.directions import encode_sources
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation, length_penalty
from transduce.decoding.words import words
from transduce.model.seq2seq import Seq2Seq
from transduce.text.pairs import Pair, first_of_each_direction
from transduce.tokens.tokenizer import Tokenizer

MIN_FITTED_PAIRS, MAX_FITTED_PAIRS = 100, 1000
DETACHED_SHARE = 0.01  # share of held-out translations that are called detached
FOLDS, BINS = 5, 10
PENALTY = 1e-3  # weight of the squared weights in the loss, per pair
NEWTON_STEPS = 50

Floats = NDArray[np.float64]


def calibrate(
    model: Seq2Seq, tokenizer: Tokenizer, pairs: Sequence[Pair], config: DecodeConfig
) -> Confidence | None:
    """Translate held-out pairs, and fit the model's confidence.

    Returns None for fewer than MIN_FITTED_PAIRS pairs, and if most pairs have the translation of another pair.
    """
    pairs = first_of_each_direction(pairs, MAX_FITTED_PAIRS)
    if len(pairs) < MIN_FITTED_PAIRS:
        return None
    translator = Translator(TorchEngine([model]), tokenizer, config)
    metric = CHRF()
    translations = translator.translate_pairs(pairs)
    sources = encode_sources(tokenizer, pairs)
    values = []
    chrf = []
    if 2 * len({each.text for each in translations}) < len({pair.source for pair in pairs}):
        return None
    for pair, ids, translation in zip(pairs, sources, translations, strict=True):
        length = len(translation.tokens) + 1
        log_prob = translation.score * length_penalty(length, config.length_penalty)
        values.append(features(log_prob, len(ids) + 1, length))
        chrf.append(metric.sentence_score(translation.text, [pair.target]).score)
    confidence = fit(np.array(values), np.array(chrf))
    return confidence and replace(
        confidence, words=fit_words(translator, pairs, sources, translations)
    )


def fit_words(
    translator: Translator,
    pairs: Sequence[Pair],
    sources: list[list[int]],
    translations: Sequence[Translation],
) -> Regression | None:
    """Fit a regression to the words of translations. A word is right if the reference contains it as often.

    `sources` holds the token ids of the pairs' sources. Returns None if the regression does not tell right words from
    wrong words.
    """
    texts = [each.text for each in translations]
    tokenizer = translator.tokenizer
    engine = translator.engine
    targets = tokenizer.encode_target(texts)
    # Encoded again, a text can have more tokens than the search allowed.
    targets = [target[: engine.max_positions and engine.max_positions - 1] for target in targets]
    log_probs = translator.forced(engine, engine.log_probs, sources, targets)
    values = []
    is_right = []
    folds = []
    references = tokenizer.encode_target([pair.target for pair in pairs])
    for i, (pair, text, target, each) in enumerate(
        zip(pairs, texts, targets, log_probs, strict=True)
    ):
        cuts = {begin for begin, _ in tokenizer.target.spans_in(pair.target, references[i])}
        missing = Counter(pair.target[begin:end] for begin, end in words(pair.target, cuts))
        for (begin, end), value in word_features(
            text, tokenizer.target.spans_in(text, target), each
        ).items():
            values.append(value)
            is_right.append(missing[text[begin:end]] > 0)
            missing[text[begin:end]] -= 1
            folds.append(i % FOLDS)
    if len(set(is_right)) < 2:
        return None
    found = Regression(
        **_fit(np.array(values), np.array(is_right), np.array(folds)), pairs=len(pairs)
    )
    return found if found.weights[0] > 0 else None


def fit(values: Floats, chrf: Floats) -> Confidence | None:
    """Fit a confidence to the features (pairs, features) and the chrF (pairs,) of translations.

    Returns None if no translation is worse than the median, as for a model that translates nothing.
    """
    min_chrf = float(np.median(chrf))
    is_good = chrf >= min_chrf
    if is_good.all():
        return None
    return Confidence(
        **_fit(values, is_good, np.arange(len(values)) % FOLDS),
        pairs=len(values),
        min_chrf=min_chrf,
        min_log_prob=float(np.quantile(values[:, 0], DETACHED_SHARE)),
    )


def _fit(values: Floats, is_good: NDArray[np.bool_], folds: NDArray[np.int_]) -> dict[str, Any]:
    """Fit a logistic regression, and cross-validate it over the folds. Returns attributes of Regression."""
    means = values.mean(axis=0)
    scales = values.std(axis=0) + 1e-9
    inputs = np.column_stack(((values - means) / scales, np.ones(len(values))))
    held_out = np.empty(len(values))
    for fold in range(FOLDS):
        weights = regression(inputs[folds != fold], is_good[folds != fold])
        held_out[folds == fold] = _logistic(inputs[folds == fold] @ weights)
    *weights, bias = regression(inputs, is_good).tolist()
    return {
        "means": tuple(means.tolist()),
        "scales": tuple(scales.tolist()),
        "weights": tuple(weights),
        "bias": bias,
        "area": area_under_curve(held_out, is_good),
        "calibration_error": calibration_error(held_out, is_good),
    }


def area_under_curve(probabilities: Floats, is_good: NDArray[np.bool_]) -> float:
    """The probability that a good translation is rated above a bad translation; ties count half."""
    good = np.sort(probabilities[is_good])
    bad = np.sort(probabilities[~is_good])
    below = (np.searchsorted(bad, good) + np.searchsorted(bad, good, side="right")) / 2
    return float(below.mean() / len(bad))


def calibration_error(probabilities: Floats, is_good: NDArray[np.bool_]) -> float:
    """The expected calibration error (Guo et al., 2017) in BINS bins of equal width."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, probabilities - is_good)  # sums over each bin
    return float(np.abs(gaps).sum() / len(probabilities))


def _logistic(logits: Floats) -> Floats:
    return (1 + np.tanh(logits / 2)) / 2


def regression(inputs: Floats, is_good: NDArray[np.bool_]) -> Floats:
    """The weights of a logistic regression by Newton's method. The last input, the bias, is not penalised."""
    penalty = np.full(inputs.shape[1], PENALTY * len(inputs))
    penalty[-1] = 1e-9
    weights = np.zeros(inputs.shape[1])
    for _ in range(NEWTON_STEPS):
        probabilities = _logistic(inputs @ weights)
        gradient = inputs.T @ (probabilities - is_good) + penalty * weights
        curvature = (inputs * (probabilities * (1 - probabilities))[:, None]).T @ inputs + np.diag(
            penalty
        )
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights
