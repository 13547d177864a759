"""Runs an engine on encoded sentences, in batches of similar length."""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transduce.config.commands import option
from transduce.config.schema import DecodeConfig
from transduce.decoding.minimum_bayes_risk import by_expected_chrf
from transduce.decoding.repetition import RETRY_NGRAMS, find_loops
from transduce.decoding.types import (
    FEATURE_PURPOSES,
    Constraints,
    Engine,
    Feature,
    Guide,
    Hypothesis,
    NBestLists,
    Request,
    Sentences,
)
from transduce.system.errors import UserError
from transduce.tokens.batching import batches
from transduce.tokens.terms import annotated
from transduce.tokens.tokenizer import Tokenizer

Rows = list[list[int]]
Compute = Callable[[Rows, Rows], list[Any]]  # Engine.log_probs or Engine.attention


class Fallback:
    """Another engine for the same model. It is opened only for a feature that the first engine lacks."""

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open = open_engine
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    @property
    def engine(self) -> Engine:
        """The engine. Raises UserError if it can't be opened."""
        with self._opening:  # otherwise, each of several threads would open an engine
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights if the engine is open, else 0."""
        return self._engine.weight_bytes if self._engine else 0


@dataclass(frozen=True, eq=False)
class Searcher:
    """An engine with its tokenizer and search options."""

    engine: Engine
    tokenizer: Tokenizer
    config: DecodeConfig = field(default_factory=DecodeConfig)
    fallback: Fallback | None = None
    max_length: int | None = None  # in source tokens; longer sentences are split
    progress: Callable[[int], None] | None = (
        None  # called with the size of each batch that is searched first
    )

    @property
    def max_tokens(self) -> int | None:
        """The maximum length of a source or a target, EOS not counted; None: no limit."""
        if self.engine.max_positions is None:
            return None
        # One position is for the EOS after a source, or for the BOS before a target.
        return self.engine.max_positions - 1

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights of the engine, and of the fallback if it is open."""
        return self.engine.weight_bytes + (self.fallback.weight_bytes if self.fallback else 0)

    def search(
        self,
        engine: Engine,
        sentences: Sentences,
        n_best: int,
        constraints: Constraints | None = None,
    ) -> NBestLists:
        """Find the n_best hypotheses of each sentence.

        `constraints` holds the words that the translations must contain. Sentences with similar texts are searched with
        the fallback if only that can use them.
        """
        helped = [i for i, guide in enumerate(sentences.guides or ()) if guide.similar]
        helper = self._helper(engine) if helped and not constraints else engine
        if helper is engine:
            return self._search(engine, sentences, n_best, constraints)
        n_best_lists: NBestLists = [[]] * len(sentences.texts)
        others = sorted({*range(len(sentences.texts))}.difference(helped))
        for its, places in ((engine, others), (helper, helped)):
            if places:
                found = self._search(its, sentences.select(places), n_best)
                for i, best in zip(places, found, strict=True):
                    n_best_lists[i] = best
        return n_best_lists

    def _helper(self, engine: Engine) -> Engine:
        """The engine that can use similar texts: `engine`, or else the fallback; `engine` if none can."""
        if "steppers" in engine.supports or not self.fallback:
            return engine
        other = self.fallback.engine
        return other if "steppers" in other.supports else engine

    def _search(
        self,
        engine: Engine,
        sentences: Sentences,
        n_best: int,
        constraints: Constraints | None = None,
    ) -> NBestLists:
        inputs = sentences.sources
        guides = sentences.guides or ()
        if guides:
            inputs = list(map(self.guided, inputs, guides, sentences.texts))
        has_prefixes = any(guide.prefix for guide in guides)
        if has_prefixes and "prefixes" not in engine.supports:
            engine = self.engine_for("prefixes")
        uses_similar = "steppers" in engine.supports and any(guide.similar for guide in guides)
        lengths = [self.positions(ids) + 1 for ids in inputs]
        config = self.config
        if constraints:
            lengths = [
                length * beams for length, beams in zip(lengths, constraints.beams, strict=True)
            ]
            config = replace(config, no_repeat_ngram=0)  # a term may repeat tokens
        together = list(batches(lengths, engine.budget(config, sum(lengths))))
        requests = []
        for batch in together:
            limits = [self.limit(sentences.sources[i]) for i in batch]
            selector = (
                functools.partial(constraints.selector, batch, limits) if constraints else None
            )
            token_filter = stepper = None
            of_batch = sentences.select(batch)
            if has_prefixes:
                token_filter = option("prefix search")(self.tokenizer.target, of_batch, limits)
            if uses_similar:
                stepper = option("similar texts")(self.tokenizer, of_batch.guides, self.max_tokens)
            rows = [inputs[i] for i in batch]
            requests.append(Request(of_batch.texts, rows, limits, selector, token_filter, stepper))
        n_best_lists: NBestLists = [[]] * len(sentences.texts)
        for batch, hypotheses in zip(
            together, engine.search(requests, config, n_best), strict=True
        ):
            for i, best in zip(batch, hypotheses, strict=True):
                n_best_lists[i] = self.by_risk(best)
            if self.progress and not constraints:
                self.progress(len(batch))
        # A prefix may have an n-gram twice.
        stuck = [i for i, best in enumerate(n_best_lists) if not best]
        if stuck and has_prefixes and config.no_repeat_ngram:
            freed = replace(self, config=replace(config, no_repeat_ngram=0), progress=None)
            again = freed.search(engine, sentences.select(stuck), n_best, constraints)
            for i, best in zip(stuck, again, strict=True):
                n_best_lists[i] = best
        return n_best_lists

    def guided(self, source: list[int], guide: Guide, text: str) -> list[int]:
        """What the model reads: the ids of a source, its terms and the translation of a similar text, if they fit."""
        vocabulary = self.tokenizer.source
        ids = source
        if guide.terms:
            tags = len(self.tokenizer.tags)
            ids = self._fitting(
                [*ids[:tags], *annotated(vocabulary, text, ids[tags:], guide.terms)], ids
            )
        if guide.similar and vocabulary.match_mark:
            match = vocabulary.encode([guide.similar[0].target]).lists()[0]
            ids = self._fitting([*ids, vocabulary.match_mark, *match], ids)
        return ids

    def _fitting(self, ids: list[int], shorter: list[int]) -> list[int]:
        limits = (self.max_tokens, self.max_length)
        return ids if all(limit is None or len(ids) <= limit for limit in limits) else shorter

    def by_risk(self, best: list[Hypothesis]) -> list[Hypothesis]:
        """With decode.mbr=chrf, the hypotheses with different texts, by expected chrF; otherwise, all hypotheses."""
        if not best or self.config.mbr == "none":
            return best
        by_text: dict[str, Hypothesis] = {}
        for text, hypothesis in zip(
            self.tokenizer.decode([each.tokens for each in best]), best, strict=True
        ):
            by_text.setdefault(text, hypothesis)
        return list(by_expected_chrf(by_text, self.config.length_penalty).values())

    def search_loops_again(
        self, sentences: Sentences, n_best_lists: NBestLists, n_best: int
    ) -> set[int]:
        """Search again, up to twice, if a translation repeats itself. Return the indices of these sentences."""
        flagged = loops = self.loops(sentences, n_best_lists)
        for size in RETRY_NGRAMS if loops and not self.config.no_repeat_ngram else ():
            config = replace(self.config, no_repeat_ngram=size)
            other = replace(self, config=config, progress=None)
            for i, best in zip(
                loops, other.search(self.engine, sentences.select(loops), n_best), strict=True
            ):
                n_best_lists[i] = best or n_best_lists[i]
            loops = self.loops(sentences, n_best_lists)
        return set(flagged)

    def loops(self, sentences: Sentences, n_best_lists: NBestLists) -> list[int]:
        """The indices of the sentences that have a loop as their best translation."""
        is_text = self.tokenizer.values_per_position == 1
        # Equal values in a picture explain no loop, and looking for them would take seconds.
        return find_loops(sentences.sources if is_text else [()] * len(n_best_lists), n_best_lists)

    def forced(self, engine: Engine, compute: Compute, sources: Rows, targets: Rows) -> list[Any]:
        """Call the engine's method `compute` on batches of pairs with similar lengths."""
        results: dict[int, Any] = {}
        lengths = [
            max(self.positions(source), len(target)) + 1
            for source, target in zip(sources, targets, strict=True)
        ]
        for batch in batches(lengths, engine.budget(self.config, sum(lengths))):
            computed = compute([sources[i] for i in batch], [targets[i] for i in batch])
            results.update(zip(batch, computed, strict=True))
        return [results[i] for i in range(len(sources))]

    def limit(self, source: Sequence[int]) -> int:
        """The maximum length of a source's translation in tokens, EOS not counted."""
        limit = self.positions(source) + self.config.max_extra_tokens
        return limit if self.max_tokens is None else min(limit, self.max_tokens)

    def positions(self, source: Sequence[int]) -> int:
        """The number of a source's tokens or, if it is not text, of its vectors."""
        return len(source) // self.tokenizer.values_per_position

    def engine_for(self, feature: Feature) -> Engine:
        """An engine that supports the feature, if need be the fallback. Raises UserError if there is none."""
        engine = self.engine
        if feature not in engine.supports and self.fallback:
            engine = self.fallback.engine
        if feature not in engine.supports:
            raise UserError(f"{engine.name} can't {FEATURE_PURPOSES[feature]} with this model.")
        return engine

    def check_lengths(self, side: str, rows: list[list[int]], numbers: Sequence[int]) -> None:
        """Raise UserError if the engine does not support the length of a row. `numbers` holds the texts' numbers."""
        other = (
            ", or choose the engine torch"
            if self.fallback and "positions" not in self.engine.supports
            else ""
        )
        for row, number in zip(rows, numbers, strict=True):
            if self.max_tokens is not None and len(row) > self.max_tokens:
                raise UserError(
                    f"{side} text {number} has {len(row)} tokens, but {self.engine.name} "
                    f"supports at most {self.max_tokens}.",
                    f"Split the text{other}.",
                )
