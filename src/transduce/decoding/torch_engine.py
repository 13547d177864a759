"""The engine "torch", a beam search for every model family on a CPU or a GPU."""

import copy
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

import torch

from transduce.config.schema import DecodeConfig
from transduce.decoding.alignment_layer import (
    alignment_layer,
    guess_layer,
    source_attention,
    source_attentions,
)
from transduce.decoding.beam import Watcher, beam_search
from transduce.decoding.stepper import ModelStepper, forced_log_probs
from transduce.decoding.types import Feature, ModelToOpen, NBestLists, Request, TokenFilter
from transduce.model.device import choose_device, set_threads
from transduce.model.seq2seq import Seq2Seq, make_batch, source_tensor
from transduce.model_folder import Bundle, load_network
from transduce.system.machine import keep_memory
from transduce.system.profiling import map_in_threads

if TYPE_CHECKING:
    from transduce.decoding.types import Weights

MAX_WORKERS = 8  # each worker needs its own memory
GPU_FACTOR = 16  # a step takes about as long for many hypotheses as for a few
MIN_REQUEST_TOKENS = 128  # source tokens of a request; fewer do not keep a worker busy
PARALLEL_SEARCH = threading.Lock()  # torch's number of threads applies to the whole process
MAX_FORCED_TOKENS = 8192  # tokens per batch
MAX_FORCED_LOGITS = 150_000_000  # logits per batch: they and a copy need 1.2 GB
SLACK = 1.05  # room for padding, so that the number of requests is about a multiple of the number of workers


class TorchEngine:
    """Beam search with one model, or with an ensemble of models that share a vocabulary."""

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        token_filter: Callable[[list[str], list[int]], TokenFilter] | None = None,
        name: str = "torch",
        on_step: Watcher | None = None,
        layers: Callable[[], list[int]] | None = None,
    ):
        """All models must be on the same device. A search sets them to eval mode.

        `token_filter` makes the token filter of a request from the request's texts and length limits. `on_step` is
        called with the candidates of each search step. Parallel requests call `on_step` in any order. `layers` returns,
        for each model, the index of the decoder layer whose attention aligns words. By default, the index is guessed.
        """
        self.device = next(models[0].parameters()).device
        self.models = list(models)
        self.token_filter = token_filter
        self.name = name
        self.on_step = on_step
        self._layers = functools.cache(layers) if layers else None
        limits = [model.max_positions for model in models if model.max_positions is not None]
        self.max_positions = min(limits, default=None)
        features: list[Feature] = ["constraints", "positions", "prefixes"]
        if all(hasattr(model, "decoder_output") for model in models):
            features.append("steppers")
        if any(source_attentions(model) for model in models):
            features.append("attention")
        self.supports = frozenset(features)

    @property
    def weight_bytes(self) -> int:
        """The memory for the weights."""
        weights = chain.from_iterable(model.parameters() for model in self.models)
        return sum(weight.nbytes for weight in weights)

    def budget(self, config: DecodeConfig, total: int) -> int:
        """The number of source tokens per request that fits into config.max_tokens and keeps all workers busy."""
        limit = max(
            1,
            config.max_tokens
            * (GPU_FACTOR if self.device.type == "cuda" else 1)
            // config.beam_size,
        )
        workers = self._workers()
        equal_share = total / (workers * max(1, math.ceil(total / (workers * limit))))
        return min(limit, max(MIN_REQUEST_TOKENS, math.ceil(SLACK * equal_share)))

    def _workers(self) -> int:
        """The number of requests that run at the same time."""
        return min(torch.get_num_threads(), MAX_WORKERS) if self.device.type == "cpu" else 1

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        """Run the requests, on a CPU in parallel threads."""
        find = functools.partial(self.run, config=config, n_best=n_best)
        if (workers := min(self._workers(), len(requests))) < 2:
            yield from map(find, requests)
            return
        with PARALLEL_SEARCH:
            with ThreadPoolExecutor(
                1
            ) as pool:  # a new thread, since an older one may keep the number that a search has set
                threads = pool.submit(torch.get_num_threads).result()
            torch.set_num_threads(max(1, threads // workers))  # per worker
            try:
                with ThreadPoolExecutor(workers) as pool:
                    n_best_lists = map_in_threads(pool, find, requests)
            finally:
                torch.set_num_threads(threads)
        yield from n_best_lists

    def run(self, request: Request, config: DecodeConfig, n_best: int) -> NBestLists:
        """Run one request in config.precision: for each sentence, a list of at most n_best translations.

        If numbers exceed the range of float16, a sentence has no translation, and the search is repeated in float32.
        """
        lists: NBestLists = []
        if config.precision == "float16" or (config.precision, self.device.type) == (
            "auto",
            "cuda",
        ):
            first = request._replace(token_filter=copy.copy(request.token_filter))
            with torch.autocast(self.device.type, torch.float16):
                lists = self._search(first, config, n_best)
        return lists if lists and all(lists) else self._search(request, config, n_best)

    def _search(self, request: Request, config: DecodeConfig, n_best: int) -> NBestLists:
        src = source_tensor(request.sources).to(self.device)
        stepper = request.stepper or ModelStepper
        return beam_search(
            stepper(self.models, src),
            request.limits,
            beam_size=config.beam_size,
            length_penalty=config.length_penalty,
            n_best=n_best,
            no_repeat_ngram=config.no_repeat_ngram,
            token_filter=self.token_filter(request.texts, request.limits)
            if self.token_filter
            else request.token_filter,
            on_step=self.on_step,
            selector=request.selector(config.beam_size) if request.selector else None,
        )

    def log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Compute the log-probabilities of the tokens by forced decoding, in batches of limited size."""
        tokens = min(MAX_FORCED_TOKENS, MAX_FORCED_LOGITS // self.models[0].vocab_size)
        rows = max(1, tokens // (max(map(len, targets), default=0) + 1))
        parts = [slice(start, start + rows) for start in range(0, len(targets), rows)]
        batches = (make_batch(sources[part], targets[part]).to(self.device) for part in parts)
        log_probs = chain.from_iterable(
            forced_log_probs(self.models, batch).tolist() for batch in batches
        )
        return [row[: len(target) + 1] for row, target in zip(log_probs, targets, strict=True)]

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[Weights]":
        """Attention of targets to sources by forced decoding, averaged over the models with source attention."""
        batch = make_batch(sources, targets).to(self.device)
        maps = [source_attention(model, batch) for model in self.models]
        layers = self._layers() if self._layers else [guess_layer(len(each)) for each in maps]
        chosen = [each[layer] for each, layer in zip(maps, layers, strict=True) if each]
        mean = torch.stack(chosen).mean(dim=0).cpu().numpy()
        return [each[: len(t), : len(s)] for each, s, t in zip(mean, sources, targets, strict=True)]


def open_engine(
    model: ModelToOpen,
    *,
    name: str = "torch",
    engine: type[TorchEngine] = TorchEngine,
) -> TorchEngine:
    """Load the models and make an engine."""
    device = model.device or choose_device()
    keep_memory()
    if model.threads:
        set_threads(model.threads)
    bundles = []
    for folder, description in zip(model.folders, model.descriptions, strict=True):
        network = load_network(description, device)
        bundles.append(Bundle(folder.absolute(), description.config, model.tokenizer, network))
    return engine(
        [bundle.model for bundle in bundles],
        name=name,
        layers=lambda: [alignment_layer(bundle) for bundle in bundles],
    )
