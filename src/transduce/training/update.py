"""Computes the loss of a batch and updates the weights (sections 5.3 and 5.4 of the paper)."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, TrainConfig
from transduce.model.recording import recording
from transduce.model.seq2seq import Batch, Seq2Seq
from transduce.system.errors import UserError
from transduce.system.profiling import count, phase
from transduce.training.consistency import divergence, omit
from transduce.training.distributed import ALONE, Ranks, Slot, full_tensor, gradient_sync
from transduce.training.minimum_risk import expected_risk

AVERAGE = "average"  # key of the moving average in the optimizer state
RISK_DIVISOR = 15  # of the peak rate, in minimum-risk training
SAMPLE_COST = 0.8  # time for a sample of a sentence, in usual passes over it
CACHED_LOGITS = 1 << 17  # logits per pass on a CPU: in float32, they fit into its cache


def make_optimizer(weights: Iterable[nn.Parameter], train: TrainConfig) -> torch.optim.Optimizer:
    """Make the optimizer that train.optimizer names. Each call of `update` sets the learning rate."""
    decay: dict[str, Any] = {"weight_decay": train.weight_decay, "decoupled_weight_decay": True}
    match train.optimizer:
        case "adam":
            return torch.optim.Adam(weights, betas=(train.beta1, train.beta2), eps=train.epsilon, **decay, fused=True)
        case "adagrad":
            return torch.optim.Adagrad(weights)
        case "rmsprop":
            return torch.optim.RMSprop(weights, alpha=train.beta2, eps=1e-6)
        case "sgd":
            return torch.optim.SGD(weights, lr=0.0, momentum=train.beta1)


def risk_step(step: int, train: TrainConfig) -> int:
    """The number of update `step` in minimum-risk training, counted from 1; at most 0 before it."""
    return step - train.steps + risk_steps(train) if risk_steps(train) else 0


def risk_steps(train: TrainConfig) -> int:
    """The number of updates of minimum-risk training; 0 if a recipe's training is cut to less than these."""
    return train.risk_steps if train.risk_steps <= train.steps else 0


def check_risk(train: TrainConfig, init: Path | None, has_valid: bool) -> None:
    """Raise UserError if minimum-risk training has no model to start from, or no validation set."""
    if not init and train.risk_steps == train.steps:
        cause = "Minimum-risk training needs a trained model to start from."
        raise UserError(f"{cause} Raise train.steps, or name this model.", option="init")
    if risk_steps(train) and not has_valid:
        cause = "Minimum-risk training needs a validation set, to choose the best weights."
        raise UserError(f"{cause} Name one, or set data.holdout to at most a tenth of the pairs.", option="data.valid")


def effort(done: int, train: TrainConfig) -> float:
    """The time for all updates after `done`, in usual updates. An update of minimum-risk training takes longer."""
    left = max(0, train.steps - done)
    return left + SAMPLE_COST * train.samples * min(left, risk_steps(train))


def learning_rate(step: int, train: TrainConfig, d_model: int) -> float:
    """The learning rate of update `step` (counted from 1), by equation 3 of the paper times train.learning_rate.

    Over the last train.cooldown updates, the rate also falls linearly towards zero. Minimum-risk training then begins
    such a schedule anew, with a lower peak, a sixth of its updates as warm-up and half of them as cool-down.
    """
    factor, warmup, cooldown, steps = train.learning_rate * d_model**-0.5, train.warmup, train.cooldown, train.steps
    if (number := risk_step(step, train)) > 0:
        step, steps = number, train.risk_steps
        warmup, cooldown = max(1, steps // 6), steps // 2
        factor *= (warmup / train.warmup) ** 0.5 / RISK_DIVISOR
    else:
        steps -= risk_steps(train)
    rate = factor * min(step**-0.5, step * warmup**-1.5)
    if cooldown:
        rate *= min(1.0, (steps + 1 - step) / cooldown)
    return rate


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
    number = risk_step(step, train)
    slots, total = slots or ranks.slots(len(batches)), total or sum(batch.num_tokens for batch in batches)
    sums = torch.zeros(3, device=batches[0].src.device)
    for slot, batch in zip(slots, batches, strict=True):
        generator = torch if batch.src.is_cuda else torch.default_generator  # torch.manual_seed also stores a traceback
        generator.manual_seed(dropout_seed(train.seed, step, slot.index))
        with gradient_sync(model, last=slot is slots[-1]):
            batch_sums = forward(model, batch, train, is_risk=number > 0)
            with phase("backward"):
                weight = 0 if slot.is_dummy else ranks.world  # DDP and FSDP take the mean over ranks
                (batch_sums.loss * weight / total).backward()
        if not slot.is_dummy:
            sums += torch.stack(batch_sums).detach()
            count("pairs", len(batch.src))
            count("source tokens", batch.src.numel())
            count("target tokens", batch.num_tokens)
    loss, nll, correct = ranks.sum(sums.cpu()).tolist()
    with phase("optimiser"):
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        norm = full_tensor(torch.nn.utils.get_total_norm(gradients))
        size = norm.item()
        applied = math.isfinite(size) and math.isfinite(loss)
        if applied:
            if train.clip_norm:
                torch.nn.utils.clip_grads_with_norm_(model.parameters(), train.clip_norm, norm)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            if train.ema:
                number = number if number > 0 else step
                update_average(optimizer, min(train.ema, (1 + number) / (10 + number)))  # forgets the first weights
        optimizer.zero_grad(set_to_none=True)
    return Outcome(loss, nll, correct, total, size, applied)


@torch.no_grad()
def update_average(optimizer: torch.optim.Optimizer, decay: float) -> None:
    """Update the moving average of the weights, which is part of the optimizer state, so that checkpoints have it."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"] if weight in optimizer.state]
    for weight in weights:
        if AVERAGE not in optimizer.state[weight]:
            optimizer.state[weight][AVERAGE] = weight.detach().clone()
    averages = [optimizer.state[weight][AVERAGE] for weight in weights]
    if weights:  # SGD without momentum has no state
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
    """Make a pass without effect, since DDP sums the gradients of its first pass in another order than later.

    With three ranks or more, a sum in another order is rounded differently, and a resumed training would differ.
    """
    (0 * forward(model.train(), batch, train).loss).backward()
    model.zero_grad(set_to_none=True)


@phase("forward")
def forward(model: nn.Module, batch: Batch, train: TrainConfig, *, is_risk: bool = False) -> "Sums":
    """Run the model on a batch in train.precision, and return the `Sums` of the batch in float32.

    If `is_risk` is true, the loss is that of minimum-risk training.
    """
    low_precision = torch.autocast(batch.src.device.type, torch.bfloat16, enabled=train.precision == "bfloat16")
    with low_precision, recording(attention=False) as record:
        if is_risk:
            risk, logits = expected_risk(cast(Seq2Seq, model), batch, train.samples, train.sharpness)
        else:
            logits = model(*inputs(batch, train))
    first, *others = logits.split(len(batch.tgt_out))
    sums = smoothed_cross_entropy(first, batch.tgt_out, train.label_smoothing)
    for second in others:
        penalty = divergence(first, second, batch.tgt_out, rows_per_pass(logits))
        if train.consistency == "rdrop":
            penalty = (penalty + divergence(second, first, batch.tgt_out, rows_per_pass(logits))) / 2
            other = smoothed_cross_entropy(second, batch.tgt_out, train.label_smoothing)
            sums = sums._replace(loss=sums.loss + other.loss)
        sums = sums._replace(loss=sums.loss + train.consistency_weight * penalty)
    if is_risk:
        lengths = (batch.tgt_out != PAD).sum(dim=1)  # as in likelihood, long sentences count more
        likelihood = train.likelihood_weight * sums.loss if train.likelihood_weight else 0.0  # else no backward pass
        sums = sums._replace(loss=(risk * lengths).sum() + likelihood)
    if record.routing:
        balance = torch.stack([routing.balance_loss for routing in record.routing]).mean()
        sums = sums._replace(loss=sums.loss + train.balance * batch.num_tokens * balance)
    return sums


def inputs(batch: Batch, train: TrainConfig) -> tuple[Tensor, Tensor]:
    """The tokens that encoder and decoder read: once, or twice one below the other for a consistency loss."""
    passes = [(batch.src, omit(batch.tgt_in, train.word_dropout))]
    if train.consistency == "simcut":
        passes.append((omit(batch.src, train.cutoff), omit(batch.tgt_in, train.cutoff)))
    elif train.consistency == "rdrop":
        passes.append((batch.src, omit(batch.tgt_in, train.word_dropout)))
    src, tgt_in = zip(*passes, strict=True)
    return torch.cat(src), torch.cat(tgt_in)


def rows_per_pass(logits: Tensor) -> int:
    """The number of rows of logits that fit into a CPU's cache; all rows on a GPU."""
    return max(1, CACHED_LOGITS // logits.size(-1)) if logits.device.type == "cpu" else logits.flatten(0, -2).size(0)


class Sums(NamedTuple):
    """Sums over the target tokens of a batch, without padding."""

    loss: Tensor  # label-smoothed; the only sum with a gradient
    nll: Tensor  # negative log-likelihood, for perplexity
    correct: Tensor  # how often the most probable token is the right one


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Sums:
    """The `Sums` of logits (batch, tokens, v) and targets (batch, tokens), without padding.

    The target distribution gives smoothing / v to each of the v tokens, plus 1 - smoothing to the right token.
    """
    return Sums(*_SmoothedCrossEntropy.apply(logits.flatten(0, -2), targets.flatten(), smoothing))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Computes the loss and its gradient in one pass over the logits.

    PyTorch's own operations would need several more float32 tensors as large as the logits.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        on_cpu = logits.device.type == "cpu"
        chunk = rows_per_pass(logits)
        sums = torch.zeros(3, dtype=torch.float64 if on_cpu else torch.float32, device=logits.device)
        for start in range(0, len(logits), chunk):
            x, target = logits[start : start + chunk].float(), targets[start : start + chunk]
            real = (target != PAD).float()
            highest = x.amax(dim=-1)
            exponentials = (x - highest[:, None]).exp_()
            total = exponentials.sum(dim=-1)
            log_total = highest + total.log()
            chosen = x.gather(-1, target[:, None]).squeeze(-1)
            nll = log_total - chosen
            loss = (1 - smoothing) * nll + smoothing * (log_total - x.mean(dim=-1))
            sums += torch.stack(((loss * real).sum(), (nll * real).sum(), ((chosen == highest) * real).sum()))
            if gradient is not None:  # softmax minus the target distribution
                difference = exponentials.mul_((real / total)[:, None]).sub_((real * (smoothing / x.size(-1)))[:, None])
                difference.scatter_add_(-1, target[:, None], (real * (smoothing - 1))[:, None])
                gradient[start : start + chunk] = difference
        ctx.gradient = gradient
        loss, nll, correct = sums.float()
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    def backward(ctx: Any, loss: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient.mul_(loss), None, None
