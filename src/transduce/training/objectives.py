"""The objectives of training: what an update lowers (sections 5.3 and 5.4 of the paper).

The paper lowers label-smoothed cross-entropy. Minimum-risk training (Shen et al., 2016) lowers the expected risk of
sampled translations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from transduce.config.schema import EOS, PAD, UNK, TrainConfig
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Seq2Seq
from transduce.system.profiling import phase
from transduce.training.losses import Sums, smoothed_cross_entropy
from transduce.training.minimum_risk import expected_risk

BALANCE = 0.01  # weight of the loss that balances the load of experts


@dataclass(frozen=True)
class Objective:
    """What an update lowers: called with a model and a batch, it returns the `Sums` of the batch in float32.

    Runs the model in train.precision, and adds a loss that balances the load of its experts.
    """

    loss: Callable[[nn.Module, Batch, TrainConfig], Sums]
    train: TrainConfig

    @phase("forward")
    def __call__(self, model: nn.Module, batch: Batch) -> Sums:
        is_low = self.train.precision == "bfloat16"
        low_precision = torch.autocast(batch.src.device.type, torch.bfloat16, enabled=is_low)
        with low_precision, recording(attention=False) as record:
            sums = self.loss(model, batch, self.train)
        if not record.routing:
            return sums
        balance = torch.stack([routing.balance_loss for routing in record.routing]).mean()
        return sums._replace(loss=sums.loss + BALANCE * batch.num_tokens * balance)


def objective(train: TrainConfig, *, is_risk: bool = False) -> Objective:
    """Cross-entropy or, if `is_risk` is true, the objective of minimum-risk training."""
    return Objective(minimum_risk if is_risk else cross_entropy, train)


def cross_entropy(model: nn.Module, batch: Batch, train: TrainConfig) -> Sums:
    """Label-smoothed cross-entropy (section 5.4 of the paper)."""
    logits = model(batch.src, omit(batch.tgt_in, train.word_dropout))
    return smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)


def minimum_risk(model: nn.Module, batch: Batch, train: TrainConfig) -> Sums:
    """The expected risk of samples and, with train.likelihood_weight, cross-entropy."""
    risk, logits = expected_risk(cast(Seq2Seq, model), batch, train.samples, train.sharpness)
    sums = smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)
    lengths = (batch.tgt_out != PAD).sum(dim=1)  # as in cross-entropy, long sentences count more
    loss = (risk * lengths).sum()
    if train.likelihood_weight:  # else its backward pass would be for nothing
        loss = loss + train.likelihood_weight * sums.loss
    return sums._replace(loss=loss)


def omit(tokens: Tensor, share: float) -> Tensor:
    """Replace a random share of the tokens by UNK, which otherwise never occurs; PAD, BOS and EOS stay."""
    if not share:
        return tokens
    omitted = torch.rand(tokens.shape, device=tokens.device) < share
    return tokens.masked_fill(omitted & (tokens > EOS), UNK)
