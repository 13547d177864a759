"""Tests of the differences between rows: known quantiles, and error rates on drawn data."""

import math

import pytest

from transduce.system.errors import UserError
from transduce_lab.comparing import report
from transduce_lab.comparing.statistics import Difference

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")
import sys

import numpy as np
import pytest

from transduce_lab.comparing.statistics import (
    Spread,
    difference,
    holm,
    jackknife_error,
    p_value,
    quantile,
    spread,
)

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


@pytest.mark.parametrize(
    ("t", "degrees", "p"),
    [
        (12.706, 1, 0.05),
        (4.303, 2, 0.05),
        (2.228, 10, 0.05),
        (3.169, 10, 0.01),
        (1.962, 1000, 0.05),
        (0, 3, 1),
    ],
)
def test_the_t_distribution_is_that_of_the_tables(t, degrees, p):
    assert p_value(t, degrees) == pytest.approx(p, rel=2e-3)
    assert p_value(-t, degrees) == p_value(t, degrees)
    if p < 1:
        assert quantile(degrees, p) == pytest.approx(t, rel=2e-3)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(UserError, match=r"pip install 'transduce\[lab\]'"):
        p_value(1.0, 3)


def test_without_degrees_there_is_no_quantile():
    assert math.isnan(quantile(math.nan))


def test_means_and_deviations():
    assert spread([1.0, 3.0]) == Spread(2.0, pytest.approx(math.sqrt(2)), 2)
    assert str(spread([1.0, 3.0])) == "2.00 ± 1.41"
    assert str(spread([1.0])) == "1.00" and str(spread([])) == "–"


def test_equal_rows_seldom_differ_and_unequal_ones_often():
    """With three seeds each, a test at 5 % finds a difference between equal rows in at most 5 % of the tables."""
    draw = np.random.default_rng(1)
    for shift, low, high in ((0.0, 0.0, 0.08), (6.0, 0.8, 1.0)):
        found = []
        for _ in range(300):
            text = draw.normal(0, 0.5)  # the test sentences favour one row
            rows = spread(list(draw.normal(shift + text, 1, 3))), spread(list(draw.normal(0, 1, 3)))
            found.append(difference(*rows, 0.5, 1000).p_value < 0.05)
        assert low <= np.mean(found) <= high, shift


def test_variance_adds_up_over_sentences_and_seeds():
    rows = spread([1.0, 1.2, 1.1]), spread([0.4, 0.6, 0.5])
    alone, both = difference(*rows, 0.0, 1000), difference(*rows, 0.3, 1000)
    assert both.value == alone.value == pytest.approx(0.6)
    assert both.error == pytest.approx(math.hypot(alone.error, 0.3))
    assert both.interval[0] < alone.interval[0] < 0.6 < alone.interval[1] < both.interval[1]
    assert both.degrees == alone.degrees == pytest.approx(4), "no more than the seeds have"


def test_single_seed_is_not_tested_but_an_ensemble_is():
    one, three = spread([1.0]), spread([0.4, 0.6, 0.5])
    assert math.isnan(difference(one, three, 0.1, 100).p_value)
    ensemble = one._replace(deviation=0.0)
    assert difference(ensemble, three, 0.1, 100).p_value < 0.05
    assert difference(ensemble, ensemble, 0.0, 100).p_value == 1.0


def test_holm_is_at_most_bonferroni_and_keeps_the_order():
    p = [0.04, 0.001, math.nan, 0.02, 0.5]
    corrected = holm(p)
    assert corrected == [
        pytest.approx(0.08),
        0.004,
        pytest.approx(math.nan, nan_ok=True),
        pytest.approx(0.06),
        0.5,
    ]
    assert holm([0.6, 0.9]) == [1.0, 1.0], "a probability"
    assert holm([0.01, math.nan, math.nan], 3)[0] == pytest.approx(0.03), (
        "two tests are still to come"
    )


def test_the_jackknife_error_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(1).normal(size=60)
    left_out = (values.sum() - values) / (len(values) - 1)
    assert jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / math.sqrt(60))
    assert jackknife_error(np.empty(0)) == jackknife_error(np.ones(1)) == 0


def test_the_jackknife_and_many_resamples_have_the_same_error():
    """For the ratio of two sums, which BLEU and chrF are made of."""
    random = np.random.default_rng(2)
    statistics = random.poisson(9, size=(200, 2)) + 1.0
    totals = statistics.sum(axis=0) - statistics
    drawn = random.multinomial(200, np.full(200, 1 / 200), size=40_000) @ statistics
    expected = (drawn[:, 0] / drawn[:, 1]).std()
    assert jackknife_error(totals[:, 0] / totals[:, 1]) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1, "+10.5 % [-100.0, > 10^6]"), (-800.0, "-100.0 %"), (5000.0, "> 10^6 %")],
)
def test_large_differences_fit_the_table(value, shown):
    assert report._difference("perplexity", Difference(value, 90.0, 3.0, 0.5)).startswith(shown)
