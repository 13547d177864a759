"""Lengths of translations that are very unlike those of others.

Two measures, for what is too short shows in the ratio, and what is too long in the difference.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SMOOTH = 3  # characters added to lengths before they are compared
OUTLIER = 4.0  # standard deviations, on either of two scales, at which a length is very unlike the others
NARROWEST = 0.05  # standard deviation: some texts are translated word for word
FEWEST = 200  # pairs that tell how lengths are distributed


class Scale(NamedTuple):
    """How lengths of translations are distributed: the middle and the width of two measures of how unlike they are."""

    growth: float  # characters of the target for one of the source
    ratio: tuple[float, float]  # of the logarithm of the ratio: it finds what is too short
    difference: tuple[float, float]  # of the difference by the root of the length: it finds what is too long


def lengths_of(texts: Sequence[str]) -> Ints:
    """Characters, without surrounding blanks."""
    return np.fromiter(map(len, map(str.strip, texts)), dtype=np.int64, count=len(texts))


def _measures(sources: Ints, targets: Ints, growth: float) -> tuple[Floats, Floats]:
    """The logarithm of the ratio, and the difference by the root of the length (Gale and Church, 1993)."""
    a, b = sources * growth + SMOOTH, targets + SMOOTH
    return np.log(b / a), (b - a) / np.sqrt((a + b) / 2)


def scale_of(sources: Ints, targets: Ints) -> Scale | None:
    """None where there are too few pairs; medians, so that what is wrong with a few doesn't matter."""
    whole = np.minimum(sources, targets) > 0
    if np.count_nonzero(whole) < FEWEST:
        return None
    growth = float(np.exp(np.median(np.log(targets[whole] / sources[whole]))))
    ratio, difference = (_middle_and_width(each) for each in _measures(sources[whole], targets[whole], growth))
    return Scale(growth, ratio, difference)


def _middle_and_width(measure: Floats) -> tuple[float, float]:
    """From medians, once of all and once without the outliers: a tenth of them would widen what is usual by a sixth."""
    middle = width = 0.0
    for _ in range(2):
        middle = float(np.median(measure))
        width = max(1.4826 * float(np.median(np.abs(measure - middle))), NARROWEST)
        measure = measure[np.abs(measure - middle) < OUTLIER * width]
    return middle, width


def is_outlier(sources: Ints, targets: Ints, scale: Scale) -> NDArray[np.bool_]:
    found = np.zeros(len(sources), dtype=bool)
    for measure, (middle, width) in zip(_measures(sources, targets, scale.growth), scale[1:], strict=True):
        found |= np.abs(measure - middle) > OUTLIER * width
    return found
