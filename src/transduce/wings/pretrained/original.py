"""A model of another program in our format."""

from typing import NamedTuple

from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, RunConfig
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.pretrained.families import Family

MIN_BIAS = (
    -100.0
)  # finite stand-in for -inf, which label smoothing would turn into an infinite loss


class Original(NamedTuple):
    """Another program's model, in our format."""

    family: Family
    config: RunConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    target_rows: list[int]  # the original's id for each of our target ids


def output_bias(bias: Tensor, rows: list[int]) -> Tensor:
    """The output bias in the order of our ids, with finite values."""
    ours = bias[rows].clone()
    for first, second in ((PAD, BOS), (BOS, EOS)):
        # One piece became two of ours: allow only the second.
        if rows[first] == rows[second]:
            ours[first] = MIN_BIAS
    return ours.clamp(min=MIN_BIAS)
