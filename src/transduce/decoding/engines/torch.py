"""Our own beam search over models of any family, on a CPU or a GPU."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from transduce.config.schema import DecodeConfig
from transduce.decoding.alignment import Weights
from transduce.decoding.beam import Filter, Watcher, beam_search
from transduce.decoding.constraints import constrained
from transduce.decoding.engines.attention import guess_layer, source_attention
from transduce.decoding.engines.engine import Found, Request
from transduce.decoding.stepper import ModelStepper, forced_log_probs
from transduce.model.batch import make_batch, source_tensor
from transduce.model.seq2seq import Seq2Seq
from transduce.system.profiling import is_profiled

MOST_WORKERS = 8  # each has memory of its own
FEWEST = 128  # source tokens of a request: less does not occupy a worker
SLACK = 1.05  # for padding: the requests are a multiple of the workers, and at most one short one


class TorchEngine:
    """A model, or an ensemble of models with one vocabulary."""

    takes_terms = True

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        device: torch.device | str | None = None,
        only: Callable[[list[str], list[int]], Filter] | None = None,
        name: str = "torch",
        watch: Watcher | None = None,
        layers: Callable[[], list[int]] | None = None,
    ):
        """Moves the models to the device, by default to where the first one is; using them puts them into eval mode.

        only: of a request's texts, and the longest translations allowed, what makes the filter that its search obeys.
        watch: who sees the steps of every search; those of several requests come in any order. layers: what tells, when
        it is first needed, the layer of each model whose attention aligns words; otherwise a guess.
        """
        self.device = torch.device(device) if device is not None else next(models[0].parameters()).device
        self.models = [model.to(self.device) for model in models]
        self.only, self.name, self.watch = only, name, watch
        self._layers = functools.cache(layers) if layers else None
        limits = [model.max_positions for model in models if model.max_positions is not None]
        self.max_positions = min(limits, default=None)

    def budget(self, config: DecodeConfig, total: int) -> int:
        """As many as the memory is meant for, or fewer, so that all workers are busy to the end."""
        most = max(1, config.max_tokens // config.beam_size)
        workers = self._workers()
        each = total / (workers * max(1, math.ceil(total / (workers * most))))
        return min(most, max(FEWEST, math.ceil(SLACK * each)))

    def _workers(self) -> int:
        """Requests that are searched at the same time."""
        one_at_a_time = self.device.type != "cpu" or is_profiled()
        return 1 if one_at_a_time else min(torch.get_num_threads(), MOST_WORKERS)

    def search(self, requests: Sequence[Request], config: DecodeConfig, n_best: int) -> Iterator[Found]:
        """As many requests at a time as there are threads, each by one: two threads for one are hardly faster."""

        def find(request: Request) -> Found:
            return beam_search(
                ModelStepper(self.models, source_tensor(request.sources).to(self.device)),
                request.limits,
                beam_size=config.beam_size,
                length_penalty=config.length_penalty,
                n_best=n_best,
                only=self.only(request.texts, request.limits) if self.only else None,
                watch=self.watch,
                choose=constrained(request, config),
            )

        threads, workers = torch.get_num_threads(), min(self._workers(), len(requests))
        if workers < 2:
            yield from map(find, requests)
            return
        torch.set_num_threads(threads // workers)  # of each worker
        try:
            with ThreadPoolExecutor(workers) as pool:
                found = list(pool.map(find, requests))
        finally:
            torch.set_num_threads(threads)
        yield from found

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """By forced decoding, as one batch."""
        log_probs = forced_log_probs(self.models, make_batch(sources, targets).to(self.device))
        sums: list[float] = log_probs.double().sum(dim=1).tolist()
        return sums

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Weights]:
        """By forced decoding, as one batch; of an ensemble the mean."""
        batch = make_batch(sources, targets).to(self.device)
        found = [source_attention(model, batch) for model in self.models]
        layers = self._layers() if self._layers else [guess_layer(len(each)) for each in found]
        chosen = [each[layer] for each, layer in zip(found, layers, strict=True) if each]
        if not chosen:
            return [np.zeros((len(t), len(s)), np.float32) for s, t in zip(sources, targets, strict=True)]
        mean = torch.stack(chosen).mean(dim=0).cpu().numpy()
        return [each[: len(t), : len(s)] for each, s, t in zip(mean, sources, targets, strict=True)]
