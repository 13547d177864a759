"""Tests the difference of two rows of a table over seeds and over test sentences."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import needing

LEVEL = 0.05  # significance level of all tests of a table together


class Spread(NamedTuple):
    """The scores of a row's runs, one per seed."""

    mean: float
    deviation: float  # nan for fewer than two runs
    runs: int

    def __str__(self) -> str:
        if not self.runs:
            return "–"
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.runs > 1 else "")


class Difference(NamedTuple):
    """The difference of two rows, with its standard error over seeds and sentences."""

    value: float
    error: float
    degrees: float  # degrees of freedom
    p_value: float  # p-value of a t test of equal means; nan if a row has one run

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        half = quantile(self.degrees) * self.error
        return self.value - half, self.value + half


def spread(values: Sequence[float]) -> Spread:
    """The mean and the standard deviation of the scores of a row's runs."""
    if not values:
        return Spread(math.nan, math.nan, 0)
    return Spread(
        float(np.mean(values)),
        float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
        len(values),
    )


def difference(row: Spread, base: Spread, sentence_error: float, sentences: int) -> Difference:
    """The difference `row` - `base`.

    `sentence_error` is the standard error over the test sentences, by `jackknife_error`.
    The variances over the seeds of each row and over the sentences add up, with degrees of freedom after Welch and
    Satterthwaite, at most as many as the seeds have: otherwise, deviations that are small by chance would show too many
    differences. With one run, a row has no deviation (nan), and there is no test. A deviation of 0 means that the seeds
    of the row are not counted.
    """
    parts = [
        (each.deviation**2 / each.runs, each.runs - 1)
        for each in (row, base)
        if each.deviation != 0
    ]
    parts.append((sentence_error**2, sentences - 1))
    variance = sum(part for part, _ in parts)
    value = row.mean - base.mean
    if math.isnan(variance):
        return Difference(value, math.nan, math.nan, math.nan)
    if not variance:
        return Difference(value, 0.0, math.inf, 1.0 if not value else 0.0)
    degrees = variance**2 / sum(part**2 / max(1, freedom) for part, freedom in parts)
    degrees = min(degrees, sum(freedom for _, freedom in parts[:-1]) or degrees)
    return Difference(
        value, math.sqrt(variance), degrees, p_value(value / math.sqrt(variance), degrees)
    )


def student(degrees: float) -> Any:
    """Student's t distribution. Raises UserError if scipy is missing."""
    with needing("lab", "Comparing rows"):
        from scipy.stats import t
    return t(degrees)


def p_value(t: float, degrees: float) -> float:
    """The probability of a larger |t| under Student's distribution."""
    return float(2 * student(degrees).sf(abs(t)))


def quantile(degrees: float, level: float = LEVEL) -> float:
    """The |t| that Student's distribution exceeds with the probability `level`, or nan."""
    return float(student(degrees).isf(level / 2))


def holm(p_values: Sequence[float], tests: int = 0) -> list[float]:
    """Correct the p-values of several tests after Holm (1979). The p-value nan is not changed.

    `tests` is the number of tests if some have not been made yet; by default, it is the number of p-values that are not
    nan.
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(order):
        largest = corrected[i] = max(largest, min(1.0, (max(tests, len(order)) - rank) * p))
    return corrected


def jackknife_error(left_out: NDArray[np.float64]) -> float:
    """The standard error of a score over sentences, from the score without each of them (Efron and Stein, 1981).

    Unlike a bootstrap, it does not depend on random numbers, so that every digit of a p-value stands.
    """
    number = len(left_out)
    return float(np.std(left_out) * math.sqrt(number - 1)) if number > 1 else 0.0
