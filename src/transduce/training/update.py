"""Updates the weights: the optimizer, one update and the moving average of the weights (section 5.3 of the paper)."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transduce.config.schema import UNK, TrainConfig
from transduce.model.seq2seq import Batch, make_batch
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


class Figures(NamedTuple):
    """The figures of an update, which a GPU may not have computed yet."""

    values: Tensor  # (4), on the CPU: loss, nll, correct, norm of the gradient
    num_tokens: int
    copied: torch.cuda.Event | None  # after this event, `values` can be read; None: now

    def read(self) -> Outcome:
        """The outcome of the update. Waits until the GPU has computed it."""
        if self.copied:
            self.copied.synchronize()
        loss, nll, correct, norm = self.values.tolist()
        applied = bool(self.values.isfinite().all())
        return Outcome(loss, nll, correct, self.num_tokens, norm, applied)


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    step: int,
    rate: float,
    train: TrainConfig,
) -> Outcome:
    """Make one update and wait for its outcome, as `begin_update` describes."""
    return begin_update(model, optimizer, batches, step=step, rate=rate, train=train).read()


def begin_update(
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
    wait: bool = True,
) -> Figures:
    """Make one update from several micro-batches as if they were one batch.

    If `wait` is false, the CPU does not wait for a GPU: the fused optimizer itself skips a step that is not finite, and
    the moving average of the weights then moves towards unchanged weights.
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
    if ranks.world > 1:
        sums = ranks.sum(sums.cpu())
    with phase("optimiser"):
        norm = gradient_norm(model)
        figures = torch.cat([sums, norm[None].to(sums)])
        is_finite = figures.isfinite().all()
        optimizer.found_inf = None if wait else (~is_finite).float()  # type: ignore[attr-defined]
        if not wait or is_finite:
            if train.clip_norm:
                torch.nn.utils.clip_grads_with_norm_(model.parameters(), train.clip_norm, norm)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            if train.ema:
                start = (1 + stage.number) / (10 + stage.number)  # forgets the first weights
                update_average(optimizer, min(train.ema, start))
        optimizer.zero_grad(set_to_none=True)
    copied = torch.cuda.Event() if figures.is_cuda else None
    values = figures.to("cpu", non_blocking=True)
    if copied:
        copied.record()
    return Figures(values, total, copied)


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


def rehearse(model: nn.Module, train: TrainConfig, device: torch.device, length: int) -> None:
    """Before the first update of a process, make a pass without effect, of a pair with `length` tokens each.

    DDP sums the gradients of its first pass in another order than in later passes. With three ranks or more, a sum in
    another order is rounded differently, and a resumed training would differ. And tables of positions grow to the
    this length: if they grew later, a compiler would compile the model again.
    """
    batch = make_batch([[UNK] * length], [[UNK] * length]).to(device)
    sums_of(model.train(), batch, train).loss.backward()
    model.zero_grad(set_to_none=True)
