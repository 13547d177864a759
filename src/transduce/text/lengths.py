"""Lengths of translations that are very unlike those of others, and what the ends of their sentences add to that.

Two measures, for what is too short shows in the ratio, and what is too long in the difference. A text that is a little
too short may be right; one that also breaks off, where nearly all texts of the corpus end in a full stop, is not.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SMOOTH = 3  # characters added to lengths before they are compared
OUTLIER = 4.0  # standard deviations, on either of two scales, at which a length is very unlike the others
MILD = 2.0  # standard deviations below which a length is as it should be, whatever the text ends in
NARROWEST = 0.05  # standard deviation: some texts are translated word for word
FEWEST = 200  # pairs that tell how lengths are distributed
MOST_SENTENCES = 3  # that one side may have more than the other; still more tell no more

GOES_ON = ",;'’(–-"  # after which a text, as after a letter, isn't at its end
SENTENCE_END = re.compile(r"[.!?…。！？।؟](?=[\s\"'»”’)\]]|\Z)")


class Scale(NamedTuple):
    """How lengths of translations are distributed: the middle and the width of two measures of how unlike they are.

    And the shares of pairs of a usual length one side of which alone breaks off, and one side of which has at least 0,
    1, 2 … sentences more than the other: a sign of an error only where they are rare.
    """

    growth: float  # characters of the target for one of the source
    ratio: tuple[float, float]  # of the logarithm of the ratio: it finds what is too short
    difference: tuple[float, float]  # of the difference by the root of the length: it finds what is too long
    breaking: float = 1.0
    more_sentences: tuple[float, ...] = (1.0,) * (MOST_SENTENCES + 1)


def lengths_of(texts: Sequence[str]) -> Ints:
    """Characters, without surrounding blanks."""
    return np.fromiter(map(len, map(str.strip, texts)), dtype=np.int64, count=len(texts))


def _measures(sources: Ints, targets: Ints, growth: float) -> tuple[Floats, Floats]:
    """The logarithm of the ratio, and the difference by the root of the length (Gale and Church, 1993)."""
    a, b = sources * growth + SMOOTH, targets + SMOOTH
    return np.log(b / a), (b - a) / np.sqrt((a + b) / 2)


def scale_of(sources: Sequence[str], targets: Sequence[str]) -> Scale | None:
    """None where there are too few pairs; medians, so that what is wrong with a few doesn't matter."""
    lengths = lengths_of(sources), lengths_of(targets)
    whole = np.flatnonzero(np.minimum(*lengths))
    if len(whole) < FEWEST:
        return None
    a, b = (side[whole] for side in lengths)
    growth = float(np.exp(np.median(np.log(b / a))))
    ratio, difference = map(_middle_and_width, _measures(a, b, growth))
    scale = Scale(growth, ratio, difference)
    usual = whole[np.abs(deviations(a, b, scale)) < 1]
    pairs = [(sources[row], targets[row]) for row in usual]
    breaking = _share(sum(_breaks_off(source) != _breaks_off(target) for source, target in pairs) / 2, len(pairs))
    more = [abs(_sentences(source) - _sentences(target)) for source, target in pairs]
    shares = [_share(sum(each >= least for each in more) / 2, len(more)) for least in range(1, MOST_SENTENCES + 1)]
    return scale._replace(breaking=breaking, more_sentences=(1.0, *shares))


def _share(number: float, of: int) -> float:
    """What is expected of others, where none was seen."""
    return (number + 1) / (of + 2)


def _middle_and_width(measure: Floats) -> tuple[float, float]:
    """From medians, once of all and once without the outliers: a tenth of them would widen what is usual by a sixth."""
    middle = width = 0.0
    for _ in range(2):
        middle = float(np.median(measure))
        width = max(1.4826 * float(np.median(np.abs(measure - middle))), NARROWEST)
        measure = measure[np.abs(measure - middle) < OUTLIER * width]
    return middle, width


def deviations(sources: Ints, targets: Ints, scale: Scale) -> Floats:
    """By how many standard deviations a target is too long or, below 0, too short, by the measure that says more."""
    measures = _measures(sources, targets, scale.growth)
    one, other = ((measure - middle) / width for measure, (middle, width) in zip(measures, scale[1:3], strict=True))
    return np.where(np.abs(one) > np.abs(other), one, other)


def faults_at_ends(shorter: str, longer: str, deviation: float, scale: Scale) -> tuple[bool, bool]:
    """Whether the shorter side breaks off, and whether the longer one has further sentences.

    deviation: how unlike the lengths are. The rarer such ends are among good pairs, the less it takes: what is seen
    must be as improbable, by the bound exp(-z²/2), as OUTLIER standard deviations alone.
    """
    more = min(_sentences(longer) - _sentences(shorter), MOST_SENTENCES)
    return (
        _breaks_off(shorter) and not _breaks_off(longer) and _is_unlikely(deviation, scale.breaking),
        more > 0 and _is_unlikely(deviation, scale.more_sentences[more]),
    )


def _is_unlikely(deviation: float, share: float) -> bool:
    return deviation**2 - 2 * float(np.log(share)) > OUTLIER**2


def _breaks_off(text: str) -> bool:
    last = text.rstrip()[-1:]
    return last.isalnum() or last in GOES_ON


def _sentences(text: str) -> int:
    """By the signs that end one; what breaks off is one, too."""
    return max(1, len(SENTENCE_END.findall(text)))
