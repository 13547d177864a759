"""One update: forward and backward over its micro-batches, then one step of the optimiser."""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from transduce.config.schema import TrainConfig
from transduce.model.batch import Batch
from transduce.model.recording import recording
from transduce.system.profiling import count, phase
from transduce.training.distributed import ALONE, Ranks, passing, whole
from transduce.training.loss import Sums, balance_loss, smoothed_cross_entropy


class Pass(NamedTuple):
    """A micro-batch that this process computes."""

    batch: Batch
    place: int  # among the micro-batches of the update, by which its dropout is drawn
    counts: bool = True  # False: it is another rank's, and only computed along


class Outcome(NamedTuple):
    """What an update did: sums over its target tokens, as plain numbers."""

    loss: float
    nll: float
    correct: float
    num_tokens: int
    gradient_norm: float
    applied: bool  # False: loss or gradient was not finite, and the weights are as before


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
    passes = [Pass(batch, place) for place, batch in enumerate(batches)]
    total = sum(batch.num_tokens for batch in batches)
    return update_together(model, optimizer, passes, total, ALONE, step=step, rate=rate, train=train)


def update_together(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    passes: Sequence[Pass],
    total: int,
    ranks: Ranks,
    *,
    step: int,
    rate: float,
    train: TrainConfig,
) -> Outcome:
    """Learn from the micro-batches of one update, of which this rank computes some.

    The gradient is that of the summed loss divided by `total`, the target tokens of all of them on all ranks. Dropout
    depends on (seed, step, place of the micro-batch) only, so an update is the same after a restart and on any number
    of ranks.
    """
    sums = torch.zeros(3)
    for each in passes:
        torch.manual_seed(dropout_seed(train.seed, step, each.place))
        with passing(model, last=each is passes[-1]):
            batch_sums = forward(model, each.batch, train)
            with phase("backward"):
                share = ranks.world if each.counts else 0  # the engines take the mean over ranks
                (batch_sums.loss * share / total).backward()
                if each.counts:
                    sums += torch.stack(batch_sums).detach().cpu()
        if each.counts:
            count("pairs", len(each.batch.src))
            count("source tokens", each.batch.src.numel())
            count("target tokens", each.batch.num_tokens)
    loss, nll, correct = ranks.sum(sums).tolist()
    with phase("optimiser"):
        norm = whole(torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]))
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
    """The sums of one batch, in the precision of the training; under autograd unless switched off outside."""
    with autocast(batch.src.device, train.precision), recording(attention=False) as record:
        logits = model(batch.src, batch.tgt_in)
    sums = smoothed_cross_entropy(logits, batch.tgt_out, train.label_smoothing)
    if record.routing:
        sums = sums._replace(loss=sums.loss + train.balance * batch.num_tokens * balance_loss(record.routing))
    return sums


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[None]:
    """Matrix products in bfloat16, weights and sums in float32; or nothing."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def dropout_seed(seed: int, step: int, place: int) -> int:
    """A seed (63 bits) for the dropout of one micro-batch."""
    digest = hashlib.sha256(f"{seed}/{step}/{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
