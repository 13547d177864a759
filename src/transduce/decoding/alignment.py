"""Align the words of a source and its translation by the model's attention.

s = source pieces, t = target pieces.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.types import Hypothesis, Link, Translation
from transduce.decoding.words import words
from transduce.tokens.spans import Span

if TYPE_CHECKING:
    from transduce.tokens.tokenizer import Tokenizer

# Minimum share of a target word's attention for a link; its strongest link needs no minimum.
LINK_SHARE = 1 / 3


def align(
    tokenizer: "Tokenizer",
    texts: Sequence[str],
    sources: Sequence[list[int]],
    ranked: Sequence[tuple[Translation, Sequence[Hypothesis]]],
    attention: Callable[[list[list[int]], list[list[int]]], Iterable[NDArray[np.float32]]],
) -> list[Translation]:
    """Add word links to translations and to their alternatives.

    `sources` holds the token ids of each text. `ranked` holds each text's translation with a list of hypotheses, the
    first for the translation, the others for its alternatives. `attention` computes the attention to the sources.
    """
    rows = [
        (ids, hypothesis.tokens)
        for ids, (_, best) in zip(sources, ranked, strict=True)
        for hypothesis in best
    ]
    aligned = []
    weights = iter(attention([ids for ids, _ in rows], [tokens for _, tokens in rows]))
    tags = len(tokenizer.tags)  # tokens before the text of each source
    for text, source, (best, hypotheses) in zip(texts, sources, ranked, strict=True):
        spans = tokenizer.source.spans_in(text, source[tags:])
        source_words = words(text, starts(spans))
        links = []
        for translation, hypothesis in zip((best, *best.alternatives), hypotheses, strict=True):
            target_spans = tokenizer.target.spans(hypothesis.tokens)
            target_words = words(translation.text, starts(target_spans))
            links.append(
                find_links(next(weights)[:, tags:], source_words, spans, target_words, target_spans)
            )
        others = (
            replace(each, links=its) for each, its in zip(best.alternatives, links[1:], strict=True)
        )
        aligned.append(replace(best, links=links[0], alternatives=tuple(others)))
    return aligned


def starts(spans: Sequence[Span]) -> set[int]:
    """The offsets where pieces begin."""
    return {begin for begin, _ in spans}


def find_links(
    weights: NDArray[np.floating],
    source: Sequence[Span],
    source_spans: Sequence[Span],
    target: Sequence[Span],
    target_spans: Sequence[Span],
    share: float = LINK_SHARE,
) -> tuple[Link, ...]:
    """Link each target word to the source words that it attends to most.

    `weights` (t, s) holds the attention of target pieces to source pieces, without EOS. `source` and `target` are the
    spans of words, `source_spans` and `target_spans` the spans of pieces. The links are in the order of target words.
    """
    if not source or not target:
        return ()
    in_source = _shares(source, source_spans)
    in_target = _shares(target, target_spans)
    in_target = in_target / np.maximum(in_target.sum(axis=1, keepdims=True), 1e-9)
    attention = in_target @ weights @ in_source.T  # (target words, source words)
    strongest = attention.max(axis=1, keepdims=True)
    total = attention.sum(axis=1, keepdims=True)
    linked = ((attention == strongest) | (attention >= share * total)) & (attention > 0)
    return tuple(
        Link(source[j], target[i], round(float(attention[i, j]), 4))
        for i, j in np.argwhere(linked).tolist()
    )


def _shares(words_: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """For each word and piece (words, pieces), the fraction of the piece's characters that lies in the word."""
    begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    first, last = np.array(words_, dtype=np.int64).T[:, :, None]
    overlap = np.minimum(np.maximum(end, begin + 1), last) - np.maximum(begin, first)
    shares = np.maximum(overlap, 0).astype(np.float64)
    return shares / np.maximum(shares.sum(axis=0), 1)
