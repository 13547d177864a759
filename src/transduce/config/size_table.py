"""A table of option values by corpus size, for options that the user does not set.

Small corpora need small vocabularies, strong dropout, small batches, and many epochs. The smallest corpora also need
the options SMALL. The last row is the paper's base model. Rows 1, 2 and 4 and SMALL come from experiments on Tatoeba
(benchmarks/results/small-corpora.md), and row 3 from Multi30k (docs/reference/recipes.md). The other rows are
estimates. The patience is for training runs without a cool-down.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Sizes(NamedTuple):
    """A row of the table."""

    up_to: float  # pairs in the corpus
    vocab_size: int
    num_layers: int  # layers of the encoder, and of the decoder
    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    max_tokens: int  # maximum tokens per update on each side
    warmup: int  # updates
    peak: float  # learning rate at the end of the warm-up; train.learning_rate is computed from it
    epochs: int
    patience: int  # validations without improvement before training stops; each epoch has one


TABLE = (
    Sizes(10_000, 2_000, 3, 256, 1024, 4, 0.3, 512, 400, 1.5e-3, 50, 10),
    Sizes(20_000, 2_000, 3, 256, 1024, 4, 0.2, 1_024, 600, 1.5e-3, 30, 8),
    Sizes(60_000, 6_000, 3, 256, 1024, 4, 0.3, 1_024, 800, 1.5e-3, 30, 8),
    Sizes(160_000, 12_000, 4, 256, 1024, 4, 0.2, 2_048, 2_000, 1.4e-3, 30, 6),
    Sizes(400_000, 12_000, 4, 256, 1024, 4, 0.2, 2_048, 2_000, 1.4e-3, 20, 6),
    Sizes(2_000_000, 24_000, 6, 512, 2048, 8, 0.2, 8_192, 4_000, 7e-4, 15, 5),
    Sizes(float("inf"), 37_000, 6, 512, 2048, 8, 0.1, 25_000, 4_000, 7e-4, 20, 5),
)

FINE_TUNING_DIVISOR = 3  # fine-tuning divides the peak rate by this number
ON_TEXTS: Mapping[str, Any] = {  # options for training on texts, from scratch and with --init
    "train.ema": 0.998,
    "train.select_by": "chrf",  # perplexity stops improving long before BLEU and chrF do
    "train.patience": 0,  # otherwise training could end before its cool-down, which improves the model much
}
# A fine-tuning has so many epochs, or so many times the square root of an epoch's updates if that is less: an estimate,
# measured with 500 pairs of two domains only (benchmarks/results/fine-tuning.md).
FINE_TUNING_EPOCHS = 30
FINE_TUNING_UPDATES = 150
MAX_FORGOTTEN = 0.035  # train.max_forgotten of a fine-tuning
RISK_VALIDATIONS = 3  # validations during minimum-risk training of an existing model
SMALL_CORPUS_PAIRS = 20_000
# Likewise, for small corpora from scratch. A model that is fine-tuned would change more than it has to.
SMALL: Mapping[str, Any] = {
    "train.label_smoothing": 0.3,
    "train.word_dropout": 0.1,
}
MIN_TRAINING_PAIRS = 20  # minimum for training from scratch
# With fewer pairs, a model repeats its corpus: even with 5,000 pairs, BLEU is only 16 (Tatoeba).
FEW_PAIRS = 1_000
USEFUL_PAIRS = 10_000
PLANNED_SHARE = 0.85  # share of train.minutes for updates; validations take the rest
# Validations and checkpoints are at most a fifth of the training apart, or this many updates if that is more.
MIN_INTERVAL = 200
# Minimum number of pairs trained on for each validated pair, so that validations take little time.
VALIDATION_RATIO = 20


def sizes_for(pairs: int) -> Sizes:
    """The row of the table for a corpus of this many pairs."""
    return next(row for row in TABLE if pairs <= row.up_to)


def model_options(pairs: int, activation: str = "relu") -> Mapping[str, Any]:
    """The shape of the model and the batch size for a corpus of this many pairs.

    SwiGLU has three matrices instead of two, so d_ff is reduced to keep the number of parameters.
    """
    row = sizes_for(pairs)
    return {
        "model.num_encoder_layers": row.num_layers,
        "model.num_decoder_layers": row.num_layers,
        "model.d_model": row.d_model,
        "model.d_ff": round(row.d_ff * (2 / 3 if activation == "swiglu" else 1)),
        "model.num_heads": row.num_heads,
        "model.dropout": row.dropout,
        "data.max_tokens": row.max_tokens,
    }


def training_options(
    pairs: int,
    updates_per_epoch: int,
    d_model: int,
    *,
    steps: int = 0,
    warmup: int = 0,
    rate_divisor: float = 1,
    max_updates: float = math.inf,
    cooldown: bool = False,
) -> dict[str, Any]:
    """Options for the length and the learning rate of a training run.

    `steps` and `warmup` are train.steps and train.warmup if the user set them, else 0. The peak rate of the table is
    divided by `rate_divisor`, which is 1 unless a model is fine-tuned. `max_updates` is the number of updates that
    train.minutes allows. If `cooldown` is true, the learning rate falls to zero over the last third of the training,
    which is planned to end within this time.
    """
    row = sizes_for(pairs)
    peak = row.peak / rate_divisor
    if not steps:
        steps = row.epochs * updates_per_epoch
        if rate_divisor > 1:  # a fine-tuning
            most = FINE_TUNING_UPDATES * math.sqrt(updates_per_epoch)
            steps = round(min(FINE_TUNING_EPOCHS * updates_per_epoch, most))
        planned = steps
        steps = max(1, int(min(steps, PLANNED_SHARE * max_updates))) if cooldown else steps
        if rate_divisor > 1:  # few updates could not make good what a high rate destroys at first
            peak *= math.sqrt(steps / planned)
    warmup = warmup or max(1, min(row.warmup, int(min(steps, max_updates)) // 4))
    return {
        "train.steps": steps,
        "train.warmup": warmup,
        "train.cooldown": steps // 3 if cooldown else 0,
        "train.learning_rate": float(f"{peak * math.sqrt(d_model * warmup):.3g}"),
        "train.patience": row.patience,
    }


def text_options(pairs: int, *, from_scratch: bool = True) -> Mapping[str, Any]:
    """More options for training on texts."""
    return {**ON_TEXTS, **SMALL} if from_scratch and pairs <= SMALL_CORPUS_PAIRS else ON_TEXTS


def validation_interval(pairs: int, held_out: int, updates_per_epoch: int, steps: int) -> int:
    """The updates between validations of training on texts: one epoch or, if few pairs are trained on,
    several epochs, but at most a tenth of the training.
    """
    epochs = -(-VALIDATION_RATIO * held_out // pairs)
    return max(updates_per_epoch, min(epochs * updates_per_epoch, steps // 10))
