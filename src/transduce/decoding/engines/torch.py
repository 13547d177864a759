"""Our own beam search over models of any family, on a CPU or a GPU."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from transduce.config import DecodeConfig
from transduce.decoding.beam import Filter, Watcher, beam_search
from transduce.decoding.engines.engine import Found, Request
from transduce.decoding.stepper import ModelStepper, forced_log_probs
from transduce.model.batch import make_batch, source_tensor
from transduce.model.seq2seq import Seq2Seq
from transduce.profiling import is_profiled

MOST_WORKERS = 8  # each has memory of its own
FEWEST = 128  # source tokens of a request: less does not occupy a worker
SLACK = 1.05  # for padding: the requests are a multiple of the workers, and at most one short one


class TorchEngine:
    """A model, or an ensemble of models with one vocabulary."""

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        device: torch.device | str | None = None,
        only: Callable[[list[str], list[int]], Filter] | None = None,
        name: str = "torch",
        watch: Watcher | None = None,
    ):
        """Moves the models to the device, by default to where the first one is; using them puts them into eval mode.

        only: of a request's texts, and the longest translations allowed, what makes the filter that its search obeys.
        watch: who sees the steps of every search; those of several requests come in any order.
        """
        self.device = torch.device(device) if device is not None else next(models[0].parameters()).device
        self.models = [model.to(self.device) for model in models]
        self.only, self.name, self.watch = only, name, watch
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
