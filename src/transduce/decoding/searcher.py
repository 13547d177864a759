"""Runs an engine on encoded sentences, in batches of similar length."""

import copy
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from transduce.config.schema import DecodeConfig
from transduce.decoding.minimum_bayes_risk import by_expected_chrf
from transduce.decoding.repetition import RETRY_NGRAMS, find_loops
from transduce.decoding.types import (
    FEATURE_PURPOSES,
    Constraints,
    Engine,
    Feature,
    Hypothesis,
    NBestLists,
    Request,
    Sentences,
)
from transduce.system.errors import UserError
from transduce.tokens.batching import batches
from transduce.tokens.tokenizer import Tokenizer

Rows = list[list[int]]
Compute = Callable[[Rows, Rows], list[Any]]  # Engine.log_probs or Engine.attention


class Searcher:
    """An engine with its tokenizer and search options."""

    def __init__(
        self, engine: Engine, tokenizer: Tokenizer, config: DecodeConfig, fallback: Callable[[], Engine] | None
    ) -> None:
        """`fallback` opens another engine for the same model, for features that `engine` does not support."""
        self.engine, self.tokenizer, self.config = engine, tokenizer, config
        self._fallback = functools.cache(fallback) if fallback else None
        self._opening = threading.Lock()
        # One position is for the EOS after a source or the BOS before a target.
        self.max_tokens = None if engine.max_positions is None else engine.max_positions - 1

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights of the engine, and of the fallback if it is open."""
        is_open = self._fallback is not None and self._fallback.cache_info().currsize
        return self.engine.weight_bytes + (self._fallback().weight_bytes if self._fallback and is_open else 0)

    def search(
        self, engine: Engine, sentences: Sentences, n_best: int, constraints: Constraints | None = None
    ) -> NBestLists:
        """Find the n_best hypotheses of each sentence. `constraints` holds the words that they must contain."""
        lengths, config = [len(source) + 1 for source in sentences.sources], self.config
        if constraints:
            lengths = [length * beams for length, beams in zip(lengths, constraints.beams, strict=True)]
            config = replace(config, no_repeat_ngram=0)  # a term may repeat tokens
        together = list(batches(lengths, engine.budget(config, sum(lengths))))
        requests = []
        for batch in together:
            sources = [sentences.sources[i] for i in batch]
            limits = list(map(self.limit, sources))
            selector = functools.partial(constraints.selector, batch, limits) if constraints else None
            requests.append(Request([sentences.texts[i] for i in batch], sources, limits, selector))
        n_best_lists: NBestLists = [[]] * len(sentences.texts)
        for batch, hypotheses in zip(together, engine.search(requests, config, n_best), strict=True):
            for i, best in zip(batch, hypotheses, strict=True):
                n_best_lists[i] = self.by_risk(best)
        return n_best_lists

    def by_risk(self, best: list[Hypothesis]) -> list[Hypothesis]:
        """With decode.mbr=chrf, the hypotheses with different texts, by expected chrF; otherwise all as they are."""
        if not best or self.config.mbr == "none":
            return best
        by_text: dict[str, Hypothesis] = {}
        for text, hypothesis in zip(self.tokenizer.decode([each.tokens for each in best]), best, strict=True):
            by_text.setdefault(text, hypothesis)
        return list(by_expected_chrf(by_text, self.config.length_penalty).values())

    def search_loops_again(self, sentences: Sentences, n_best_lists: NBestLists, n_best: int) -> set[int]:
        """Search again, up to twice, if a translation repeats itself. Return the indices of these sentences."""
        flagged = loops = find_loops(sentences.sources, n_best_lists)
        for size in RETRY_NGRAMS if loops and not self.config.no_repeat_ngram else ():
            other = copy.copy(self)
            other.config = replace(self.config, no_repeat_ngram=size)
            for i, best in zip(loops, other.search(self.engine, sentences.select(loops), n_best), strict=True):
                n_best_lists[i] = best or n_best_lists[i]
            loops = find_loops(sentences.sources, n_best_lists)
        return set(flagged)

    def forced(self, engine: Engine, compute: Compute, sources: Rows, targets: Rows) -> list[Any]:
        """Call the engine's method `compute` on batches of pairs with similar lengths."""
        results: dict[int, Any] = {}
        lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        for batch in batches(lengths, engine.budget(self.config, sum(lengths))):
            computed = compute([sources[i] for i in batch], [targets[i] for i in batch])
            results.update(zip(batch, computed, strict=True))
        return [results[i] for i in range(len(sources))]

    def limit(self, source: Sequence[int]) -> int:
        """The maximum length of a source's translation in tokens, EOS not counted."""
        limit = len(source) + self.config.max_extra_tokens
        return limit if self.max_tokens is None else min(limit, self.max_tokens)

    def engine_for(self, feature: Feature) -> Engine:
        """An engine that supports the feature, if need be the fallback. Raises UserError if there is none."""
        engine = self.engine
        if feature not in engine.supports and self._fallback:
            with self._opening:  # else each of several threads would open it
                engine = self._fallback()
        if feature not in engine.supports:
            raise UserError(f"{engine.name} can't {FEATURE_PURPOSES[feature]} with this model.")
        return engine

    def check_lengths(self, side: str, rows: list[list[int]], numbers: Sequence[int]) -> None:
        """Raise UserError if the engine does not support the length of a row. `numbers` holds the texts' numbers."""
        other = ", or choose the engine torch" if self._fallback and "positions" not in self.engine.supports else ""
        for row, number in zip(rows, numbers, strict=True):
            if self.max_tokens is not None and len(row) > self.max_tokens:
                raise UserError(
                    f"{side} text {number} has {len(row)} tokens, but {self.engine.name} supports at most "
                    f"{self.max_tokens}. Split the text{other}."
                )
