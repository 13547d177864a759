"""One update: forward and backward over its micro-batches, then one step of the optimizer."""

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from transduce.config.schema import TrainConfig
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch
from transduce.system.profiling import count, phase
from transduce.training.distributed import ALONE, Ranks
from transduce.training.loss import Sums, balance_loss, smoothed_cross_entropy
from transduce.training.parallel import full_tensor, gradient_sync


@dataclass(frozen=True)
class MicroBatch:
    """A part of an update's batch that this process computes at once."""

    batch: Batch
    index: int  # among the micro-batches of the update; it seeds dropout
    is_dummy: bool = False  # dummy pass, so that all ranks run equally many


class Outcome(NamedTuple):
    """What an update did: sums over its target tokens, as plain numbers."""

    loss: float
    nll: float
    correct: float
    num_tokens: int
    gradient_norm: float
    applied: bool  # False: loss or gradient was not finite, and the weights did not change


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    step: int,
    rate: float,
    train: TrainConfig,
) -> Outcome:
    """Learn from the micro-batches of one update as if they were one batch."""
    micro_batches = [MicroBatch(batch, index) for index, batch in enumerate(batches)]
    total = sum(batch.num_tokens for batch in batches)
    return distributed_update(model, optimizer, micro_batches, total, ALONE, step=step, rate=rate, train=train)


def distributed_update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[MicroBatch],
    total: int,
    ranks: Ranks,
    *,
    step: int,
    rate: float,
    train: TrainConfig,
) -> Outcome:
    """Learn from the micro-batches of one update, of which this rank computes some.

    The gradient is that of the summed loss divided by `total`, the target tokens of all micro-batches on all ranks.
    Dropout depends on (seed, step, index of the micro-batch) only, so an update is the same after a restart and on any
    number of ranks.
    """
    sums = torch.zeros(3)
    for micro_batch in micro_batches:
        batch = micro_batch.batch
        torch.manual_seed(dropout_seed(train.seed, step, micro_batch.index))
        with gradient_sync(model, last=micro_batch is micro_batches[-1]):
            batch_sums = forward(model, batch, train)
            with phase("backward"):
                weight = 0 if micro_batch.is_dummy else ranks.world  # DDP and FSDP take the mean over ranks
                (batch_sums.loss * weight / total).backward()
        if not micro_batch.is_dummy:
            sums += torch.stack(batch_sums).detach().cpu()
            count("pairs", len(batch.src))
            count("source tokens", batch.src.numel())
            count("target tokens", batch.num_tokens)
    loss, nll, correct = ranks.sum(sums).tolist()
    with phase("optimiser"):
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        norm = full_tensor(torch.nn.utils.get_total_norm(gradients))
        applied = bool(torch.isfinite(norm)) and loss - loss == 0
        if applied:
            if train.clip_norm:
                torch.nn.utils.clip_grads_with_norm_(model.parameters(), train.clip_norm, norm)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return Outcome(loss, nll, correct, total, norm.item(), applied)


@phase("forward")
def forward(model: nn.Module, batch: Batch, train: TrainConfig) -> Sums:
    """The sums of one batch, in the precision of the training."""
    with autocast(batch.src.device, train.precision), recording(attention=False) as record:
        logits = model(batch.src, batch.tgt_in)
    sums = smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)
    if record.routing:
        sums = sums._replace(loss=sums.loss + train.balance * batch.num_tokens * balance_loss(record.routing))
    return sums


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[None]:
    """Matrix products in bfloat16, weights and sums in float32; in float32 nothing changes."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def dropout_seed(seed: int, step: int, index: int) -> int:
    """A seed (63 bits) for the dropout of one micro-batch."""
    digest = hashlib.sha256(f"{seed}/{step}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
