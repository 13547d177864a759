"""Translates with an ONNX export on a CPU, with ONNX Runtime and our own beam search.

    encoder.onnx    source (b, s) -> mask (b, 1, 1, s) and, for each decoder layer, source keys and values (b, h, s, d)
    decoder.onnx    tokens (r,), the encoder's outputs, and keys and values (r, h, t, d) of the decoded tokens
                    -> log_probs (r, v), and keys and values (r, h, t + 1, d) that include the new token's

b = sentences, r = hypotheses (sorted by sentence), h = heads, s and t = positions, d = channels of a head.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.config.schema import DecodeConfig, ModelConfig
from transduce.decoding.beam import beam_search
from transduce.decoding.types import Feature, ModelToOpen, NBestLists, Request
from transduce.model.seq2seq import make_batch, source_tensor
from transduce.system.errors import UserError, needing
from transduce.system.machine import cores
from transduce.system.profiling import phase
from transduce.wings.formats import max_positions

if TYPE_CHECKING:
    from transduce.decoding.types import Weights

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
SOURCE_INPUT, TOKENS, MASK, LOG_PROBS = "source", "tokens", "mask", "log_probs"
ATTENTION = "attention"  # only of exports for the web, whose page aligns words
MIN_SOURCE_TOKENS = 512  # minimum size of a request; see `OnnxEngine.budget`

Arrays = dict[str, NDArray[Any]]


def cache_names(layers: int, prefix: str = "") -> list[str]:
    """The names of the keys and values that each decoding step passes to the next step.

    Keys and values of the source, which the encoder passes to the decoder, have the prefix "source_".
    """
    return [f"{prefix}{what}_{layer}" for layer in range(layers) for what in ("keys", "values")]


def after(name: str) -> str:
    """The name of the decoder's output that becomes its input `name` in the next step."""
    return f"{name}_after"


class OnnxStepper:
    """A `Stepper` that runs the encoder once and the decoder at each step."""

    device = torch.device("cpu")

    def __init__(self, encoder: Any, decoder: Any, empty: Arrays, src: NDArray[np.int64]):
        """`src` (b, s) holds source ids with EOS; `empty` is the empty cache of keys and values for one row."""
        names = [output.name for output in encoder.get_outputs()]
        with phase("encode"):
            self.memory: Arrays = dict(
                zip(names, encoder.run(names, {SOURCE_INPUT: src}), strict=True)
            )
        self.state: Arrays = {
            name: np.repeat(array, len(src), axis=0) for name, array in empty.items()
        }
        self._decoder = decoder

    @phase("decode")
    def __call__(self, tokens: Tensor) -> Tensor:
        """Decode one step: the last tokens (r,) -> log-probabilities of the next tokens (r, v)."""
        outputs = [LOG_PROBS, *map(after, self.state)]
        log_probs, *states = self._decoder.run(
            outputs, {TOKENS: tokens.numpy(), **self.memory, **self.state}
        )
        self.state = dict(zip(self.state, states, strict=True))
        return torch.from_numpy(log_probs)

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Select hypotheses in the decoder's cache. If `sentences` is not None, also select encoded sentences."""
        self.state = {name: array[rows.numpy()] for name, array in self.state.items()}
        if sentences is not None:
            self.memory = {name: array[sentences.numpy()] for name, array in self.memory.items()}


class OnnxEngine:
    """An engine with an `onnxruntime.InferenceSession` for each of the two graphs."""

    name = "ONNX Runtime"
    supports: frozenset[Feature] = frozenset(
        {"constraints", "prefixes"}
    )  # the graphs return no attention

    def __init__(self, folder: Path, config: ModelConfig, threads: int):
        """Raises UserError if onnxruntime isn't installed or can't read the graphs."""
        with needing("export", str(folder)):
            import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        try:
            self._encoder, self._decoder = (
                onnxruntime.InferenceSession(
                    str(folder / name), options, providers=["CPUExecutionProvider"]
                )
                for name in (ENCODER, DECODER)
            )
        except Exception as error:  # onnxruntime's errors have no common class
            raise UserError(f"{folder} can't be read by onnxruntime: {error}") from None
        self.weight_bytes = sum((folder / name).stat().st_size for name in (ENCODER, DECODER))
        # The memory for attention grows with the square of this number.
        self.max_positions: int | None = max_positions(config)
        # The decoder's inputs that grow with each step, (r, h, t, d), with r = 1 and t = 0.
        self._empty: Arrays = {
            each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), dtype=np.float32)
            for each in self._decoder.get_inputs()
            if each.name in cache_names(config.num_decoder_layers)
        }

    def budget(self, config: DecodeConfig, total: int) -> int:
        """The number of source tokens per request, at most max_tokens / beam_size."""
        return min(max(1, config.max_tokens // config.beam_size), max(MIN_SOURCE_TOKENS, total))

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        """Search the requests one after another; each search uses all threads."""
        for request in requests:
            yield beam_search(
                self._stepper(request.sources),
                request.limits,
                beam_size=config.beam_size,
                length_penalty=config.length_penalty,
                n_best=n_best,
                no_repeat_ngram=config.no_repeat_ngram,
                token_filter=request.token_filter,
                selector=request.selector(config.beam_size) if request.selector else None,
            )

    def log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """The log-probability of each token of each target, and of EOS, given its source."""
        step = self._stepper(sources)
        batch = make_batch(sources, targets)
        steps = zip(batch.tgt_in.T.contiguous(), batch.tgt_out.T, strict=True)
        rows = torch.stack(
            [step(before).gather(1, tokens[:, None])[:, 0] for before, tokens in steps], dim=1
        ).tolist()
        return [row[: len(target) + 1] for row, target in zip(rows, targets, strict=True)]

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[Weights]":
        """Raises NotImplementedError, since the graphs return no attention."""
        raise NotImplementedError

    def _stepper(self, sources: Sequence[Sequence[int]]) -> OnnxStepper:
        return OnnxStepper(
            self._encoder, self._decoder, self._empty, source_tensor(sources).numpy()
        )


def open_engine(model: ModelToOpen) -> OnnxEngine:
    """The engine of an exported folder; raises UserError if onnxruntime isn't installed or can't read the graphs."""
    return OnnxEngine(model.folders[0], model.config.model, model.threads or cores())
