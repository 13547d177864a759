"""What there is to draw of one sentence, as JSON: for `drawing.js`, whoever loads it.

n = positions, t = query pieces, s = key pieces.
"""

import json
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.model.embedding import LearnedPositions
from transduce.model.seq2seq import Seq2Seq
from transduce.wings.inspection.maps import BEGIN, Attention, AttentionUse
from transduce.wings.inspection.tree import SearchTree

ONE = 1000  # numbers are whole thousandths: half as long as fractions, and 60,000 of them in a page are common


@dataclass(frozen=True)
class Maps:
    """One of the three uses of attention."""

    use: str  # encoder, decoder, or source: the decoder's over the source
    queries: list[str]
    keys: list[str]
    weights: list[list[list[list[int]]]]  # thousandths by layer, head, query and key; a query's add up to 1000


@dataclass(frozen=True)
class Positions:
    """The encodings of a sentence's positions."""

    kind: str  # sinusoidal or learned
    source: list[str]  # the pieces that stand there: of the source, and of what the decoder reads
    target: list[str]  # one of both is empty where each side has encodings of its own
    largest: float  # that a value can be, or is
    values: list[list[int]]  # thousandths of `largest`, by position and channel


@dataclass(frozen=True)
class Picture:
    """All that is drawn of a sentence and its translation."""

    source: str
    translation: str
    score: float
    flags: list[str]  # of the translation
    maps: list[Maps]
    search: SearchTree
    positions: list[Positions]  # empty for models that don't encode them

    def json(self) -> str:
        """The fields by their names, in ASCII."""
        return json.dumps(self, default=vars, separators=(",", ":"))


def picture_of(model: Seq2Seq, found: Attention) -> Picture:
    """What `attention_of` the model found, with its encodings of positions."""
    return Picture(
        found.text,
        found.translation.text,
        found.translation.score,
        list(found.translation.flags),
        [_maps(name, use) for name, use in found.uses.items()],
        found.search,
        _positions(model, found.source.keys, [BEGIN, *found.source.queries[:-1]]),
    )


def _maps(name: str, use: AttentionUse) -> Maps:
    return Maps(name, use.queries, use.keys, thousandths(use.weights.double().numpy()).tolist())


def thousandths(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """(…, s) that add up to 1 -> whole numbers that add up to 1000, none of them off by a whole one.

    The largest remainders are rounded up, so that what is 0 stays 0.
    """
    exact = weights * ONE
    whole = np.floor(exact).astype(np.int64)
    missing = ONE - whole.sum(axis=-1, keepdims=True)
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    return whole + (rank < missing)


@torch.inference_mode()
def _positions(model: Seq2Seq, read: list[str], fed: list[str]) -> list[Positions]:
    """Sinusoids are the same on both sides, learned encodings are not."""
    source, target = getattr(model, "source_positions", None), getattr(model, "target_positions", None)
    if source is None or target is None:
        return []
    if isinstance(source, LearnedPositions):
        return [
            _encodings("learned", read, [], source(0, len(read))),
            _encodings("learned", [], fed, target(0, len(fed))),
        ]
    return [_encodings("sinusoidal", read, fed, source(0, max(len(read), len(fed))))]


def _encodings(kind: str, source: list[str], target: list[str], table: Tensor) -> Positions:
    """table (n, d_model)."""
    largest = table.abs().max().item()
    values = (table.double() * (ONE / largest)).round().long()
    return Positions(kind, source, target, largest, values.tolist())
