"""The training loop: updates, reports, validations and checkpoints, until a limit or a signal ends it."""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from transduce.config.schema import RunConfig, TrainConfig
from transduce.evaluation.perplexity import Validation
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch
from transduce.system.errors import UserError
from transduce.system.journal import Display, Journal, Progress, say
from transduce.system.profiling import phase
from transduce.tokens.batching import Indices
from transduce.tokens.mixture import Mixture
from transduce.training.checkpoint import TrainState, remove_old, save_checkpoint
from transduce.training.distributed import ALONE, Ranks
from transduce.training.parallel import full_model, unwrap
from transduce.training.schedule import learning_rate
from transduce.training.update import MicroBatch, Outcome, distributed_update

REPORT_EVERY = 10  # updates between lines of the journal
PACE_UPDATES = 50  # recent updates that the displayed speed and loss are computed from
MAX_SKIPPED_UPDATES = 10  # in a row; then training gives up

Reason = Literal["steps", "minutes", "patience", "interrupted"]
# If ranks have different reasons, the last in this list wins.
REASON_ORDER: list[Reason | None] = [None, "steps", "minutes", "patience", "interrupted"]


@dataclass
class Training:
    """Everything that the loop works with."""

    config: RunConfig  # accumulate, save_every and validate_every are set, not 0
    model: Seq2Seq
    optimizer: torch.optim.Optimizer
    data: Mixture
    origin: Callable[[int], str]  # file and line of a pair, for messages
    state: TrainState
    journal: Journal
    folder: Path  # for the checkpoints
    validate: Callable[[Seq2Seq], Validation | None]  # None: there is no held-out text
    device: torch.device
    wrapped_model: nn.Module  # the model itself, or DDP or FSDP around it
    ranks: Ranks = ALONE


def train(training: Training, stop: Callable[[], bool] = lambda: False) -> Reason:
    """Train until train.steps, train.minutes or train.patience ends it, or a signal interrupts it; save at the end.

    stop: asked before every update whether to interrupt the training, as a signal does. Raises UserError after
    MAX_SKIPPED_UPDATES updates in a row whose loss or gradient was not finite.
    """
    state, config = training.state, training.config.train
    with stop_signals(insist=training.ranks.world > 1) as stopped, Display() as display:
        pace, plan = Pace(state), updates(training)
        while (reason := finished(training, stopped() or stop())) is None:
            with phase("data"):
                batches = next(plan)
            outcome = learn(training, batches)
            state.seconds = pace.seconds()
            log_update(training, outcome, batches)
            display.show(pace.progress(training, outcome))
            if state.step % config.validate_every == 0:
                validate(training)
                state.seconds = pace.seconds()
            if state.step % config.save_every == 0 or state.best_step == state.step:
                save(training)
    save(training)
    return reason


def updates(training: Training) -> Iterator[list[Indices]]:
    """The micro-batches of each update from the current state on, block by block and epoch by epoch, without end."""
    state, config = training.state, training.config
    while True:
        plan = training.data.plan(
            state.epoch,
            state.block,
            budget=micro_budget(config),
            accumulate=config.train.accumulate,
            seed=config.train.seed,
        )
        yield from plan[state.position :]
        del plan  # frees it before the next one is built
        state.block, state.position = state.block + 1, 0
        if state.block == training.data.blocks:
            state.epoch, state.block = state.epoch + 1, 0


def micro_budget(config: RunConfig) -> int:
    """Tokens of a micro-batch on each side, padding counted."""
    return -(-config.data.max_tokens // config.train.accumulate)


def learn(training: Training, batches: Sequence[Indices]) -> Outcome:
    """One update with the given micro-batches."""
    state, config = training.state, training.config
    state.step += 1
    state.position += 1
    training.wrapped_model.train()
    slots = training.ranks.slots(len(batches))
    return distributed_update(
        training.wrapped_model,
        training.optimizer,
        [MicroBatch(assemble(training, batches[slot.index]), slot.index, slot.is_dummy) for slot in slots],
        num_tokens(training, batches),
        training.ranks,
        step=state.step,
        rate=learning_rate(state.step, config.train, config.model.d_model),
        train=config.train,
    )


def num_tokens(training: Training, batches: Sequence[Indices]) -> int:
    """Target tokens of an update on all ranks, EOS counted."""
    return sum(int(training.data.lengths(batch)[1].sum()) + len(batch) for batch in batches)


@phase("data")
def assemble(training: Training, batch: Indices) -> Batch:
    """Tensors of the given pairs, on the device."""
    return make_batch(training.data.sources(batch), training.data.targets(batch)).to(training.device)


def log_update(training: Training, outcome: Outcome, batches: Sequence[Indices]) -> None:
    """Add up what the update did; write a journal line every REPORT_EVERY updates."""
    state, journal = training.state, training.journal
    state.tokens_seen += outcome.num_tokens
    state.skipped = 0 if outcome.applied else state.skipped + 1
    if not outcome.applied:
        places = [training.origin(index) for batch in batches for index in batch.tolist()]
        journal.write("skipped", step=state.step, loss=outcome.loss, places="; ".join(places))
        say(f"Update {state.step:,} skipped: its loss or gradient is not finite. The journal lists its sentences.")
        if state.skipped == MAX_SKIPPED_UPDATES:
            raise UserError(
                f"The loss or gradient of {MAX_SKIPPED_UPDATES} updates in a row was not finite (the last at step "
                f"{state.step:,}). The last checkpoint is intact: lower train.learning_rate or set train.clip_norm=1."
            )
        return
    state.loss += outcome.loss
    state.nll += outcome.nll
    state.correct += outcome.correct
    state.num_tokens += outcome.num_tokens
    if state.step % REPORT_EVERY == 0:
        journal.write(
            "update",
            step=state.step,
            epoch=state.epoch,
            loss=state.loss / state.num_tokens,
            nll=state.nll / state.num_tokens,
            accuracy=state.correct / state.num_tokens,
            rate=learning_rate(state.step, training.config.train, training.config.model.d_model),
            gradient_norm=outcome.gradient_norm,
            tokens_seen=state.tokens_seen,
            seconds=state.seconds,
        )
        state.loss = state.nll = state.correct = 0.0
        state.num_tokens = 0


@phase("validation", whole=True)
def validate(training: Training) -> None:
    """Measure the model on the validation set and remember the best step."""
    state = training.state
    with full_model(training.wrapped_model, training.model, training.ranks, training.device) as model:
        result = training.validate(model.eval()) if training.ranks.first else None
    figures: list[Any] = training.ranks.agree(list(result) if result else [])
    if not figures:
        return
    result = Validation(*figures)
    if state.best is None or result.perplexity < state.best:
        state.best, state.best_step, state.stale = result.perplexity, state.step, 0
    else:
        state.stale += 1
    training.journal.write(
        "validation",
        step=state.step,
        epoch=state.epoch,
        perplexity=result.perplexity,
        **({} if result.bleu is None else {"bleu": result.bleu}),
        seconds=state.seconds,
    )
    best = " – the best so far" if state.best_step == state.step else ""
    say(f"step {state.step:>7,}  epoch {state.epoch + 1}  {result}{best}")


@phase("checkpoints")
def save(training: Training) -> None:
    """Write a checkpoint and delete those that are no longer needed."""
    state, config = training.state, training.config.train
    state.journal_size = training.journal.size
    save_checkpoint(training.folder, unwrap(training.wrapped_model), training.optimizer, state, training.ranks)
    if training.ranks.first:
        remove_old(training.folder, config.save_every, max(config.keep_last, config.average), state.best_step)


def finished(training: Training, stopped: bool) -> Reason | None:
    """Why training ends, or None; the answer is the same on all ranks."""
    return REASON_ORDER[training.ranks.highest(REASON_ORDER.index(reason_to_end(training, stopped)))]


def reason_to_end(training: Training, stopped: bool) -> Reason | None:
    """Why this rank would end the training, or None."""
    state, config = training.state, training.config.train
    if stopped:
        return "interrupted"
    if state.step >= config.steps:
        return "steps"
    if config.minutes and state.seconds >= 60 * config.minutes:
        return "minutes"
    if config.patience and state.stale >= config.patience:
        return "patience"
    return None


class Pace:
    """Speed and recent loss of this start of a training, for the progress line."""

    def __init__(self, state: TrainState) -> None:
        self._began = time.monotonic() - state.seconds
        self._first = state.step, state.seconds
        self._recent = deque(
            [(state.seconds, 0, 0.0, 0.0)], maxlen=PACE_UPDATES
        )  # seconds, tokens, loss, nll of an update

    def seconds(self) -> float:
        """Seconds of training so far, over all starts."""
        return time.monotonic() - self._began

    def progress(self, training: "Training", outcome: Outcome) -> Progress:
        """The progress line after an update."""
        state, config = training.state, training.config
        self._recent.append((state.seconds, outcome.num_tokens, outcome.loss, outcome.nll))
        tokens, loss, nll = (sum(column) for column in list(zip(*list(self._recent)[1:], strict=True))[1:])
        return Progress(
            step=state.step,
            steps=config.train.steps,
            epoch=state.epoch + 1,
            loss=loss / tokens,
            perplexity=math.exp(min(nll / tokens, 700)),
            learning_rate=learning_rate(state.step, config.train, config.model.d_model),
            tokens_per_second=tokens / max(state.seconds - self._recent[0][0], 1e-9),
            seconds_left=self._left(state, config.train),
        )

    def _left(self, state: TrainState, config: TrainConfig) -> float:
        """Seconds until train.steps or train.minutes ends the training."""
        step, seconds = self._first
        left = (config.steps - state.step) * (state.seconds - seconds) / max(1, state.step - step)
        return min(left, 60 * config.minutes - state.seconds) if config.minutes else left


@contextmanager
def stop_signals(*, insist: bool = False) -> Iterator[Callable[[], bool]]:
    """In the block, SIGINT and SIGTERM set a flag, which the yielded function returns; a repeat ends the process.

    insist: ignore repeats, since torchrun and the cluster forward the same signal.
    """
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            return
        say("Stopping after this update. The training will be saved; run the same command to resume.")
        if not insist:
            for each in before:
                signal.signal(each, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():  # Python allows signal handlers only there
        yield lambda: False
        return
    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
