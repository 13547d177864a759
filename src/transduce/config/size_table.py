"""A table of option values by corpus size, for options that the user does not set.

Small corpora need small vocabularies, strong dropout, small batches, many epochs, and the smallest also SMALL. The last
row is the paper's base model. Rows 1 and 2 and SMALL come from experiments on Tatoeba (benchmarks/results/
small-corpora.md), and row 3 from Multi30k (docs/reference/recipes.md). The other rows are estimates.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Sizes(NamedTuple):
    """A row of the table."""

    up_to: float  # pairs in the corpus
    vocab_size: int
    num_layers: int  # of encoder and of decoder
    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    max_tokens: int  # per update, on each side
    warmup: int  # updates
    peak: float  # learning rate at the end of the warm-up; train.learning_rate is computed from it
    epochs: int
    patience: int  # validations; there is one per epoch


TABLE = (
    Sizes(10_000, 2_000, 3, 256, 1024, 4, 0.3, 512, 400, 1.5e-3, 50, 10),
    Sizes(20_000, 2_000, 3, 256, 1024, 4, 0.3, 512, 600, 1.5e-3, 30, 8),
    Sizes(60_000, 6_000, 3, 256, 1024, 4, 0.3, 2_048, 800, 1.5e-3, 30, 8),
    Sizes(400_000, 12_000, 4, 256, 1024, 4, 0.2, 4_096, 2_000, 1.4e-3, 20, 6),
    Sizes(2_000_000, 24_000, 6, 512, 2048, 8, 0.2, 8_192, 4_000, 7e-4, 15, 5),
    Sizes(float("inf"), 37_000, 6, 512, 2048, 8, 0.1, 25_000, 4_000, 7e-4, 20, 5),
)

FINE_TUNING_DIVISOR, MINIMUM_RISK_DIVISOR = 3, 15  # of the peak rate
SMALL_CORPUS_PAIRS = 20_000
SMALL: Mapping[str, Any] = {  # for trainings from scratch on texts
    "train.label_smoothing": 0.3,
    "train.word_dropout": 0.1,
    "train.ema": 0.998,
    "train.select_by": "chrf",  # perplexity stops improving long before BLEU and chrF do
    "train.patience": 0,  # else a training may end before its cool-down, which gains much
}


def sizes_for(pairs: int) -> Sizes:
    """The row of the table for a corpus of this many pairs."""
    return next(row for row in TABLE if pairs <= row.up_to)


def model_options(pairs: int) -> Mapping[str, Any]:
    """The shape of the model and the batch size for a corpus of this many pairs."""
    row = sizes_for(pairs)
    return {
        "model.num_encoder_layers": row.num_layers,
        "model.num_decoder_layers": row.num_layers,
        "model.d_model": row.d_model,
        "model.d_ff": row.d_ff,
        "model.num_heads": row.num_heads,
        "model.dropout": row.dropout,
        "data.max_tokens": row.max_tokens,
    }


def training_options(
    pairs: int,
    updates_per_epoch: int,
    d_model: int,
    warmup: int = 0,
    *,
    rate_divisor: float = 1,
    max_updates: float = math.inf,
) -> Mapping[str, Any]:
    """Options for the length and the learning rate of a training.

    `warmup` is train.warmup if the user set it, else 0. The peak rate of the table is divided by `rate_divisor`.
    `max_updates` is the number of updates that train.steps and train.minutes allow.
    """
    row = sizes_for(pairs)
    peak = row.peak / rate_divisor
    steps = row.epochs * updates_per_epoch
    warmup = warmup or max(1, min(row.warmup, int(min(steps, max_updates)) // 4))
    return {
        "train.steps": steps,
        "train.warmup": warmup,
        "train.learning_rate": float(f"{peak * math.sqrt(d_model * warmup):.3g}"),
        "train.patience": row.patience,
    }


def small_corpus_options(pairs: int, steps: int, max_updates: float) -> Mapping[str, Any]:
    """More options for a training of `steps` updates from scratch on texts, if the corpus is small.

    A time limit may allow only `max_updates` updates. If they are fewer than `steps`, there is no cool-down.
    """
    if pairs > SMALL_CORPUS_PAIRS:
        return {}
    return {**SMALL, "train.cooldown": steps // 3 if max_updates >= steps else 0}
