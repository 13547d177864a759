"""The training loop, with its updates, reports, validations and checkpoints."""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from transduce.config.schema import RunConfig, TrainConfig
from transduce.evaluation.perplexity import Validation
from transduce.model.seq2seq import Batch, Seq2Seq
from transduce.system.console import Display, duration, log
from transduce.system.errors import DivergedError
from transduce.system.journal import Journal
from transduce.system.profiling import phase
from transduce.tokens.batching import Indices
from transduce.tokens.mixture import Mixture
from transduce.training.batches import ahead, assemble, budget
from transduce.training.checkpoint import TrainState, remove_old, save_checkpoint
from transduce.training.distributed import ALONE, Ranks, full_model, is_sharded
from transduce.training.schedule import begins_risk, effort, in_time, learning_rate
from transduce.training.update import Figures, Outcome, averaged, begin_update, rehearse

REPORT_EVERY = 10  # updates between lines of the journal
PACE_UPDATES = 50  # number of recent updates for the displayed speed and loss
SPEED_UPDATES = 20  # time constant, in updates, of the speed that the cool-down follows
MAX_SLOWDOWN = 3  # an update counts as at most this many times the usual time, so that a single pause has little effect
MAX_SKIPPED_UPDATES = 10  # the training fails after this many in a row
COOLDOWN = "cooldown"  # the event of the journal when the schedule changes to follow the clock
CHANGING = ("steps", "cooldown", "risk_steps")  # options of the schedule that a COOLDOWN event sets

Reason = Literal["patience", "minutes", "steps", "interrupted"]
# If several reasons apply, the last one counts.
REASONS: tuple[Reason, ...] = (
    "patience",
    "minutes",
    "steps",
    "interrupted",
)


@dataclass
class Training:
    """The configuration, model, data, progress and files of a running training."""

    config: RunConfig  # accumulate, save_every and validate_every are set, not 0
    model: Seq2Seq
    optimizer: torch.optim.Optimizer
    data: Mixture
    origin: Callable[[int], str]  # file and line of a pair, for messages
    state: TrainState
    journal: Journal
    folder: Path  # folder of the checkpoints
    validate: Callable[[Seq2Seq], Validation | None]  # returns None without a validation set
    device: torch.device
    wrapped_model: nn.Module  # the model itself, or DDP or FSDP around it
    ranks: Ranks = ALONE
    # Step -> validation, since this process started or resumed the training.
    validations: dict[int, Validation] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic  # returns seconds
    # While a GPU computes, the CPU prepares as many updates, and reads the outcomes as many updates later.
    delay: int = 0

    def __post_init__(self) -> None:
        # The training options, in which the schedule follows the clock.
        self.schedule = replace(self.config.train, **self.state.schedule)


class Planned(NamedTuple):
    """The micro-batches of one update, and the place in the training data after it."""

    epoch: int
    block: int
    position: int
    indices: list[Indices]
    batches: list[Batch]  # those that this rank computes


class Started(NamedTuple):
    """An update that a GPU may still compute."""

    step: int
    planned: Planned
    figures: Figures


def train(training: Training, stop: Callable[[], bool] | None = None) -> Reason:
    """Train until a limit or a signal ends the loop, save a checkpoint, and return the reason for the end.

    `stop` is called before every update and returns True to interrupt the training. Raises UserError if the loss or the
    gradient is not finite in MAX_SKIPPED_UPDATES successive updates.
    """
    state = training.state
    config = training.config.train
    width = training.config.data.pack
    if (width or training.ranks.world > 1) and not is_sharded(training.wrapped_model):
        rehearse(training.wrapped_model, config, training.device, max(1, width))
    with stop_signals(insist=training.ranks.world > 1) as stopped, Display() as display:
        pace = Pace(state, training.clock)
        if not state.step and is_tuning(config):
            validate(training)  # the model before
        plan = ahead(planned_updates(training), training.delay)
        started: deque[Started] = deque()
        while (reason := finished(training, stopped() or bool(stop and stop()))) is None:
            if begins_risk(state.step, training.schedule):
                begin_risk(training)
            began = pace.seconds()
            with phase("data"):
                planned = next(plan)
            started.append(learn(training, planned))
            is_milestone = 0 in (state.step % config.validate_every, state.step % config.save_every)
            outcomes = read(started, keep=0 if is_milestone else training.delay)
            state.seconds = pace.seconds()
            usual = state.update_seconds or state.seconds - began
            change = min(state.seconds - began, MAX_SLOWDOWN * usual) - usual
            state.update_seconds = usual + change / SPEED_UPDATES
            for update, outcome in outcomes:
                log_update(training, update, outcome)
                display.show(state.step, training.schedule.steps, pace.line(training, outcome))
            if state.step % config.validate_every == 0:
                validate(training)
                state.validation_seconds = pace.seconds() - state.seconds
                state.seconds = pace.seconds()
            if (config.minutes or state.recorded) and state.step < training.schedule.steps:
                follow_clock(training)
            if state.step % config.save_every == 0 or state.best_step == state.step:
                save(training)
                state.saving_seconds = pace.seconds() - state.seconds
    for update, outcome in read(started, keep=0):
        log_update(training, update, outcome)
    save(training)
    return reason


def planned_updates(training: Training) -> Iterator[Planned]:
    """Yield the updates from the current step on, without end."""
    config = training.config
    epoch = training.state.epoch
    block = training.state.block
    done = training.state.position
    while True:
        plan = training.data.plan(
            epoch,
            block,
            budget=budget(config),
            width=config.data.pack,
            accumulate=config.train.accumulate,
            seed=config.train.seed,
        )
        for position, indices in enumerate(plan[done:], start=done + 1):
            yield plan_update(training, epoch, block, position, indices)
        del plan  # free its memory before the next plan is made
        done = 0
        block += 1
        if block == training.data.blocks:
            epoch += 1
            block = 0


def plan_update(
    training: Training, epoch: int, block: int, position: int, indices: list[Indices]
) -> Planned:
    """Make the batches of one update, which this rank computes."""
    config = training.config
    tokens = budget(config)
    batches = [
        assemble(training.data, indices[slot.index], config, training.device, tokens)
        for slot in training.ranks.slots(len(indices))
    ]
    return Planned(epoch, block, position, indices, batches)


def read(started: deque[Started], *, keep: int) -> list[tuple[Started, Outcome]]:
    """Remove all updates but the last `keep` from `started`, and wait for their outcomes."""
    finished = [started.popleft() for _ in range(len(started) - keep)]
    return [(update, update.figures.read()) for update in finished]


def begin_risk(training: Training) -> None:
    """Begin minimum-risk training with a new optimizer state."""
    training.state.update_seconds *= effort(0, replace(training.schedule, steps=1, risk_steps=1))
    training.optimizer.state.clear()  # otherwise, Adam's means of the larger gradients before would slow 100 updates
    log("Minimum-risk training begins.")


def follow_clock(training: Training) -> None:
    """Change the schedule if the cool-down would not end in time by the clock of rank 0.

    A change is an event of the journal. A training that resumes from an earlier checkpoint repeats these events before
    it measures again, so that it makes the same updates.
    """
    state = training.state
    config = training.config.train
    changed = state.recorded.pop(str(state.step), {})
    if training.ranks.first and config.minutes and not changed and not state.recorded:
        seconds = 60 * config.minutes - state.seconds
        durations = [
            (1, state.update_seconds),
            (config.validate_every, state.validation_seconds),
            (config.save_every, state.saving_seconds),
        ]
        schedule = in_time(state.step, training.schedule, config.steps, seconds, durations)
        if schedule != training.schedule:
            changed = {name: getattr(schedule, name) for name in CHANGING}
            training.journal.write(COOLDOWN, step=state.step, limits=state.limits, **changed)
            if not state.schedule:
                log(f"The learning rate falls now, to zero after about {schedule.steps:,} updates.")
    state.schedule = training.ranks.agree(changed) or state.schedule
    training.schedule = replace(config, **state.schedule)


def learn(training: Training, planned: Planned) -> Started:
    """Start one update."""
    state = training.state
    state.step += 1
    state.epoch = planned.epoch
    state.block = planned.block
    state.position = planned.position
    training.wrapped_model.train()
    figures = begin_update(
        training.wrapped_model,
        training.optimizer,
        planned.batches,
        step=state.step,
        rate=learning_rate(state.step, training.schedule, training.config.model.d_model),
        train=training.schedule,
        ranks=training.ranks,
        slots=training.ranks.slots(len(planned.indices)),
        total=sum(
            int(training.data.lengths(indices)[1].sum()) + len(indices)
            for indices in planned.indices
        ),  # EOS counted
        wait=not training.delay,
    )
    return Started(state.step, planned, figures)


def log_update(training: Training, update: Started, outcome: Outcome) -> None:
    """Add an update's outcome to `state`, and write the means of every REPORT_EVERY updates to the journal."""
    state = training.state
    journal = training.journal
    state.tokens_seen += outcome.num_tokens
    state.skipped = 0 if outcome.applied else state.skipped + 1
    if not outcome.applied:
        places = [
            training.origin(index) for each in update.planned.indices for index in each.tolist()
        ]
        journal.write("skipped", step=update.step, loss=outcome.loss, places="; ".join(places))
        log(
            f"Update {update.step:,} skipped: its loss or gradient is not finite. The journal lists the skipped pairs."
        )
        if state.skipped == MAX_SKIPPED_UPDATES:
            raise DivergedError(
                f"The loss or gradient of {MAX_SKIPPED_UPDATES} updates in a row was not "
                f"finite (the last at step {update.step:,}). The last checkpoint is intact.",
                "Lower train.learning_rate, or set train.clip_norm=1.",
            )
        return
    state.loss += outcome.loss
    state.nll += outcome.nll
    state.correct += outcome.correct
    state.num_tokens += outcome.num_tokens
    if update.step % REPORT_EVERY == 0:
        journal.write(
            "update",
            step=update.step,
            epoch=update.planned.epoch,
            loss=state.loss / state.num_tokens,
            nll=state.nll / state.num_tokens,
            accuracy=state.correct / state.num_tokens,
            rate=learning_rate(update.step, training.schedule, training.config.model.d_model),
            gradient_norm=outcome.gradient_norm,
            tokens_seen=state.tokens_seen,
            seconds=state.seconds,
        )
        state.loss = state.nll = state.correct = 0.0
        state.num_tokens = 0


@phase("validation", whole=True)
def validate(training: Training) -> None:
    """Evaluate the model, or its moving average, on the validation set. Record the best step by train.select_by."""
    state = training.state
    full = (training.wrapped_model, training.model, training.ranks, training.device)
    try:
        with averaged(training.optimizer), full_model(*full) as model:
            result = training.validate(model.eval()) if training.ranks.first else None
    except Exception:
        if training.ranks.world == 1:
            # Otherwise the updates since the last checkpoint, up to an epoch, would be lost.
            save(training)
        raise
    figures: list[Any] = training.ranks.agree(list(result) if result else [])
    if not figures:
        return
    result = training.validations[state.step] = Validation(*figures)
    cost = result.cost(training.config.train.select_by)
    if state.best is None or cost < state.best:
        state.best = cost
        state.best_step = state.step
        state.stale = 0
    else:
        state.stale += 1
    training.journal.write(
        "validation",
        step=state.step,
        epoch=state.epoch,
        **{name: value for name, value in result._asdict().items() if value is not None},
        seconds=state.seconds,
    )
    best = " – the best so far" if state.best_step == state.step and cost < math.inf else ""
    log(f"step {state.step:>7,}  epoch {state.epoch + 1}  {result}{best}")


@phase("checkpoints")
def save(training: Training) -> None:
    """Write a checkpoint, and delete the checkpoints that are no longer needed."""
    state = training.state
    config = training.config.train
    state.journal_size = training.journal.size
    # DDP's weights are those of the model.
    model = training.wrapped_model if is_sharded(training.wrapped_model) else training.model
    save_checkpoint(training.folder, model, training.optimizer, state, training.ranks)
    if training.ranks.first:
        remove_old(
            training.folder,
            config.save_every,
            max(config.keep_last, config.average),
            {state.best_step, *([0] if is_tuning(config) or config.low_rank else [])},
        )


def is_tuning(train: TrainConfig) -> bool:
    """Whether the final model may be an average with the weights of the first checkpoint, which is kept for this."""
    return train.max_forgotten < 1


def finished(training: Training, stopped: bool) -> Reason | None:
    """The reason to end the training, identical on all ranks, or None to continue."""
    state = training.state
    config = training.config.train
    ends: dict[Reason, bool] = {
        "patience": 0 < config.patience <= state.stale,
        "minutes": 0 < 60 * config.minutes <= state.seconds
        or state.step >= training.schedule.steps,
        "steps": state.step >= config.steps,
        "interrupted": stopped,
    }
    highest = training.ranks.highest(
        max((REASONS.index(reason) for reason in REASONS if ends[reason]), default=-1)
    )
    return REASONS[highest] if highest >= 0 else None


class Pace:
    """Computes recent speed, recent loss and remaining time for the progress line."""

    def __init__(self, state: TrainState, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock() - state.seconds
        self._first = state.step, state.seconds
        # (seconds before the update, outcome).
        self._recent: deque[tuple[float, Outcome]] = deque(maxlen=PACE_UPDATES)
        self._before = state.seconds

    def seconds(self) -> float:
        """The seconds of training so far, including the time before restarts."""
        return self._clock() - self._began

    def line(self, training: Training, outcome: Outcome) -> str:
        """The progress line after an update, with the most important numbers first."""
        state = training.state
        train = training.schedule
        self._recent.append((self._before, outcome))
        self._before = state.seconds
        tokens = sum(each.num_tokens for _, each in self._recent)
        loss, nll = (
            sum(getattr(each, name) for _, each in self._recent) / tokens
            for name in ("loss", "nll")
        )
        step, seconds = self._first
        left = effort(state.step, train)
        left *= (state.seconds - seconds) / max(1, effort(step, train) - left)
        left = min(left, 60 * train.minutes - state.seconds) if train.minutes else left
        return (
            f"{state.step:,}/{train.steps:,} updates  {duration(left)} left  loss {loss:.3f}  "
            f"ppl {math.exp(min(nll, 700)):.4g}  {tokens / max(state.seconds - self._recent[0][0], 1e-9):,.0f} tok/s  "
            f"epoch {state.epoch + 1}  lr {learning_rate(state.step, train, training.config.model.d_model):.2e}"
        )


@contextmanager
def stop_signals(*, insist: bool = False) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM has arrived.

    A second signal ends the process. If `insist` is true, the process ignores every signal after the first one.
    """
    received: list[int] = []

    def receive(number: int, _: object) -> None:
        received.append(number)
        if len(received) > 1:
            return
        log(
            "Stopping after this update. The training will be saved; run the same command to resume."
        )
        if not insist:
            for each in before:
                signal.signal(each, signal.SIG_DFL)

    # Only the main thread may set signal handlers.
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
