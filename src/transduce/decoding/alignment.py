"""Which words of a source the words of its translation come from, by the attention when they were predicted.

Dimensions: s = source pieces, t = target pieces.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.types import Engine, Hypothesis, Link, Translation
from transduce.decoding.words import words
from transduce.tokens.spans import Span

if TYPE_CHECKING:
    from transduce.tokens.tokenizer import Tokenizer

LINK_SHARE = 1 / 3  # of a target word's attention to source words: what makes a link beside the strongest one


def align(
    engine: Engine,
    tokenizer: "Tokenizer",
    texts: Sequence[str],
    sources: Sequence[Sequence[int]],
    hypotheses: Sequence[Sequence[Hypothesis]],
    translations: Sequence[Translation],
    batched: Callable[[Engine, list[int]], Iterable[list[int]]],
) -> list[Translation]:
    """The translations and their alternatives, with links; hypotheses: those of each sentence, in the same order.

    batched: the indices of pairs with these lengths, in batches for an engine.
    """
    rows = [(i, hypothesis.tokens) for i, ranked in enumerate(hypotheses) for hypothesis in ranked]
    weights: dict[int, NDArray[np.float32]] = {}
    for batch in batched(engine, [max(len(sources[i]), len(tokens)) + 1 for i, tokens in rows]):
        pairs = [rows[row] for row in batch]
        attention = engine.attention([sources[i] for i, _ in pairs], [tokens for _, tokens in pairs])
        weights.update(zip(batch, attention, strict=True))
    spans = [tokenizer.source.spans_in(*pair) for pair in zip(texts, sources, strict=True)]
    order = iter(range(len(rows)))

    def linked(translation: Translation) -> Translation:
        row = next(order)
        i, tokens = rows[row]
        target_spans = tokenizer.target.spans(tokens)
        return replace(translation, links=find_links(weights[row], texts[i], spans[i], translation.text, target_spans))

    return [replace(linked(best), alternatives=tuple(map(linked, best.alternatives))) for best in translations]


def find_links(
    weights: NDArray[np.floating],
    source: str,
    source_spans: Sequence[Span],
    target: str,
    target_spans: Sequence[Span],
) -> tuple[Link, ...]:
    """Link each word of the translation to the source words that it attended to most, in the order of the translation.

    weights (t, s): the attention of each piece when it was predicted. What is missing from 1 went to EOS and to spaces.
    A word without attention to words has no link.
    """
    # In scripts without spaces each piece is a word.
    source_words, target_words = (
        words(text, {begin for begin, _ in spans}) for text, spans in ((source, source_spans), (target, target_spans))
    )
    return link_words(weights, source_words, source_spans, target_words, target_spans)


def link_words(
    weights: NDArray[np.floating],
    source: Sequence[Span],
    source_spans: Sequence[Span],
    target: Sequence[Span],
    target_spans: Sequence[Span],
    share: float = LINK_SHARE,
) -> tuple[Link, ...]:
    """The same for these words; share: as LINK_SHARE."""
    if not source or not target:
        return ()
    in_source, in_target = _shares(source, source_spans), _shares(target, target_spans)
    in_target = in_target / np.maximum(in_target.sum(axis=1, keepdims=True), 1e-9)
    attention = in_target @ weights @ in_source.T  # (target words, source words)
    strongest, total = attention.max(axis=1, keepdims=True), attention.sum(axis=1, keepdims=True)
    linked = ((attention == strongest) | (attention >= share * total)) & (attention > 0)
    return tuple(Link(source[j], target[i], round(float(attention[i, j]), 4)) for i, j in np.argwhere(linked).tolist())


def _shares(words_: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """(words, pieces): the share of each piece in each word; an empty piece belongs to the word at its place."""
    begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    first, last = np.array(words_, dtype=np.int64).T[:, :, None]
    overlap = np.minimum(np.maximum(end, begin + 1), last) - np.maximum(begin, first)
    shares = np.maximum(overlap, 0).astype(np.float64)
    return shares / np.maximum(shares.sum(axis=0), 1)
