"""Updates the weights: the optimizer, one update and the moving average of the weights (section 5.3 of the paper)."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transduce.config.schema import TrainConfig
from transduce.model.seq2seq import Batch
from transduce.system.profiling import count, phase
from transduce.training.distributed import ALONE, Ranks, Slot, full_tensor, gradient_sync
from transduce.training.objectives import sums_of
from transduce.training.schedule import stage_of

AVERAGE = "average"  # key of the moving average in the optimizer state


def make_optimizer(weights: Iterable[nn.Parameter], train: TrainConfig) -> torch.optim.Optimizer:
    """Make the optimizer Adam. Each call of `update` sets the learning rate."""
    return torch.optim.Adam(
        weights,
        betas=(train.beta1, train.beta2),
        eps=train.epsilon,
        weight_decay=train.weight_decay,
        decoupled_weight_decay=True,
        fused=True,
    )


class Outcome(NamedTuple):
    """The result of an update, with `loss`, `nll` and `correct` summed over all its target tokens."""

    loss: float
    nll: float
    correct: float
    num_tokens: int
    gradient_norm: float
    applied: bool  # False: the loss or gradient was not finite, so the weights did not change


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    step: int,
    rate: float,
    train: TrainConfig,
    ranks: Ranks = ALONE,
    slots: Sequence[Slot] = (),
    total: int = 0,
) -> Outcome:
    """Make one update from several micro-batches as if they were one batch.

    `batches` are the micro-batches of this rank, `slots` their indices in the update, and `total` the number of target
    tokens on all ranks. Dropout depends only on the seed, the step and the index of a micro-batch, so a restart changes
    no update. Another number of ranks rounds differently.
    """
    slots = slots or ranks.slots(len(batches))
    total = total or sum(batch.num_tokens for batch in batches)
    stage = stage_of(step, train)
    sums = torch.zeros(3, device=batches[0].src.device)
    for slot, batch in zip(slots, batches, strict=True):
        # torch.manual_seed also stores a traceback.
        generator = torch if batch.src.is_cuda else torch.default_generator
        generator.manual_seed(dropout_seed(train.seed, step, slot.index))
        with gradient_sync(model, last=slot is slots[-1]):
            batch_sums = sums_of(model, batch, train, is_risk=stage.is_risk)
            with phase("backward"):
                # DDP and FSDP take the mean over ranks.
                weight = 0 if slot.is_dummy else ranks.world
                (batch_sums.loss * weight / total).backward()
        if not slot.is_dummy:
            sums += torch.stack(batch_sums).detach()
            count("pairs", batch.num_pairs or len(batch.src))
            count("source tokens", batch.src.numel())
            count("target tokens", batch.num_tokens)
    loss, nll, correct = ranks.sum(sums.cpu()).tolist()
    with phase("optimiser"):
        norm = gradient_norm(model)
        size = norm.item()
        applied = math.isfinite(size) and math.isfinite(loss)
        if applied:
            if train.clip_norm:
                torch.nn.utils.clip_grads_with_norm_(model.parameters(), train.clip_norm, norm)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            if train.ema:
                start = (1 + stage.number) / (10 + stage.number)  # forgets the first weights
                update_average(optimizer, min(train.ema, start))
        optimizer.zero_grad(set_to_none=True)
    return Outcome(loss, nll, correct, total, size, applied)


def gradient_norm(model: nn.Module) -> Tensor:
    """The norm of all gradients together (collective call for a sharded model)."""
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return full_tensor(torch.nn.utils.get_total_norm(gradients))


@torch.no_grad()
def update_average(optimizer: torch.optim.Optimizer, decay: float) -> None:
    """Update the moving average of the weights, which is part of the optimizer state, so that checkpoints have it."""
    weights = [
        weight
        for group in optimizer.param_groups
        for weight in group["params"]
        if weight in optimizer.state
    ]
    for weight in weights:
        if AVERAGE not in optimizer.state[weight]:
            optimizer.state[weight][AVERAGE] = weight.detach().clone()
    averages = [optimizer.state[weight][AVERAGE] for weight in weights]
    torch._foreach_lerp_(averages, weights, 1 - decay)


def forget_average(optimizer: torch.optim.Optimizer) -> None:
    """Delete the moving average: without train.ema, it would no longer follow the weights."""
    for state in optimizer.state.values():
        state.pop(AVERAGE, None)


@contextmanager
def averaged(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Exchange the weights and their moving average, if there is one, and exchange them again at the end."""

    @torch.no_grad()
    def exchange() -> None:
        for weight, state in optimizer.state.items():
            if AVERAGE in state:
                average = state[AVERAGE].clone()
                state[AVERAGE].copy_(weight)
                weight.copy_(average)

    exchange()
    try:
        yield
    finally:
        exchange()


def dropout_seed(seed: int, step: int, index: int) -> int:
    """The random seed (63 bits) for dropout in a micro-batch."""
    digest = hashlib.sha256(f"{seed}/{step}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def settle_buckets(model: nn.Module, batch: Batch, train: TrainConfig) -> None:
    """Make a pass without effect, since DDP sums the gradients of its first pass in another order than in later passes.

    With three ranks or more, a sum in another order is rounded differently, and a resumed training would differ.
    """
    sums_of(model.train(), batch, train).loss.backward()
    model.zero_grad(set_to_none=True)
