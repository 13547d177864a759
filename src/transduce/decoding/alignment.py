"""Which words of a source the words of its translation come from, by where the model looked when it wrote them.

Dimensions: s = source pieces, t = target pieces.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.words import words
from transduce.tokens.spans import Span

SHARE = 1 / 3

Weights = NDArray[np.float32]  # (t, s): where each token of a translation looked in its source, without EOS


class Link(NamedTuple):
    """A word of a source and one of its translation; spans in code points."""

    source: Span
    target: Span
    weight: float  # how much of the attention of the target's word the source's word had, from 0 to 1


def find_links(
    weights: NDArray[np.floating],
    source: str,
    source_spans: Sequence[Span],
    target: str,
    target_spans: Sequence[Span],
) -> tuple[Link, ...]:
    """For each word of the translation the source's words that it looked at most, in the order of the translation.

    weights (t, s): what each piece looked at when it was predicted. What is missing from 1 went to the end of the
    sentence and to spaces. A word that looked at nothing has no link.
    """
    # In scripts without spaces each piece is a word.
    read, written = (
        words(text, {begin for begin, _ in spans}) for text, spans in ((source, source_spans), (target, target_spans))
    )
    return link_words(weights, read, source_spans, written, target_spans)


def link_words(
    weights: NDArray[np.floating],
    source: Sequence[Span],
    source_spans: Sequence[Span],
    target: Sequence[Span],
    target_spans: Sequence[Span],
    share: float = SHARE,
) -> tuple[Link, ...]:
    """The same of words that are given; share: of what a word looked at, what is a link beside the best one."""
    if not source or not target:
        return ()
    read, written = _shares(source, source_spans), _shares(target, target_spans)
    written = written / np.maximum(written.sum(axis=1, keepdims=True), 1e-9)
    found = written @ weights @ read.T  # (target words, source words)
    most, total = found.max(axis=1, keepdims=True), found.sum(axis=1, keepdims=True)
    chosen = ((found == most) | (found >= share * total)) & (found > 0)
    return tuple(Link(source[j], target[i], round(float(found[i, j]), 4)) for i, j in np.argwhere(chosen).tolist())


def _shares(found: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """(words, pieces): how much of each piece is in each word; a piece of no characters goes to where it stands."""
    begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    first, last = np.array(found, dtype=np.int64).T[:, :, None]
    common = np.minimum(np.maximum(end, begin + 1), last) - np.maximum(begin, first)
    shares = np.maximum(common, 0).astype(np.float64)
    return shares / np.maximum(shares.sum(axis=0), 1)
