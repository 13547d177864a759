"""Translates with CTranslate2 on a CPU, several times as fast as our own search.

The first use of a model saves a converted copy in the cache (see `build.py`):

    $XDG_CACHE_HOME/transduce/engines/<digest>/    model.bin  config.json  …  check.json  manifest.json

`<digest>` depends on the model's files and on CTranslate2's version.
"""

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from transduce.config.schema import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from transduce.decoding.types import (
    Feature,
    Hypothesis,
    NBestLists,
    Refusal,
    Request,
    length_penalty,
)
from transduce.system.cache import remembered_digest
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.profiling import phase
from transduce.wings.completion.prefixes import PrefixFilter
from transduce.wings.ct2.beginnings import Logits, beginnings
from transduce.wings.ct2.registers import use_wide_registers
from transduce.wings.formats import max_positions

if TYPE_CHECKING:
    from transduce.decoding.types import Weights

PATIENCE = 1.25  # a search ends with PATIENCE x beam_size hypotheses; 99 % of translations equal ours (1.0: 98 %)
# Behind a prefix, each of beam_size / ALTERNATIVE_BEAM first tokens is continued with a beam of this size.
ALTERNATIVE_BEAM = 2
MIN_PROBABILITY = 1e-9  # of a token other than EOS, since float32 rounds that of EOS to 1
# The comparison of a converted model with our own search, in the model's folder.
CHECK_FILE = "check.json"
MAX_LOOPS = 0.02  # maximum share of sentences with loops; each loop needs a second search
# The maximum loss of an engine that is certain, and the maximum error of its mean loss (so that few sentences don't
# excuse a large loss):
MAX_CHRF_LOSS, MAX_CHRF_ERROR = 0.3, 1.0  # chrF points
MAX_SCORE_LOSS, MAX_SCORE_ERROR = 0.05, 0.1  # length-penalised nats
WORSE = Refusal("its translations are worse than those of our own search")
Pieces = tuple[str, ...]  # ids as text


class Loss(NamedTuple):
    """The mean over sentences of the score of our own search minus the score of an engine."""

    mean: float
    error: float  # two standard errors

    def is_at_most(self, limit: float, max_error: float) -> bool:
        """Whether the loss may be at most `limit`. False if the mean is NaN."""
        return self.mean - min(self.error, max_error) <= limit


class Check(NamedTuple):
    """How an engine's translations compare with those of our own search. Sentences with loops are not compared."""

    sentences: int
    more_loops: int  # sentences that only the engine translates by a loop
    same: int  # sentences that both engines translate to the same tokens
    score: Loss  # loss of our model's score
    chrf: Loss | None  # loss of chrF against the references, if there are any

    def __str__(self) -> str:
        if not self.sentences:
            return "nothing can be compared, because every sentence becomes a loop"
        what = f"{self.same} of {self.sentences} sentences get the same translation as from torch"
        what += f", additional loops: {self.more_loops}" if self.more_loops else ""
        if self.chrf:
            return f"{what}, and chrF differs by {-self.chrf.mean:+z.2f} ± {self.chrf.error:.2f}"
        return f"{what}, and our model's scores differ by {-self.score.mean:+z.4f} ± {self.score.error:.4f}"

    def is_good(self) -> bool:
        """Whether the engine has few loops and neither chrF nor the model's scores are certainly lower.

        The scores reveal faulty conversions.
        """
        if self.more_loops > max(1, MAX_LOOPS * self.sentences):
            return False
        is_likely = self.score.is_at_most(MAX_SCORE_LOSS, MAX_SCORE_ERROR)
        return is_likely and (not self.chrf or self.chrf.is_at_most(MAX_CHRF_LOSS, MAX_CHRF_ERROR))


class EngineError(UserError):
    """Raised if CTranslate2 can't run a converted model on this machine."""


def read_compute_type(place: Path) -> str | None:
    """A cached engine's compute type, "" if no type is accurate, None without an engine. Deletes a damaged engine."""
    try:
        if place.exists():
            verify(place, hashes=True, remembered=remembered_digest)
            return str(json.loads((place / CHECK_FILE).read_text(encoding="utf-8"))["compute_type"])
    except (UserError, OSError, LookupError, TypeError, ValueError):
        with contextlib.suppress(OSError):  # another process may be deleting the engine
            shutil.rmtree(place.rename(place.with_name(f".{place.name}.damaged-{os.getpid()}")))
    return None


class CTranslate2Engine:
    """An engine that runs a converted model without importing torch."""

    def __init__(self, folder: Path, compute_type: str, config: ModelConfig, threads: int):
        """Opens a converted model; raises EngineError if CTranslate2 can't run the model on this machine."""
        import ctranslate2

        use_wide_registers()
        self.name = f"CTranslate2, {compute_type}"
        self.max_positions: int | None = max_positions(config)
        features: set[Feature] = (
            {"attention", "positions"} if config.positions == "learned" else {"attention"}
        )
        features.add("prefixes")
        self.supports = frozenset(features)
        self.weight_bytes = (folder / "model.bin").stat().st_size
        self._d_model = config.d_model
        # The number of tags that begin each source and that the decoder reads instead: CTranslate2's target prefix.
        self._tags = int(config.target_tag)
        try:
            # In a thread of its own, since CTranslate2 sets OpenMP's number of threads, which torch has, too.
            with ThreadPoolExecutor(1) as pool:
                self._opened = pool.submit(
                    ctranslate2.Translator,
                    str(folder),
                    compute_type=compute_type,
                    inter_threads=threads,
                    intra_threads=1,
                ).result()
        except (RuntimeError, ValueError) as error:
            raise EngineError(str(error)) from None
        self._process = os.getpid()

    @property
    def _translator(self) -> Any:
        # The engine's threads stayed in the parent process: a search would wait forever.
        if os.getpid() != self._process:
            raise UserError(
                "The model was loaded before this process forked.", "Load it in this process."
            )
        return self._opened

    def budget(self, config: DecodeConfig, total: int) -> int:  # noqa: ARG002
        """The number of source tokens per request, limited so that all threads get requests."""
        hypotheses = min(config.max_tokens, 4 * max(self._d_model, 256))
        return min(512, hypotheses // config.beam_size)

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        """Search with CTranslate2, and rank the hypotheses by our own score."""
        if any(request.token_filter for request in requests):
            yield from (self._complete(request, config, n_best) for request in requests)
            return
        with phase("search"):
            jobs = [
                self._start(request.sources, max(request.limits), config) for request in requests
            ]
        for request, job in zip(requests, jobs, strict=True):
            with phase("search"):
                results = self._results(request, job, config)
                n_best_lists = self._rank(request, results, config, n_best)
            yield n_best_lists

    def _complete(self, request: Request, config: DecodeConfig, n_best: int) -> NBestLists:
        """Search for translations that begin with prefixes."""
        prefixes = cast(PrefixFilter, request.token_filter).prefixes
        free = [i for i, prefix in enumerate(prefixes) if not prefix]
        n_best_lists: NBestLists = [[] for _ in prefixes]
        if free:
            found = next(self.search([request.select(free)], config, n_best))
            for i, best in zip(free, found, strict=True):
                n_best_lists[i] = best

        def forced(places: Sequence[int], rows: Sequence[Sequence[int]]) -> list[Logits]:
            return self._logits([request.sources[i] for i in places], rows)

        with phase("search"):
            begun = beginnings(prefixes, request.limits, n_best, forced)
            places = [i for i, its in enumerate(begun) for _ in its]
            rows = [list(each.tokens) for its in begun for each in its]
            ranked = self._continued(request.select(places), rows, config, n_best)
        for i, best in zip(places, ranked, strict=True):
            n_best_lists[i] = sorted([*n_best_lists[i], *best], key=lambda each: -each.score)
        return [best[:n_best] for best in n_best_lists]

    def _continued(
        self, request: Request, rows: list[list[int]], config: DecodeConfig, n_best: int
    ) -> NBestLists:
        """Continue the first tokens of each sentence's translation."""
        jobs = self._translator.translate_batch(
            self._sources(request.sources),
            self._targets(request.sources, rows),
            beam_size=min(ALTERNATIVE_BEAM, config.beam_size),
            num_hypotheses=math.ceil(config.beam_size / ALTERNATIVE_BEAM),
            return_alternatives=True,  # otherwise, CTranslate2 computes the given tokens one after the other
            length_penalty=0,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=max(request.limits) + self._tags,
            min_decoding_length=0,
            suppress_sequences=[[str(PAD)], [str(BOS)], [str(UNK)]],
            no_repeat_ngram_size=config.no_repeat_ngram,
            asynchronous=True,
        )
        # CTranslate2 adds at least one token, and its probabilities are those without EOS.
        forced = self.log_probs(request.sources, rows)
        log_probs: list[dict[Pieces, float]] = []
        unscored: list[tuple[int, Pieces]] = []
        for i, (limit, job) in enumerate(zip(request.limits, jobs, strict=True)):
            result = job.result()
            *before, end = forced[i]
            log_probs.append({tuple(map(str, rows[i])): sum(forced[i])})
            going_on = sum(before) + math.log(max(MIN_PROBABILITY, -math.expm1(end)))
            for tagged, score in zip(result.hypotheses, result.scores, strict=True):
                pieces = tuple(tagged[self._tags :])
                if len(pieces) < limit and not config.no_repeat_ngram:
                    log_probs[i][pieces] = going_on + score
                else:
                    unscored.append((i, pieces[:limit]))
        return self._rank_scored(request, log_probs, unscored, config, n_best)

    def _logits(
        self, sources: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
    ) -> list[Logits]:
        """The logits of each token of the rows (tokens, v), given the tokens before it."""
        results = self._translator.translate_batch(
            self._sources(sources),
            self._targets(sources, [row[:-1] for row in rows]),
            beam_size=1,
            return_logits_vocab=True,
            max_input_length=0,
            max_decoding_length=max(map(len, rows)) + self._tags,
            min_decoding_length=0,
        )
        return [
            np.array([np.array(each) for each in result.logits[0][self._tags :]])
            for result in results
        ]

    def _start(
        self, sources: Sequence[Sequence[int]], limit: int, config: DecodeConfig
    ) -> list[Any]:
        jobs: list[Any] = self._translator.translate_batch(
            self._sources(sources),
            self._targets(sources) if self._tags else None,
            beam_size=config.beam_size,
            num_hypotheses=config.beam_size,
            length_penalty=config.length_penalty,
            patience=PATIENCE,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=max(limit, 1) + self._tags,
            min_decoding_length=0,
            suppress_sequences=[[str(PAD)], [str(BOS)], [str(UNK)]],
            no_repeat_ngram_size=config.no_repeat_ngram,
            asynchronous=True,
        )
        return jobs

    def _results(self, request: Request, jobs: list[Any], config: DecodeConfig) -> list[Any]:
        """Wait for a request's results, and repeat the search for sentences with hypotheses that are too long.

        The first search applies the request's largest length limit to all sentences.
        """
        results = [job.result() for job in jobs]
        largest = max(request.limits)
        reached: dict[int, list[int]] = {}
        for i, (limit, result) in enumerate(zip(request.limits, results, strict=True)):
            if limit < largest and max(map(len, result.hypotheses)) >= limit + self._tags:
                reached.setdefault(limit, []).append(i)
        for limit, indices in reached.items():
            again = self._start([request.sources[i] for i in indices], limit, config)
            for i, job in zip(indices, again, strict=True):
                results[i] = job.result()
        return results

    def _rank(
        self, request: Request, results: list[Any], config: DecodeConfig, n_best: int
    ) -> NBestLists:
        """The `n_best` best hypotheses of each sentence, ranked by our score."""
        alpha = config.length_penalty
        log_probs: list[dict[Pieces, float]] = []  # for each sentence, by hypothesis
        unscored: dict[tuple[int, Pieces], None] = {}
        for i, (limit, result) in enumerate(zip(request.limits, results, strict=True)):
            log_probs.append({})
            # CTranslate2 shares the probability of forbidden tokens among the others. UNK has much behind an unknown
            # character, else next to none.
            is_sum = not config.no_repeat_ngram and UNK not in request.sources[i]
            for tagged, score in zip(result.hypotheses, result.scores, strict=True):
                pieces = tagged[self._tags :]
                # Undoes CTranslate2's division by length ^ alpha.
                if len(pieces) < limit and is_sum:
                    log_probs[i][tuple(pieces)] = score * (len(tagged) + 1) ** alpha
                else:  # the score is no sum of probabilities: the limit forced the end, or tokens were forbidden
                    unscored[i, tuple(pieces[:limit])] = None
        return self._rank_scored(request, log_probs, list(unscored), config, n_best)

    def _rank_scored(
        self,
        request: Request,
        log_probs: list[dict[Pieces, float]],
        unscored: list[tuple[int, Pieces]],
        config: DecodeConfig,
        n_best: int,
    ) -> NBestLists:
        alpha = config.length_penalty
        if unscored:
            sources = [request.sources[i] for i, _ in unscored]
            scored = self.log_probs(sources, [list(map(int, pieces)) for _, pieces in unscored])
            for (i, pieces), log_prob in zip(unscored, scored, strict=True):
                log_probs[i][pieces] = sum(log_prob)
        n_best_lists: NBestLists = []
        for each in log_probs:
            scores = {
                pieces: log_prob / length_penalty(len(pieces) + 1, alpha)
                for pieces, log_prob in each.items()
            }
            best = sorted(scores, key=lambda pieces: -scores[pieces])[:n_best]
            n_best_lists.append(
                [Hypothesis(scores[pieces], list(map(int, pieces))) for pieces in best]
            )
        return n_best_lists

    def log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        results = self._translator.score_batch(
            self._sources(sources), self._targets(sources, targets), max_input_length=0
        )
        return [result.log_probs[self._tags :] for result in results]

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[Weights]":
        """Attention by forced decoding, because CTranslate2 4.8 returns a wrong first row after beam search."""
        results = self._translator.translate_batch(
            self._sources(sources),
            self._targets(sources, targets),
            beam_size=1,
            return_attention=True,
            max_input_length=0,
            max_decoding_length=max(1, *map(len, targets)) + self._tags,
            min_decoding_length=0,
        )
        attention = []
        for source, target, result in zip(sources, targets, results, strict=True):
            weights = np.array(result.attention[0], np.float32)
            weights = weights.reshape(-1, len(source) - self._tags + 1)[self._tags :]
            weights = np.pad(weights, ((0, 0), (self._tags, 0)))
            attention.append(weights[: len(target), : len(source)])
        return attention

    def _sources(self, sources: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[*map(str, source[self._tags :]), str(EOS)] for source in sources]

    def _targets(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None = None
    ) -> list[list[str]]:
        """The tags of the sources, each with its target."""
        return [
            [*map(str, source[: self._tags]), *map(str, target)]
            for source, target in zip(sources, targets or [()] * len(sources), strict=True)
        ]
