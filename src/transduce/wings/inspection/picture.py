"""The JSON data from which `drawing.js` draws a sentence, its translation, the attention and the beam search."""

import json
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.model.embedding import LearnedPositions, SinusoidalPositions
from transduce.model.seq2seq import Seq2Seq
from transduce.wings.inspection.maps import SHOWN_BOS, Attention
from transduce.wings.inspection.tree import SearchTree

ONE = 1000  # integer thousandths are half as long as decimal fractions, and a page often has 60,000 numbers


@dataclass(frozen=True)
class Maps:
    """The maps of encoder self-attention, decoder self-attention or cross-attention (section 3.2.3 of the paper)."""

    use: str  # encoder, decoder, or source (the decoder's attention over the source)
    queries: list[str]
    keys: list[str]
    # Thousandths by layer, head, query and key; the weights of a query sum to 1000.
    weights: list[list[list[list[int]]]]


@dataclass(frozen=True)
class Positions:
    """The positional encodings of a source, of its translation, or of both."""

    kind: str  # sinusoidal or learned
    # Pieces of the source by position; empty if these are encodings of the target only.
    source: list[str]
    # Pieces that the decoder reads; empty if these are encodings of the source only.
    target: list[str]
    largest: float  # largest absolute value of the encodings
    values: list[list[int]]  # thousandths of `largest`, by position and channel


@dataclass(frozen=True)
class Picture:
    """The data that `drawing.js` draws for a sentence and its translation."""

    source: str
    translation: str
    score: float
    flags: list[str]  # flags of the translation
    maps: list[Maps]
    search: SearchTree
    positions: list[Positions]  # empty for models without positional encodings

    def json(self) -> str:
        """All fields as a JSON object in ASCII."""
        return json.dumps(self, default=vars, separators=(",", ":"))


def picture_of(model: Seq2Seq, recorded: Attention) -> Picture:
    """Build a picture from the model's positional encodings and the result of `attention_of`."""
    source = recorded.uses["source"]
    return Picture(
        recorded.text,
        recorded.translation.text,
        recorded.translation.score,
        list(recorded.translation.flags),
        [
            Maps(name, use.queries, use.keys, thousandths(use.weights.double().numpy()).tolist())
            for name, use in recorded.uses.items()
        ],
        recorded.search,
        _positions(model, source.keys, [SHOWN_BOS, *source.queries[:-1]]),
    )


def thousandths(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round attention weights to integer thousandths that sum to 1000 along the last axis."""
    exact = weights * ONE
    whole = np.floor(exact).astype(np.int64)
    missing = ONE - whole.sum(axis=-1, keepdims=True)
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    return whole + (rank < missing)  # rounds up the largest remainders


@torch.inference_mode()
def _positions(
    model: Seq2Seq, source_pieces: list[str], target_pieces: list[str]
) -> list[Positions]:
    """The positional encodings of source and target, as one table of sinusoids or two learned tables."""
    source = getattr(model, "source_positions", None)
    target = getattr(model, "target_positions", None)
    if not isinstance(source, (LearnedPositions, SinusoidalPositions)) or target is None:
        return []
    if isinstance(source, LearnedPositions):
        return [
            _encodings("learned", source_pieces, [], source(0, len(source_pieces))),
            _encodings("learned", [], target_pieces, target(0, len(target_pieces))),
        ]
    length = max(len(source_pieces), len(target_pieces))
    return [_encodings("sinusoidal", source_pieces, target_pieces, source(0, length))]


def _encodings(kind: str, source: list[str], target: list[str], table: Tensor) -> Positions:
    """Convert positional encodings (positions, d_model) to thousandths of their largest absolute value."""
    largest = table.abs().max().item()
    values = (table.double() * (ONE / largest)).round().long()
    return Positions(kind, source, target, largest, values.tolist())
