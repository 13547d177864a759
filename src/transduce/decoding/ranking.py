"""Turns the hypotheses of a search into translations with flags and a confidence."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from transduce.config.schema import DecodeConfig
from transduce.decoding.confidence import Confidence, estimate
from transduce.decoding.repetition import is_copy
from transduce.decoding.types import (
    CUT,
    DETACHED,
    EMPTY,
    LOOP,
    UNTRANSLATED,
    Hypothesis,
    NBestLists,
    Sentences,
    Translation,
    length_penalty,
)
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer


def rank(
    sentences: Sentences,
    n_best_lists: NBestLists,
    tokenizer: Tokenizer,
    config: DecodeConfig,
    confidence: Confidence | None,
    *,
    limits: Sequence[int],
    loops: Collection[int],
    n_best: int,
) -> Iterator[tuple[Translation, list[Hypothesis]]]:
    """For each sentence, yield its translation with up to n_best - 1 alternatives, and their hypotheses.

    `limits` holds the maximum lengths of the translations, `loops` the indices of sentences to flag with LOOP.
    """
    texts = iter(
        tokenizer.decode([hypothesis.tokens for best in n_best_lists for hypothesis in best])
    )
    for i, (source, best) in enumerate(zip(sentences.sources, n_best_lists, strict=True)):
        distinct: dict[str, Hypothesis] = {}
        for hypothesis in best:
            distinct.setdefault(next(texts), hypothesis)
        if not distinct:
            raise UserError(
                "The weights are damaged: the model's probabilities are not numbers.",
                "Use another copy.",
            )
        distinct = dict(islice(distinct.items(), n_best))
        translations = []
        for text, (score, tokens) in distinct.items():
            log_prob = score * length_penalty(len(tokens) + 1, config.length_penalty)
            probability, detached = estimate(confidence, log_prob, len(source) + 1, len(tokens) + 1)
            reasons = {
                CUT: len(tokens) == limits[i],
                LOOP: i in loops,
                DETACHED: detached,
                EMPTY: not text.strip(),
                UNTRANSLATED: is_copy(sentences.texts[i], text),
            }
            flags = tuple(flag for flag, is_true in reasons.items() if is_true)
            pieces = tuple(tokenizer.target.pieces(tokens))
            translations.append(
                Translation(text, score, pieces, flags=flags, confidence=probability)
            )
        first, *others = translations
        yield (
            replace(first, alternatives=tuple(others)) if others else first,
            list(distinct.values()),
        )
