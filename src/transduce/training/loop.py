"""The training loop: updates, reports, validations, checkpoints, until something says stop."""

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
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from transduce.config import RunConfig, TrainConfig
from transduce.errors import UserError
from transduce.journal import Display, Journal, Progress, say
from transduce.model.batch import Batch, make_batch
from transduce.model.seq2seq import Seq2Seq
from transduce.profiling import phase
from transduce.ranks import ALONE, Ranks, gathered, unwrapped
from transduce.tokens.batching import Indices
from transduce.tokens.mixture import Mixture
from transduce.training.checkpoint import TrainState, remove_old, save_checkpoint
from transduce.training.schedule import learning_rate
from transduce.training.update import Outcome, Pass, update_together

REPORT_EVERY = 10  # updates between lines of the journal
RECENT = 50  # updates that the displayed speed and loss are taken from
MOST_SKIPPED = 10  # updates in a row that are not finite before training gives up

Reason = Literal["steps", "minutes", "patience", "interrupted"]
REASONS: list[Reason | None] = [None, "steps", "minutes", "patience", "interrupted"]  # the last, if ranks have several


class Validation(NamedTuple):
    """What the loop learns from validating."""

    perplexity: float  # per target token, without label smoothing
    bleu: float | None  # by greedy search; None for symbols, which it is not made for

    def __str__(self) -> str:
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.1f} (greedy)"
        return f"validation perplexity {self.perplexity:.2f}{bleu}"


@dataclass
class Training:
    """One training, put together: all that the loop works with."""

    config: RunConfig  # accumulate, save_every and validate_every are numbers by now, not 0
    model: Seq2Seq
    optimizer: torch.optim.Optimizer
    data: Mixture
    origin: Callable[[int], str]  # file and line of a pair, for complaints
    state: TrainState
    journal: Journal
    folder: Path  # of the checkpoints
    validate: Callable[[Seq2Seq], Validation | None]  # None: there is no held-out text
    device: torch.device
    ranks: Ranks = ALONE
    wrapped: nn.Module | None = None  # what learns instead of the model, if there are several ranks

    @property
    def learner(self) -> nn.Module:
        """What learns."""
        return self.model if self.wrapped is None else self.wrapped


def train(training: Training, stop: Callable[[], bool] = lambda: False) -> Reason:
    """Train until the steps or minutes are used up, patience is lost, or the process is told to stop.

    stop: asked before every update whether to stop, as a signal does.

    The last state is always saved. Raises UserError after ten updates in a row that were not finite.
    """
    state, config = training.state, training.config.train
    with stop_signals(insist=training.ranks.world > 1) as stopped, Display() as display:
        pace, plan = Pace(state), updates(training)
        while (reason := finished(training, stopped() or stop())) is None:
            with phase("data"):
                batches = next(plan)
            outcome = learn(training, batches)
            state.seconds = pace.seconds()
            note(training, outcome, batches)
            display.show(pace.progress(training, outcome))
            if state.step % config.validate_every == 0:
                validate(training)
                state.seconds = pace.seconds()
            if state.step % config.save_every == 0 or state.best_step == state.step:
                save(training)
    save(training)
    return reason


def updates(training: Training) -> Iterator[list[Indices]]:
    """The updates from where the state stands, block after block, epoch after epoch; the state moves along."""
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
        del plan  # before there is another one
        state.block, state.position = state.block + 1, 0
        if state.block == training.data.blocks:
            state.epoch, state.block = state.epoch + 1, 0


def micro_budget(config: RunConfig) -> int:
    """Cells of a micro-batch on each side."""
    return -(-config.data.max_tokens // config.train.accumulate)


def learn(training: Training, batches: Sequence[Indices]) -> Outcome:
    """One update with the given micro-batches."""
    state, config = training.state, training.config
    state.step += 1
    state.position += 1
    training.learner.train()
    turns = training.ranks.turns(len(batches))
    return update_together(
        training.learner,
        training.optimizer,
        [Pass(assemble(training, batches[place]), place, counts) for place, counts in turns],
        num_tokens(training, batches),
        training.ranks,
        step=state.step,
        rate=learning_rate(state.step, config.train, config.model.d_model),
        train=config.train,
    )


def num_tokens(training: Training, batches: Sequence[Indices]) -> int:
    """Target tokens of an update, EOS counted, on all ranks."""
    return sum(int(training.data.lengths(batch)[1].sum()) + len(batch) for batch in batches)


@phase("data")
def assemble(training: Training, batch: Indices) -> Batch:
    """Tensors of the given pairs, on the device."""
    return make_batch(training.data.sources(batch), training.data.targets(batch)).to(training.device)


def note(training: Training, outcome: Outcome, batches: Sequence[Indices]) -> None:
    """Add up what the update did, and write a line of the journal now and then."""
    state, journal = training.state, training.journal
    state.tokens_seen += outcome.num_tokens
    state.skipped = 0 if outcome.applied else state.skipped + 1
    if not outcome.applied:
        places = [training.origin(index) for batch in batches for index in batch.tolist()]
        journal.write("skipped", step=state.step, loss=outcome.loss, places="; ".join(places))
        say(f"Update {state.step:,} skipped: its loss or gradient is not finite; the journal names its lines.")
        if state.skipped == MOST_SKIPPED:
            raise UserError(
                f"{MOST_SKIPPED} updates in a row were not finite (the last at step {state.step}); the weights of the "
                "last checkpoint are whole: lower train.learning_rate, or set train.clip_norm=1."
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
    """Measure the model on held-out text."""
    state = training.state
    with gathered(training.learner, training.model, training.ranks, training.device) as model:
        result = training.validate(model.eval()) if training.ranks.first else None
    found: list[Any] = training.ranks.agree(list(result) if result else [])
    if not found:
        return
    result = Validation(*found)
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
    """Write a checkpoint and delete those that are no longer wanted."""
    state, config = training.state, training.config.train
    state.journal_size = training.journal.size
    save_checkpoint(training.folder, unwrapped(training.learner), training.optimizer, state, training.ranks)
    if training.ranks.first:
        remove_old(training.folder, config.save_every, max(config.keep_last, config.average), state.best_step)


def finished(training: Training, stopped: bool) -> Reason | None:
    """Why training is over, if it is: on all ranks at the same update, whichever was told, or saw it, first."""
    return REASONS[training.ranks.highest(REASONS.index(reason_to_end(training, stopped)))]


def reason_to_end(training: Training, stopped: bool) -> Reason | None:
    """Why this rank would end the training, if it would."""
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
    """How fast this start of a training is, and its recent loss; none of it changes what is learnt."""

    def __init__(self, state: TrainState) -> None:
        self._began = time.monotonic() - state.seconds
        self._first = state.step, state.seconds
        self._recent = deque([(state.seconds, 0, 0.0, 0.0)], maxlen=RECENT)  # seconds, tokens, loss, nll of an update

    def seconds(self) -> float:
        """Of training so far, over all starts."""
        return time.monotonic() - self._began

    def progress(self, training: "Training", outcome: Outcome) -> Progress:
        """Where the training stands after an update, for people."""
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
        """Seconds until the steps or the minutes are used up."""
        step, seconds = self._first
        left = (config.steps - state.step) * (state.seconds - seconds) / max(1, state.step - step)
        return min(left, 60 * config.minutes - state.seconds) if config.minutes else left


@contextmanager
def stop_signals(*, insist: bool = False) -> Iterator[Callable[[], bool]]:
    """Inside, SIGINT and SIGTERM only raise a flag, which is what is handed out; a second one ends the process.

    insist: it does not. A cluster and torchrun both pass on the same signal, and kill who does not end in time.
    """
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            return
        say("Stopping after this update; the training will be saved and can go on.")
        for each in () if insist else before:
            signal.signal(each, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():  # only there may signals be handled
        yield lambda: False
        return
    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
