"""Converts the weights of another program's model to our format."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, ModelConfig
from transduce.model.transformer import Transformer
from transduce.system.console import count
from transduce.system.errors import UserError
from transduce.wings.export import marian
from transduce.wings.pretrained.reading import ANOTHER_COPY

MIN_BIAS = (
    -100.0
)  # finite stand-in for -inf, which label smoothing would turn into an infinite loss
NO_ROW = -1  # in place of the original's id, for a token that the original lacks


class Table(NamedTuple):
    """The original's embedding that becomes one of ours."""

    names: Sequence[str]  # one matrix may be stored under several names
    rows: list[int]  # for each of our ids; NO_ROW: zeros


def converted(
    file: Path,
    config: ModelConfig,
    theirs: Mapping[str, Tensor],
    layers: Sequence[marian.Entry],
    tables: Mapping[str, Table],
    bias: str,
    others: Collection[str] = (),
) -> dict[str, Tensor]:
    """The weights in our format, from those that `file` holds: layers, tables by our names and the output bias.

    `others` are matrices that may be there, too. Raises UserError if weights are missing, unknown or of a wrong shape.
    """
    with torch.device("meta"):
        own = Transformer(config).state_dict()
    shapes = {layer.theirs: own[layer.ours].shape for layer in layers}
    matrices = {*others, *(name for table in tables.values() for name in table.names)}
    _check_names(file, theirs, shapes, {*matrices, bias})
    for name in sorted(matrices & theirs.keys()):
        shapes.setdefault(name, torch.Size((*theirs[name].shape[:1], config.d_model)))
    target = _tied(file, theirs, tables["embedding.weight"].names)
    shapes[bias] = torch.Size((1, *target.shape[:1]))
    for name, shape in shapes.items():
        if name in theirs and theirs[name].shape != shape:
            sizes = [" x ".join(map(str, size)) for size in (theirs[name].shape, shape)]
            raise UserError(
                f"{file}: {name} is {sizes[0]}, but {sizes[1]} by the model's options.",
                ANOTHER_COPY,
            )
    weights = {layer.ours: marian.to_ours(theirs[layer.theirs], layer.channels) for layer in layers}
    for name, (names, rows) in tables.items():
        matrix = _tied(file, theirs, names)
        if (last := max(rows)) >= len(matrix):
            raise UserError(
                f"The vocabulary of {file.parent} has the id {last}, but the embedding has "
                f"{count(len(matrix), 'row')}.",
                ANOTHER_COPY,
            )
        weights[name] = marian.to_ours(matrix, 1)[rows]
        weights[name][torch.tensor(rows) == NO_ROW] = 0
    biases = theirs[bias][0] if bias in theirs else torch.zeros(len(target))
    weights["output_bias"] = output_bias(biases, tables["embedding.weight"].rows)
    return {name: weight.contiguous() for name, weight in weights.items()}


def _check_names(
    file: Path, theirs: Collection[str], needed: Collection[str], others: Collection[str]
) -> None:
    """Raise UserError if a weight is missing or unknown."""
    for name in sorted({*needed} - {*theirs}):
        raise UserError(f"{file}: the weight {name} is missing.", ANOTHER_COPY)
    for name in sorted({*theirs} - {*needed, *others}):
        raise UserError(
            f"{file}: the weight {name} has no counterpart in transduce; the model can't be imported."
        )


def _tied(file: Path, theirs: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """The matrix stored under at least one of `names`; raises UserError if it is missing or its copies differ."""
    known = [name for name in names if name in theirs]
    if not known:
        raise UserError(f"{file}: the weight {names[0]} is missing.", ANOTHER_COPY)
    for name in known[1:]:
        if not torch.equal(theirs[known[0]], theirs[name]):
            raise UserError(f"{file}: {known[0]} and {name} differ; they must be equal.")
    return theirs[known[0]]


def output_bias(bias: Tensor, rows: list[int]) -> Tensor:
    """The output bias in the order of our ids, with finite values."""
    ours = bias[rows].clone()
    ours[torch.tensor(rows) == NO_ROW] = MIN_BIAS
    for first, second in ((PAD, BOS), (BOS, EOS)):
        # One piece became two of ours: allow only the second.
        if rows[first] == rows[second]:
            ours[first] = MIN_BIAS
    return ours.clamp(min=MIN_BIAS)
