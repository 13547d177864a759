"""CTranslate2 on a CPU: Transformers, several times as fast as our own search (extra `fast`)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transduce.config.schema import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from transduce.decoding.alignment import Weights
from transduce.decoding.engines.engine import Found, Hypothesis, Request, penalty
from transduce.system.machine import use_wide_registers
from transduce.system.profiling import phase

PATIENCE = 1.25  # beams of complete hypotheses that end a search; 99 of 100 sentences come out as by ours, with one 98
CHECK = "check.json"  # beside a converted model: how it compares with our own search
POSITIONS = 4096  # that a converted model knows, where ours knows any
SHORTLIST = "vmap.txt"  # its name for what a search may choose from
Pieces = tuple[str, ...]  # ids, as it has them


def max_positions(config: ModelConfig) -> int:
    """The longest sequence, EOS counted, that a converted model knows."""
    return config.max_positions if config.positions == "learned" else POSITIONS


def has_gpu() -> bool:
    """Whether there is a CUDA device, which our own search would use."""
    import ctranslate2

    return bool(ctranslate2.get_cuda_device_count())


class CTranslate2Engine:
    """A converted model (see `conversion.py`). It imports no torch, so that a single line is soon translated."""

    takes_terms = False

    def __init__(self, folder: Path, compute_type: str, config: ModelConfig, threads: int):
        """config: of the converted model; threads: so many requests are searched at a time, each by one thread."""
        import ctranslate2

        use_wide_registers()
        self.name = f"CTranslate2, {compute_type}" + ", shortlist" * (folder / SHORTLIST).exists()
        self.max_positions: int | None = max_positions(config)
        self._d_model = config.d_model
        self._translator = ctranslate2.Translator(
            str(folder), compute_type=compute_type, inter_threads=threads, intra_threads=1
        )

    def budget(self, config: DecodeConfig, total: int) -> int:  # noqa: ARG002
        """Few, wide models' more: products are fast with few rows, and small requests occupy all threads to the end."""
        hypotheses = min(config.max_tokens, 4 * max(self._d_model, 256))
        return min(512, hypotheses // config.beam_size)

    def search(self, requests: Sequence[Request], config: DecodeConfig, n_best: int) -> Iterator[Found]:
        """Its search ends a beam by another rule than ours; of the hypotheses it finds, ours chooses the best."""
        with phase("search"):
            jobs = self._start(requests, config)
        for request, job in zip(requests, jobs, strict=True):
            with phase("search"):
                found = self._finish(request, self._results(request, job, config), config.length_penalty, n_best)
            yield found

    def _start(self, requests: Sequence[Request], config: DecodeConfig) -> list[Any]:
        """Searches that run in threads of their own, to be waited for."""
        return [
            self._translator.translate_batch(
                [[*map(str, source), str(EOS)] for source in request.sources],
                beam_size=config.beam_size,
                num_hypotheses=config.beam_size,
                length_penalty=config.length_penalty,
                patience=PATIENCE,
                return_scores=True,
                max_input_length=0,
                max_decoding_length=max(max(request.limits), 1),
                min_decoding_length=0,
                suppress_sequences=[[str(PAD)], [str(BOS)], [str(UNK)]],
                use_vmap=config.shortlist,
                asynchronous=True,
            )
            for request in requests
        ]

    def _results(self, request: Request, jobs: list[Any], config: DecodeConfig) -> list[Any]:
        """What the searches of a request have found.

        A search that goes beyond the limit of a sentence, which another one has, may have lost what ended before: what
        reached a limit of its own is searched again with that.
        """
        results, most = [job.result() for job in jobs], max(request.limits)
        reached: dict[int, list[int]] = {}
        for i, (limit, result) in enumerate(zip(request.limits, results, strict=True)):
            if limit < most and max(map(len, result.hypotheses)) >= limit:
                reached.setdefault(limit, []).append(i)
        for limit, places in reached.items():
            part = Request(
                [request.texts[i] for i in places], [request.sources[i] for i in places], [limit] * len(places)
            )
            [again] = self._start([part], config)
            for i, job in zip(places, again, strict=True):
                results[i] = job.result()
        return results

    def _finish(self, request: Request, results: list[Any], alpha: float, n_best: int) -> Found:
        """The best of what was found, as ours would rank it."""
        log_probs: list[dict[Pieces, float]] = []  # of each sentence by its hypotheses
        cut: dict[tuple[int, Pieces], None] = {}
        for i, (limit, result) in enumerate(zip(request.limits, results, strict=True)):
            log_probs.append({})
            for pieces, score in zip(result.hypotheses, result.scores, strict=True):
                if len(pieces) < limit:
                    log_probs[i][tuple(pieces)] = score * (len(pieces) + 1) ** alpha  # it divides by length ^ alpha
                else:  # to be made to end there, as ours is
                    cut[i, tuple(pieces[:limit])] = None
        if cut:
            scored = self.log_probs([request.sources[i] for i, _ in cut], [list(map(int, pieces)) for _, pieces in cut])
            for (i, pieces), log_prob in zip(cut, scored, strict=True):
                log_probs[i][pieces] = log_prob
        return [_best(each, alpha, n_best) for each in log_probs]

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """By forced decoding, as one batch."""
        results = self._translator.score_batch(
            [[*map(str, source), str(EOS)] for source in sources],
            [[*map(str, target)] for target in targets],
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in results]

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Weights]:
        """By forced decoding, of the layer that the conversion chose.

        What it returns of a search with a beam (4.8) has another first row.
        """
        results = self._translator.translate_batch(
            [[*map(str, source), str(EOS)] for source in sources],
            [[*map(str, target)] for target in targets],
            beam_size=1,
            return_attention=True,
            max_input_length=0,
            max_decoding_length=max(1, *map(len, targets)),
            min_decoding_length=0,
        )
        found = []
        for source, target, result in zip(sources, targets, results, strict=True):
            weights = np.array(result.attention[0], np.float32).reshape(-1, len(source) + 1)
            found.append(weights[: len(target), : len(source)])
        return found


def _best(log_probs: dict[Pieces, float], alpha: float, n_best: int) -> list[Hypothesis]:
    """The best of one sentence's hypotheses, as ours would rank them."""
    scores = {pieces: log_prob / penalty(len(pieces) + 1, alpha) for pieces, log_prob in log_probs.items()}
    best = sorted(scores, key=lambda pieces: -scores[pieces])[:n_best]
    return [Hypothesis(scores[pieces], list(map(int, pieces))) for pieces in best]
