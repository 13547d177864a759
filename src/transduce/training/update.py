"""One update: forward and backward over its micro-batches, then one step of the optimiser."""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch

from transduce.config import TrainConfig
from transduce.model.batch import Batch
from transduce.model.experts import balance_loss
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq
from transduce.profiling import count, phase
from transduce.training.loss import Sums, smoothed_cross_entropy


class Outcome(NamedTuple):
    """What an update did: sums over its target tokens, as plain numbers."""

    loss: float
    nll: float
    correct: float
    num_tokens: int
    gradient_norm: float
    applied: bool  # False: loss or gradient was not finite, and the weights are as before


def update(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    step: int,
    rate: float,
    train: TrainConfig,
) -> Outcome:
    """Learn from the micro-batches of one update as if they were one batch.

    The gradient is that of the summed loss divided by the target tokens of all of them. Dropout depends on
    (seed, step, place of the micro-batch) only, so an update is the same after a restart.
    """
    total = sum(batch.num_tokens for batch in batches)
    sums = torch.zeros(3)
    for place, batch in enumerate(batches):
        torch.manual_seed(dropout_seed(train.seed, step, place))
        batch_sums = forward(model, batch, train)
        with phase("backward"):
            (batch_sums.loss / total).backward()
            sums += torch.stack(batch_sums).detach().cpu()
        count("pairs", len(batch.src))
        count("source tokens", batch.src.numel())
    count("target tokens", total)
    loss, nll, correct = sums.tolist()
    with phase("optimiser"):
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
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
def forward(model: Seq2Seq, batch: Batch, train: TrainConfig) -> Sums:
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
