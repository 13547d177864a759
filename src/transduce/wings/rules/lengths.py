"""Finds texts that break off, texts with extra sentences, and pairs with unusual lengths."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.text.pair_batch import TextColumn

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RATIO_SMOOTHING_CHARACTERS = 3  # added to every length before lengths are compared
OUTLIER = 4.0  # standard deviations of the ratio or the difference, beyond which a length alone is a fault
MILD = 2.0  # standard deviations, below which a length is no fault, however the text ends
MIN_WIDTH = 0.05  # lower bound on a standard deviation, for corpora translated word for word
MIN_PAIRS = 200  # fewer pairs don't show the distribution of lengths
MAX_EXTRA_SENTENCES = 3  # maximum on one side; more sentences add no evidence

CONTINUATION = set(",;'’(–-")  # a text that ends in one of these, a letter or a digit breaks off
# Closing signs are ignored at the end: a text in brackets or quotes may not be a sentence.
CLOSING = ' \u00a0\u202f*`"»”“)]'
# In Chinese, no blank follows the end of a sentence.
SENTENCE_END = re.compile(r"[。！？]+(?![」』”’）])|[.!?…।؟။։።](?=[\s\"'»”’)\]]|\Z)")


class Scale(NamedTuple):
    """Length statistics of a corpus, and how often its texts break off or have extra sentences."""

    growth: float  # characters of the target per character of the source
    # Median and standard deviation of its logarithm; exposes texts that are too short.
    ratio: tuple[float, float]
    # Median and standard deviation of the difference of the lengths, divided by the root of the length; exposes
    # texts that are too long.
    difference: tuple[float, float]
    breaking: float = 1.0  # share of pairs in which one side alone breaks off
    # Shares of pairs with at least 0, 1, 2 … extra sentences.
    more_sentences: tuple[float, ...] = (1.0,) * (MAX_EXTRA_SENTENCES + 1)


def _measures(sources: Ints, targets: Ints, growth: float) -> tuple[Floats, Floats]:
    """Log length ratios and normalized length differences (Gale and Church, 1993)."""
    a = sources * growth + RATIO_SMOOTHING_CHARACTERS
    b = targets + RATIO_SMOOTHING_CHARACTERS
    return np.log(b / a), (b - a) / np.sqrt((a + b) / 2)


def scale_of(sources: Sequence[str], targets: Sequence[str]) -> Scale | None:
    """Measure the length statistics of a corpus. Returns None for fewer than MIN_PAIRS pairs."""
    lengths = TextColumn(sources).lengths, TextColumn(targets).lengths
    whole = np.flatnonzero(np.minimum(*lengths))
    if len(whole) < MIN_PAIRS:
        return None
    a, b = (side[whole] for side in lengths)
    growth = float(np.exp(np.median(np.log(b / a))))
    ratio, difference = map(_middle_and_width, _measures(a, b, growth))
    scale = Scale(growth, ratio, difference)
    usual = whole[np.abs(deviations(a, b, scale)) < 1]
    pairs = [(sources[row], targets[row]) for row in usual]
    breaking = _expected_share(
        sum(_breaks_off(source) != _breaks_off(target) for source, target in pairs) / 2, len(pairs)
    )
    more = [abs(_sentences(source) - _sentences(target)) for source, target in pairs]
    shares = [
        _expected_share(sum(each >= least for each in more) / 2, len(more))
        for least in range(1, MAX_EXTRA_SENTENCES + 1)
    ]
    return scale._replace(breaking=breaking, more_sentences=(1.0, *shares))


def _expected_share(number: float, of: int) -> float:
    """Estimate a share by Laplace's rule of succession."""
    return (number + 1) / (of + 2)


def _middle_and_width(measure: Floats) -> tuple[float, float]:
    """The median and the standard deviation, both without outliers."""
    middle = width = 0.0
    for _ in range(2):
        middle = float(np.median(measure))
        width = max(1.4826 * float(np.median(np.abs(measure - middle))), MIN_WIDTH)
        measure = measure[np.abs(measure - middle) < OUTLIER * width]
    return middle, width


def deviations(sources: Ints, targets: Ints, scale: Scale) -> Floats:
    """The z-score of each target's length. A negative score means that the target is too short."""
    measures = _measures(sources, targets, scale.growth)
    one, other = (
        (measure - middle) / width
        for measure, (middle, width) in zip(measures, scale[1:3], strict=True)
    )
    return np.where(np.abs(one) > np.abs(other), one, other)


def faults_at_ends(shorter: str, longer: str, deviation: float, scale: Scale) -> tuple[bool, bool]:
    """Whether the shorter text breaks off, and whether the longer text has extra sentences.

    A fault is reported only if `deviation` is large. If a fault is rare in the corpus, a smaller deviation suffices.
    """
    more = min(_sentences(longer) - _sentences(shorter), MAX_EXTRA_SENTENCES)
    return (
        _breaks_off(shorter)
        and not _breaks_off(longer)
        and _is_unlikely(deviation, scale.breaking),
        more > 0 and _is_unlikely(deviation, scale.more_sentences[more]),
    )


def _is_unlikely(deviation: float, share: float) -> bool:
    return deviation**2 - 2 * float(np.log(share)) > OUTLIER**2


def _breaks_off(text: str) -> bool:
    last = text.rstrip().rstrip(CLOSING)[-1:]
    return last.isalnum() or last in CONTINUATION


def _sentences(text: str) -> int:
    """The number of sentence-final punctuation marks, or 1 if there are none."""
    return max(1, len(SENTENCE_END.findall(text)))
