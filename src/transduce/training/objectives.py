"""The objectives of training: what an update lowers (sections 5.3 and 5.4 of the paper).

The paper lowers label-smoothed cross-entropy. Minimum-risk training (Shen et al., 2016) lowers the expected risk of
sampled translations.
"""

import functools
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from transduce.config.schema import EOS, PAD, UNK, TrainConfig
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Seq2Seq
from transduce.system.console import log
from transduce.system.profiling import phase
from transduce.training.losses import Sums, smoothed_cross_entropy
from transduce.training.minimum_risk import expected_risk

Objective = Callable[[nn.Module, Batch, TrainConfig], Sums]

BALANCE = 0.01  # weight of the loss that balances the load of experts


@phase("forward")
def sums_of(model: nn.Module, batch: Batch, train: TrainConfig, *, is_risk: bool = False) -> Sums:
    """The `Sums` of a batch in float32: of cross-entropy or, if `is_risk` is true, of minimum-risk training.

    Runs the model in train.precision, and adds a loss that balances the load of its experts.
    """
    loss: Objective = minimum_risk if is_risk else cross_entropy
    # A wrapped model is for several GPUs, which are not compiled.
    if batch.packing and isinstance(model, Seq2Seq):
        loss = packed_cross_entropy(batch.src.device)
    is_low = train.precision == "bfloat16"
    low_precision = torch.autocast(batch.src.device.type, torch.bfloat16, enabled=is_low)
    with low_precision, recording(attention=False) as record:
        sums = loss(model, batch, train)
    if not record.routing:
        return sums
    balance = torch.stack([routing.balance_loss for routing in record.routing]).mean()
    return sums._replace(loss=sums.loss + BALANCE * batch.num_tokens * balance)


def cross_entropy(model: nn.Module, batch: Batch, train: TrainConfig) -> Sums:
    """Label-smoothed cross-entropy (section 5.4 of the paper)."""
    tokens = omit(batch.tgt_in, train.word_dropout)
    packing = (batch.packing,) if batch.packing else ()  # few families take one
    logits = model(batch.src, tokens, *packing)
    return smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)


@functools.cache
def packed_cross_entropy(device: torch.device) -> Objective:
    """`cross_entropy` for packed rows: on a GPU, compiled once, since they have one shape.

    Where torch.compile does not work, a message says so, and nothing is compiled.
    """
    if device.type != "cuda":
        return cross_entropy
    try:
        torch.compile(torch.sin)(torch.zeros(1, device=device))
    except Exception as error:  # whatever the machine's compiler lacks
        reason, *_ = str(error).splitlines() or [type(error).__name__]
        log(f"torch.compile does not work here, so training is slower: {reason}")
        return cross_entropy
    return torch.compile(cross_entropy, dynamic=False)


def minimum_risk(model: nn.Module, batch: Batch, train: TrainConfig) -> Sums:
    """The expected risk of samples and, with train.likelihood_weight, cross-entropy."""
    risk, logits = expected_risk(cast(Seq2Seq, model), batch, train.samples, train.sharpness)
    sums = smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)
    lengths = (batch.tgt_out != PAD).sum(dim=1)  # long sentences count more, as in cross-entropy
    loss = (risk * lengths).sum()
    if train.likelihood_weight:  # otherwise, its backward pass would be wasted
        loss = loss + train.likelihood_weight * sums.loss
    return sums._replace(loss=loss)


def omit(tokens: Tensor, share: float) -> Tensor:
    """Replace a random share of the tokens by UNK, which otherwise never occurs; PAD, BOS and EOS stay."""
    if not share:
        return tokens
    omitted = torch.rand(tokens.shape, device=tokens.device) < share
    return tokens.masked_fill(omitted & (tokens > EOS), UNK)
